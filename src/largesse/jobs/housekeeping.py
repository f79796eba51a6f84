"""Maintenance of all that leaves the house: the worker has old rows removed and queues measured every so often."""

from __future__ import annotations

from largesse.customers import tasks as people
from largesse.db.pool import Connection
from largesse.db.statements import plan_by_index
from largesse.drafts import tasks as drafts
from largesse.events.order_changes import CHANGES
from largesse.events.store import OLD, WAITING
from largesse.jobs import metrics, retention
from largesse.mail import tasks as mail
from largesse.webhooks import tasks as webhooks

RETENTION = (*webhooks.OLD, OLD, *mail.OLD, *drafts.OLD, *people.OLD)
_QUEUES = (WAITING, CHANGES, *mail.QUEUES, webhooks.DELIVERIES)


async def prune(connection: Connection) -> bool:
    """Removes a bite of what is old from each table; True when there may be more."""
    return await retention.prune(connection, RETENTION)


async def measure(connection: Connection) -> None:
    """Sets the gauges of the queues, of failing subscriptions and of held mail."""
    async with connection.transaction():
        await plan_by_index(connection)
        await retention.measure(connection, _QUEUES)
        metrics.FAILING_SUBSCRIPTIONS.set(await retention.count(connection, webhooks.FAILING))
        metrics.MAIL_HELD.set(await retention.count(connection, mail.HELD))
