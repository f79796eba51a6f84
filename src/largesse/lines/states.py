"""The states of a line, and the moves between them.

    issued ──────> claimed ──────> chosen ──────> fulfilled
       │              │               │
       └> cancelled   └───────────────┴─> expired

Lines only move forwards: the database refuses anything else (migration 0003). Each move is recorded with its time, and the order as
changed, so that lists and reports follow (largesse.reports). Lock the row of the line in `lines` before you move it.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

import msgspec

from largesse.db.fragments import Fragment
from largesse.db.pool import Connection
from largesse.db.statements import Part, fetch_together, run_part
from largesse.events.kinds import (
    GIFT_CANCELLED,
    GIFT_CLAIMED,
    GIFT_EXPIRED,
    GIFT_FULFILLED,
    GIFT_OPENED,
    EventType,
    GiftEvent,
)
from largesse.events.store import changed, insert_line_events, line_events, new_line_events
from largesse.jobs.outbox import withdrawn_reminders

_OPENED = (
    "INSERT INTO line_events (customer_id, order_id, number, event, at) VALUES ($1, $2, $3, 'opened', clock_now()) "
    "ON CONFLICT DO NOTHING RETURNING at"
)
_CLAIM = """
    INSERT INTO line_states (customer_id, order_id, number, state, claimed_at, expires_at, language)
    VALUES ($1, $2, $3, 'claimed', $4, $5, $6)
"""
_CLAIM_EVENTS = """
    INSERT INTO line_events (customer_id, order_id, number, event, at)
    VALUES ($1, $2, $3, 'opened', $4), ($1, $2, $3, 'claimed', $4)
    ON CONFLICT (customer_id, order_id, number, event) DO NOTHING RETURNING event
"""
_SET_LANGUAGE = """
    UPDATE line_states SET language = $4
    WHERE customer_id = $1 AND order_id = $2 AND number = $3 AND language IS DISTINCT FROM $4
"""
_SET_EMAIL = "UPDATE line_states SET sealed_email = $4 WHERE customer_id = $1 AND order_id = $2 AND number = $3"
_HAS_LEFT_EMAIL = (
    "SELECT sealed_email IS NOT NULL FROM line_states WHERE customer_id = $1 AND order_id = $2 AND number = $3"
)
_LOCK = """
    SELECT FROM lines WHERE customer_id = $1 AND order_id = $2 AND ($3::int[] IS NULL OR number = ANY($3))
    ORDER BY number FOR UPDATE
"""
# NOT IN reads the states once. For NOT EXISTS the planner, which expects few lines of an order, compares each line with all states.
_ISSUED = """
    SELECT number FROM lines
    WHERE customer_id = $1 AND order_id = $2 AND ($3::int[] IS NULL OR number = ANY($3))
      AND number NOT IN (SELECT number FROM line_states WHERE customer_id = $1 AND order_id = $2)
    ORDER BY number
"""
_CANCEL = """
    INSERT INTO line_states (customer_id, order_id, number, state)
    SELECT customer_id, order_id, number, 'cancelled' FROM lines
    WHERE customer_id = $1 AND order_id = $2 AND number = ANY($3::int[])
"""
_CANCEL_EVENTS = """
    INSERT INTO line_events (customer_id, order_id, number, event, at)
    SELECT customer_id, order_id, number, event, $4::timestamptz FROM lines, unnest($5::text[]) AS happened (event)
    WHERE customer_id = $1 AND order_id = $2 AND number = ANY($3::int[])
"""
_MOVE_EVENT = """
    INSERT INTO line_events (customer_id, order_id, number, event, at) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (customer_id, order_id, number, event) DO NOTHING
"""
_MOVE = """
    UPDATE line_states SET state = $4, product_id = coalesce($5, product_id)
    WHERE customer_id = $1 AND order_id = $2 AND number = $3 AND state = ANY($6::text[])
    RETURNING number
"""


class LineKey(NamedTuple):
    """The primary key of a line: its customer, its order's id, and its number in the order."""

    customer_id: int
    order_id: int
    number: int


class State(StrEnum):
    """The state of a line."""

    ISSUED = "issued"
    """The code exists and nobody has claimed it. The line has no row in `line_states` yet."""

    CLAIMED = "claimed"
    """Somebody typed the PIN; the gift is theirs. They have yet to choose among a collection's products."""

    CHOSEN = "chosen"
    """The product is settled. The line waits for a voucher number, for the recipient's address, or for the parcel."""

    FULFILLED = "fulfilled"
    """The voucher number is the recipient's, or the parcel is on its way. Nothing more will happen."""

    EXPIRED = "expired"
    """The time after the claim ran out while the recipient still had something to do, or the address of the parcel was erased before it was sent."""

    CANCELLED = "cancelled"
    """The customer took the line back before anyone claimed it, or nobody had by the claim-by date. It was refunded."""


MOVES: dict[State, frozenset[State]] = {
    State.ISSUED: frozenset({State.CLAIMED, State.CANCELLED}),
    State.CLAIMED: frozenset({State.CHOSEN, State.EXPIRED}),
    State.CHOSEN: frozenset({State.FULFILLED, State.EXPIRED}),
    State.FULFILLED: frozenset(),
    State.EXPIRED: frozenset(),
    State.CANCELLED: frozenset(),
}

# Recorded in addition to the cancellation, for a line whose claim-by date has passed.
LAPSED = "lapsed"

# The events of moves of a claimed line, by its new state.
_EVENTS = {State.FULFILLED: GIFT_FULFILLED, State.EXPIRED: GIFT_EXPIRED}


class Progress(msgspec.Struct, frozen=True):
    """The state of a line with its times. `product_id` is the product once it is settled."""

    state: State = State.ISSUED
    claimed_at: datetime | None = None
    expires_at: datetime | None = None
    product_id: int | None = None


class WrongMove(Exception):
    """A move that a line's state does not allow."""


def expiry(claimed_at: datetime, order_days: int | None, default_days: int) -> datetime | None:
    """Returns when a claimed gift expires: after the order's days, or the installation's if the order has none. Returns None for 0 days."""
    days = order_days if order_days is not None else default_days
    return claimed_at + timedelta(days=days) if days else None


async def record_opened(connection: Connection, line: LineKey) -> None:
    """Records the first time that a person uses the line's link. Call it inside a transaction."""
    opened_at = await connection.fetchval(_OPENED, *line)
    if opened_at is not None:
        await record_lifecycle(connection, GIFT_OPENED, line.customer_id, line.order_id, [line.number], opened_at)


async def record_claim(
    connection: Connection, line: LineKey, at: datetime, expires_at: datetime | None, language: str | None
) -> None:
    """Moves an issued line to `claimed`. `language` is the one its recipient chose, if any."""
    happened = await fetch_together(
        connection,
        Part(_CLAIM, *line, at, expires_at, language),
        changed(line.customer_id, line.order_id),
        withdrawn_reminders(line.customer_id, line.order_id, [line.number]),
        Part(_CLAIM_EVENTS, *line, at),
    )
    names = {row["event"] for row in happened}
    for name, event in (("opened", GIFT_OPENED), ("claimed", GIFT_CLAIMED)):
        if name in names:
            await record_lifecycle(connection, event, line.customer_id, line.order_id, [line.number], at)


async def record_language(connection: Connection, line: LineKey, language: str) -> None:
    """Sets the language of a claimed line's recipient."""
    await connection.execute(_SET_LANGUAGE, *line, language)


async def record_email(connection: Connection, line: LineKey, sealed: bytes) -> None:
    """Sets the encrypted address at which the recipient of a claimed line wants to be notified."""
    await connection.execute(_SET_EMAIL, *line, sealed)


async def has_left_email(connection: Connection, line: LineKey) -> bool:
    """Returns whether the recipient of the line has given such an address."""
    left: bool | None = await connection.fetchval(_HAS_LEFT_EMAIL, *line)
    return bool(left)


async def lock_issued(
    connection: Connection, customer_id: int, order_id: int, numbers: Sequence[int] | None = None
) -> list[int]:
    """Locks an order's lines, or those of `numbers`, and returns the numbers of those still issued.

    Uses two statements, as the first one may see rows as they were before it got the locks.
    """
    await connection.execute(_LOCK, customer_id, order_id, numbers)
    rows = await connection.fetch(_ISSUED, customer_id, order_id, numbers)
    return [row["number"] for row in rows]


async def record_cancelled(
    connection: Connection,
    customer_id: int,
    order_id: int,
    numbers: Sequence[int],
    at: datetime,
    *,
    lapsed: bool = False,
) -> None:
    """Moves issued lines of an order to `cancelled`. `lapsed` says that their claim-by date has passed, and records that too."""
    order = (customer_id, order_id, numbers)
    events = [State.CANCELLED, LAPSED] if lapsed else [State.CANCELLED]
    expired = [lifecycle_event(GIFT_EXPIRED, *order, at)] if lapsed else []
    await fetch_together(
        connection,
        Part(_CANCEL, *order),
        changed(customer_id, order_id),
        *expired,
        lifecycle_event(GIFT_CANCELLED, customer_id, order_id, numbers, at),
        Part(_CANCEL_EVENTS, *order, at, events),
    )


async def record_move(
    connection: Connection, line: LineKey, to: State, at: datetime, *, product_id: int | None = None
) -> None:
    """Moves a claimed line on. `product_id` settles its product.

    Raises WrongMove when its state does not allow that; the transaction must not be committed then.
    """
    event = _EVENTS.get(to)
    events = [] if event is None else [lifecycle_event(event, line.customer_id, line.order_id, [line.number], at)]
    moved = await fetch_together(
        connection,
        *events,
        changed(line.customer_id, line.order_id),
        Part(_MOVE_EVENT, *line, to, at),
        Part(_MOVE, *line, to, product_id, [state for state, following in MOVES.items() if to in following]),
    )
    if not moved:
        raise WrongMove(f"line {line} cannot become {to}")


_SOURCE = Fragment("""
    SELECT l.customer_id, l.order_id, l.number AS line_number, o.reference, o.environment, l.recipient_email AS recipient,
           $4::text AS event, $6::text AS occurrence, $5::timestamptz AS at
    FROM lines l JOIN orders o ON o.customer_id = l.customer_id AND o.id = l.order_id
    WHERE l.customer_id = $1 AND l.order_id = $2 AND l.number = ANY($3::int[]) ORDER BY l.number
""")
_RECORD_OF_LINES, _EVENTS_OF_LINES = new_line_events(_SOURCE), line_events(_SOURCE)


def lifecycle_event(
    event: EventType[GiftEvent],
    customer_id: int,
    order_id: int,
    numbers: Sequence[int],
    at: datetime,
    occurrence: str | None = None,
) -> Part:
    """Returns the part of a statement that records an event for these lines of an order.

    Pass an `occurrence` for an event that can happen to a line more than once. It makes the ids of these events different.
    """
    arguments = (customer_id, order_id, numbers, event.name, at, occurrence or event.name)

    async def on_node(connection: Connection) -> None:
        await insert_line_events(connection, await connection.fetch(_EVENTS_OF_LINES, *arguments))

    return Part(_RECORD_OF_LINES, *arguments, apart=on_node)


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
    await run_part(connection, lifecycle_event(event, customer_id, order_id, numbers, at, occurrence))
