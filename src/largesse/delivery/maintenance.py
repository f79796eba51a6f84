"""Maintenance of all that leaves the house: the worker has old rows removed and queues measured every so often."""

from __future__ import annotations

from largesse.database.planning import plan_by_index
from largesse.database.pool import Connection
from largesse.delivery.mail import maintenance as mail
from largesse.delivery.queue import maintenance, metrics
from largesse.delivery.webhooks import maintenance as webhooks
from largesse.drafts import maintenance as drafts
from largesse.events.changes import CHANGES
from largesse.events.outbox import OLD, WAITING
from largesse.people import maintenance as people

ALL_OLD = (*webhooks.OLD, OLD, *mail.OLD, *drafts.OLD, *people.OLD)
_QUEUES = (WAITING, CHANGES, *mail.QUEUES, webhooks.DELIVERIES)


async def prune(connection: Connection) -> bool:
    """Removes a bite of what is old from each table; True when there may be more."""
    return await maintenance.prune(connection, ALL_OLD)


async def measure(connection: Connection) -> None:
    """Sets the gauges of the queues, of failing subscriptions and of held mail."""
    async with connection.transaction():
        await plan_by_index(connection)
        await maintenance.measure(connection, _QUEUES)
        metrics.FAILING_SUBSCRIPTIONS.set(await maintenance.count(connection, webhooks.FAILING))
        metrics.MAIL_HELD.set(await maintenance.count(connection, mail.HELD))
