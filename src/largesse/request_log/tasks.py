"""Removes requests from the log after 30 days."""

from largesse.jobs.registry import Old, RoomTasks

TASKS = RoomTasks(retention=(Old("api_requests", "at", 30),))
