"""Removes requests from the log after 30 days."""

from __future__ import annotations

from largesse.jobs.registry import Old, RoomTasks

TASKS = RoomTasks(retention=(Old("api_requests", "at", 30),))
