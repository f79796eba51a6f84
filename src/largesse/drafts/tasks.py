"""The retention of drafts: a draft that was not changed for two weeks is deleted with its recipients."""

from largesse.jobs.registry import Old, RoomTasks

TASKS = RoomTasks(retention=(Old("drafts", "changed_at", days=14), Old("draft_columns", "used_at", days=400)))
