"""Records the events of a gift's life (`events.gifts`) where a line moves."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from largesse.db.fragments import Fragment
from largesse.db.pool import Connection
from largesse.db.statements import Part
from largesse.events.gifts import GiftEvent
from largesse.events.kinds import EventType
from largesse.events.store import new_line_events

_OF_LINES = new_line_events(
    Fragment("""
    SELECT l.customer_id, l.order_id, l.number AS line_number, o.reference, o.environment, l.recipient_email AS recipient,
           $4::text AS event, $6::text AS occurrence, $5::timestamptz AS at
    FROM lines l JOIN orders o ON o.customer_id = l.customer_id AND o.id = l.order_id
    WHERE l.customer_id = $1 AND l.order_id = $2 AND l.number = ANY($3::int[]) ORDER BY l.number
    """)
)


def lifecycle_event(
    event: EventType[GiftEvent],
    customer_id: int,
    order_id: int,
    numbers: Sequence[int],
    at: datetime,
    occurrence: str | None = None,
) -> Part:
    """Returns the part of a statement that records an event for these lines of an order.

    `occurrence` tells an event that may happen to a line more than once apart from the others.
    """
    return Part(_OF_LINES, customer_id, order_id, numbers, event.name, at, occurrence or event.name)


async def record_lifecycle(
    connection: Connection,
    event: EventType[GiftEvent],
    customer_id: int,
    order_id: int,
    numbers: Sequence[int],
    at: datetime,
    *,
    occurrence: str | None = None,
) -> None:
    """Records an event for these lines of an order. Call it in the transaction in which it happens."""
    part = lifecycle_event(event, customer_id, order_id, numbers, at, occurrence)
    await connection.execute(part.sql, *part.arguments)
