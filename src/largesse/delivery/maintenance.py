"""Maintenance of all that leaves the house: the worker has old rows removed and queues measured every so often."""

from __future__ import annotations

from largesse.database import Connection
from largesse.delivery.mail import maintenance as mail
from largesse.delivery.queue import maintenance, metrics, plan_by_index
from largesse.delivery.webhooks import maintenance as webhooks

# An event outlives its deliveries: one asked for again on its last day still has all its attempts to make.
_OLD_EVENTS = maintenance.Old(
    "events", "created_at", 35, "fanned_out_at < (SELECT clock_now()) - $1 * interval '1 day'"
)
_EVENTS = maintenance.Waiting("events", "fanned_out_at IS NULL", "events_waiting", "id", since="created_at")

ALL_OLD = (*webhooks.OLD, _OLD_EVENTS, *mail.OLD)
_QUEUES = (_EVENTS, *mail.QUEUES, webhooks.DELIVERIES)


async def prune(connection: Connection) -> bool:
    """Removes a bite of what is old from each table; True when there may be more."""
    return await maintenance.prune(connection, ALL_OLD)


async def measure(connection: Connection) -> None:
    """Sets the gauges of the queues, of failing subscriptions and of held mail."""
    async with connection.transaction():
        await plan_by_index(connection)
        await maintenance.measure(connection, _QUEUES)
        metrics.FAILING_LANES.set(await maintenance.count(connection, webhooks.FAILING))
        metrics.MAIL_HELD.set(await maintenance.count(connection, mail.HELD))
