"""Ends requests for approval that nobody decided in time, and deletes old ones."""

from largesse.approvals.service import expire_requests
from largesse.db.scope import WORKER
from largesse.jobs.registry import DueTimes, Old, PeriodicTask, RoomTasks, WorkerContext

_EVERY_S = 60.0


async def _expire(context: WorkerContext) -> bool:
    async with context.database.transaction(WORKER) as connection:
        return await expire_requests(connection) > 0


TASKS = RoomTasks(
    periodic=(PeriodicTask("approvals", _expire, every_s=_EVERY_S),),
    retention=(Old("approval_requests", "ended_at", days=400),),
    due_times=(DueTimes("approval_requests", ("expires_at",), "state = 'waiting'"),),
)
