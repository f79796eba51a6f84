"""The table `events`: each is written in the transaction that it is about, fanned out to subscribers once, and pruned.

Parts of statements (common table expressions) are for those who do more in the same round trip.

Rewriting the order in an event, where personal data had to be erased.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from largesse.db.pool import Connection
from largesse.db.statements import insert
from largesse.events.kinds import EventType, OrderRecord, Payload

NEXT_EVENT_ID = "nextval('events_id_seq')"
_INTO = "INSERT INTO events (id, order_id, customer_id, environment, event, body, created_at)"
# A row of them.
EventColumns = tuple[int, int, int, str, str, bytes, datetime]


def new_events(source: str, *, order_id: str, event: str, body: str, at: str) -> str:
    """SQL that records an event for each row of `source`, which has `customer_id` and `environment`: a statement, or part of one.

    `order_id`, `event` (a name), `body` (its JSON as text) and `at` are expressions over such a row.
    """
    return f"""
        {_INTO} SELECT {NEXT_EVENT_ID}, {order_id}, customer_id, environment, {event}, convert_to({body}, 'UTF8'), {at} FROM {source}
    """  # noqa: S608 - made of constants


async def insert_events(connection: Connection, events: Sequence[EventColumns]) -> None:
    """Records events of one customer on its node."""
    await insert(connection, _INTO, events)


async def record_event(
    connection: Connection,
    event: EventType[Payload],
    payload: Payload,
    *,
    order_id: int,
    customer_id: int,
    environment: str,
    at: datetime,
) -> None:
    """Records that something happened to an order. Call it inside the transaction in which it does.

    Workers find the event once that has committed, at the latest when they poll next.
    """
    await connection.execute(
        """
        INSERT INTO events (order_id, customer_id, environment, event, body, created_at)
        VALUES ($1, $2, $3, $4, $5, $6)
        """,
        order_id,
        customer_id,
        environment,
        event.name,
        event.body(payload),
        at,
    )


def waiting_events(limit: str, of: str = "") -> str:
    """SQL that takes the first `limit` events nobody has fanned out; other workers take others.

    `of` is one condition more (`within`).
    """
    return f"""
        SELECT id, order_id, customer_id, environment, event, created_at FROM events
        WHERE fanned_out_at IS NULL {of} ORDER BY id LIMIT {limit} FOR UPDATE SKIP LOCKED
    """  # noqa: S608 - placeholders


def marked_events(waiting: str, of: str = "") -> str:
    """SQL that marks events as fanned out: `waiting`, by `customer_id` and `id`. A statement, or part of one."""
    return f"""
        UPDATE events SET fanned_out_at = (SELECT clock_now()) FROM {waiting}
        WHERE events.customer_id = waiting.customer_id AND events.id = waiting.id {of}
        RETURNING events.id
    """  # noqa: S608 - placeholders


# Of the customers in $1, those of the first events that wait.
CUSTOMERS_WAITING = """
    SELECT customer_id FROM events WHERE fanned_out_at IS NULL AND customer_id = ANY($1::int[]) ORDER BY id LIMIT 500
"""


_FIELDS = {field.encode_name: field.name for field in msgspec.structs.fields(OrderRecord)}


async def rewrite_event(connection: Connection, order: tuple[int, int], told: Mapping[str, str | None]) -> None:
    """Gives members of the events of an order other values, as far as they have them. Reads all events.

    `told` has the values by the names of the fields of OrderRecord.
    """
    rows = await connection.fetch("SELECT id, body FROM events WHERE customer_id = $1 AND order_id = $2", *order)
    for row in rows:
        body = msgspec.json.decode(row["body"])
        rewritten = {member: told.get(_FIELDS.get(member, ""), value) for member, value in body.items()}
        await connection.execute(
            "UPDATE events SET body = $3 WHERE customer_id = $1 AND id = $2",
            order[0],
            row["id"],
            msgspec.json.encode(rewritten),
        )
