"""The periodic task that keeps the reports up to date."""

from largesse.audit.service import Acting, by_worker
from largesse.db.pool import Connection
from largesse.db.shard_groups import Customers
from largesse.events.store import CUSTOMERS_CHANGED
from largesse.jobs.registry import PeriodicTask, RoomTasks, WorkerContext
from largesse.reports.updates import apply_changes


async def _report(context: WorkerContext) -> bool:
    async def step(connection: Connection, customers: Customers) -> int:
        acting = Acting(by_worker("reports"), await context.open_chains(connection))
        return await apply_changes(connection, acting, customers=customers)

    return any(await context.in_shard_groups(CUSTOMERS_CHANGED, step))


TASKS = RoomTasks(periodic=(PeriodicTask("report", _report, finishes=True),))
