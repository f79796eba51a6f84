"""The tasks of the catalogue: the worker publishes drafts whose time has come."""

from largesse.audit.service import Acting, by_worker
from largesse.catalogue.editing import publish_due
from largesse.customers.actor import worker_actor
from largesse.db.scope import WORKER
from largesse.jobs.registry import PeriodicTask, RoomTasks, WorkerContext

_AT_ONCE = 100


async def publish(context: WorkerContext) -> bool:
    """Publishes the drafts whose time has come."""
    async with context.database.connection(WORKER) as connection:
        actor = worker_actor(context.database, Acting(by_worker("catalogue"), await context.open_chains(connection)))
        return await publish_due(connection, actor, _AT_ONCE) == _AT_ONCE


TASKS = RoomTasks(periodic=(PeriodicTask("publish_catalogue", publish, every_s=10.0),))
