"""The retention of drafts: those that nobody changed for two weeks are deleted, with their recipients."""

from largesse.jobs.registry import Old, RoomTasks

TASKS = RoomTasks(retention=(Old("drafts", "changed_at", days=14), Old("draft_columns", "used_at", days=400)))
