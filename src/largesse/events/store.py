"""The table `events`: an event is written in the transaction that it is about, fanned out to subscribers once, and pruned. Callers that pull read the
stream of a customer: every event of the last 30 days, in the order in which it was recorded.

The parts of statements (common table expressions) allow more work in the same round trip. The order in an event is rewritten when personal
data is erased.
"""

import base64
import binascii
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from largesse.base.errors import InvalidRequest
from largesse.db.fragments import NOTHING, Fragment, compose
from largesse.db.pool import Connection, Row
from largesse.db.scope import Place
from largesse.db.statements import insert
from largesse.events.kinds import ORDER_CREATED, EventType, OrderRecord, Payload

NEXT_EVENT_ID = Fragment("nextval('events_id_seq')")
NEXT_POSITION = Fragment("nextval('events_position_seq')")
_INTO = Fragment("INSERT INTO events (id, order_id, customer_id, environment, event, body, created_at)")
_INTO_OF_LINES = Fragment(
    "INSERT INTO events (order_id, customer_id, environment, event, line_number, body, created_at)"
)
_INSERT = """
    INSERT INTO events (order_id, customer_id, environment, event, body, created_at) VALUES ($1, $2, $3, $4, $5, $6)
"""
# An event that was fanned out is found by its time, which is its order's. No index leads to the others by order: they are few.
_BODIES = """
    SELECT id, body FROM events
    WHERE customer_id = $1 AND order_id = $2 AND event = $3 AND created_at = $4 AND fanned_out_at IS NOT NULL
    UNION ALL
    SELECT id, body FROM events WHERE customer_id = $1 AND order_id = $2 AND event = $3 AND fanned_out_at IS NULL
"""
_REWRITE = "UPDATE events SET body = $3 WHERE customer_id = $1 AND id = $2"
_LOCK_STREAM = "SELECT pg_advisory_xact_lock(hashtextextended('events_stream', $1))"
# A row of `new_events`.
EventColumns = tuple[int, int, int, str, str, bytes, datetime]


def new_events(source: Fragment, *, order_id: Fragment, event: Fragment, body: Fragment, at: Fragment) -> Fragment:
    """Returns SQL that records an event for each row of `source`, which has `customer_id` and `environment`: a statement, or part of one.

    `order_id`, `event` (a name), `body` (its JSON as text) and `at` are expressions over such a row.
    """
    return compose(
        """
        {into} SELECT {next_event_id}, {order_id}, customer_id, environment, {event}, convert_to({body}, 'UTF8'), {at} FROM {source}
    """,
        into=_INTO,
        next_event_id=NEXT_EVENT_ID,
        order_id=order_id,
        event=event,
        body=body,
        at=at,
        source=source,
    )


async def insert_events(connection: Connection, events: Sequence[EventColumns]) -> None:
    """Records events of one customer on its node."""
    await insert(connection, _INTO, events)


def new_line_events(source: Fragment) -> Fragment:
    """Returns SQL that records an event about a line for each row of `source`, as for `line_events`: a statement, or part of one."""
    return compose("{into} {events}", into=_INTO_OF_LINES, events=line_events(source))


async def insert_line_events(connection: Connection, rows: Sequence[Row]) -> None:
    """Records events about lines of one customer on its node, which are rows of `line_events`."""
    await insert(connection, _INTO_OF_LINES, [tuple(row) for row in rows])


def line_events(source: Fragment) -> Fragment:
    """Returns SQL for an event about a line for each row of `source`.

    `source` is a query for `customer_id`, `order_id`, `line_number`, `reference` and `environment` of the order, `recipient`, `event` (a name
    of `events.kinds`), `occurrence` and `at`. `occurrence` differs for each event of a line. The body is a `GiftEvent`.
    """
    return compose(
        """
        SELECT order_id, customer_id, environment, event, line_number, convert_to(json_build_object(
            'id', 'evt_' || left(encode(sha256(convert_to(
                reference || '/' || line_number || '/' || occurrence, 'UTF8')), 'hex'), 24),
            'event', event, 'reference', reference, 'customerId', customer_id, 'number', line_number, 'recipient', recipient,
            'occurredAt', to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))::text, 'UTF8'), at
        FROM ({source}) AS gift_events
    """,
        source=source,
    )


async def record_event(
    connection: Connection,
    event: EventType[Payload],
    payload: Payload,
    *,
    order_id: int | None,
    customer_id: int,
    environment: str,
    at: datetime,
) -> None:
    """Records an event of an order, or of something else if `order_id` is None. Call it in the transaction that makes the change.

    Workers find the event after the commit, at the latest when they poll next.
    """
    body = event.body(payload)
    await connection.execute(_INSERT, order_id, customer_id, environment, event.name, body, at)


async def begin_fan_out(connection: Connection, customers: Sequence[int] | None = None) -> None:
    """Makes other workers wait until the transaction ends, so that events get their positions in the order in which they are read.

    With distributed customers, it locks one shard group.
    """
    await connection.execute(_LOCK_STREAM, customers[0] if customers else 0)


def waiting_events(limit: Fragment, of: Fragment = NOTHING) -> Fragment:
    """Returns SQL that reads the first `limit` events that are not fanned out. Run it after `begin_fan_out`.

    `of` is an additional condition (`within`).
    """
    return compose(
        """
        SELECT id, order_id, customer_id, environment, event, created_at FROM events
        WHERE fanned_out_at IS NULL {of} ORDER BY id LIMIT {limit} FOR UPDATE SKIP LOCKED
    """,
        of=of,
        limit=limit,
    )


def marked_events(waiting: Fragment, of: Fragment = NOTHING) -> Fragment:
    """Returns SQL that marks events as fanned out, and gives them their positions: `waiting`, by `customer_id`, `id` and `position`.

    A statement, or part of one.
    """
    return compose(
        """
        UPDATE events SET fanned_out_at = (SELECT clock_now()), position = waiting.position FROM {waiting}
        WHERE events.customer_id = waiting.customer_id AND events.id = waiting.id {of}
        RETURNING events.id
    """,
        waiting=waiting,
        of=of,
    )


# The customers among $1 with the oldest waiting events.
CUSTOMERS_WAITING = """
    SELECT customer_id FROM events WHERE fanned_out_at IS NULL AND customer_id = ANY($1::int[]) ORDER BY id LIMIT 500
"""


_FIELDS = {field.encode_name: field.name for field in msgspec.structs.fields(OrderRecord)}


async def rewrite_event(
    connection: Connection, order: tuple[int, int], placed_at: datetime, changed: Mapping[str, str | None]
) -> None:
    """Changes members of the `order.created` event of an order that was placed at `placed_at`.

    `changed` has the new values by the names of the fields of OrderRecord. The order's other events stay as they are.
    """
    rows = await connection.fetch(_BODIES, *order, ORDER_CREATED.name, placed_at)
    for row in rows:
        body = msgspec.json.decode(row["body"])
        rewritten = {member: changed.get(_FIELDS.get(member, ""), value) for member, value in body.items()}
        await connection.execute(_REWRITE, order[0], row["id"], msgspec.json.encode(rewritten))


_BODIES_OF_LINES = """
    SELECT id, body FROM events
    WHERE customer_id = $1 AND order_id = $2 AND line_number IS NOT NULL AND line_number = ANY($3::int[])
"""
_BODIES_OF = "SELECT id, body FROM events WHERE customer_id = $1 AND id = ANY($2::bigint[])"
# Citus calls no function that depends on settings, such as convert_from, for the rows of an UPDATE.
# ANY, as a plan for any customer expects each to have few rows, and would read all of a large one.
_REWRITE_ALL = """
    UPDATE events SET body = rewritten.body FROM unnest($2::bigint[], $3::bytea[]) AS rewritten (id, body)
    WHERE events.customer_id = $1 AND events.id = rewritten.id AND events.id = ANY($2::bigint[])
"""


async def erase_recipients_of_lines(connection: Connection, order: tuple[int, int], numbers: Sequence[int]) -> None:
    """Erases the recipients from the events about those lines of an order."""
    await _erase_recipients(connection, order[0], await connection.fetch(_BODIES_OF_LINES, *order, list(numbers)))


async def erase_recipients_of(connection: Connection, events: Iterable[tuple[int, int]]) -> None:
    """Erases the recipients from events about lines, each given by customer and id."""
    of_customers: defaultdict[int, list[int]] = defaultdict(list)
    for customer_id, event_id in events:
        of_customers[customer_id].append(event_id)
    for customer_id, ids in of_customers.items():
        await _erase_recipients(connection, customer_id, await connection.fetch(_BODIES_OF, customer_id, ids))


async def _erase_recipients(connection: Connection, customer_id: int, rows: Sequence[Row]) -> None:
    bodies = [msgspec.json.encode(msgspec.json.decode(row["body"]) | {"recipient": None}) for row in rows]
    await connection.execute(_REWRITE_ALL, customer_id, [row["id"] for row in rows], bodies)


START = "start"  # the cursor before the oldest event
DAYS = 30
_BYTES = 8


class StreamedEvent(NamedTuple):
    """An event of the stream. `body` is what receivers of webhooks get."""

    position: int
    event: str
    created_at: datetime
    body: bytes

    @property
    def cursor(self) -> str:
        """Returns the position of the event for callers."""
        return base64.urlsafe_b64encode(self.position.to_bytes(_BYTES)).rstrip(b"=").decode()


def read_cursor(text: str) -> int:
    """Returns the position of a cursor. Raises InvalidRequest for anything that `StreamedEvent.cursor` does not return."""
    if text == START:
        return 0
    try:
        position = base64.b64decode(text + "=", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        position = b""
    if len(position) != _BYTES or position[0] & 0x80:
        raise InvalidRequest(f"`after` must be the `cursor` of an event, or `{START}`.")
    return int.from_bytes(position)


# The planner expects few events of a customer, and would read and sort all of them. With this condition it reads only the page.
# It then uses the index that is sorted by environment and position, and has no event without a position.
_RECENT = Fragment("""
    customer_id = $1 AND position IS NOT NULL AND created_at > (SELECT clock_now()) - $5 * interval '1 day'
""")
_AFTER = compose(
    """
    SELECT position, event, created_at, body FROM events
    WHERE {recent} AND environment <= $2 AND (environment, position) > ($2, $3) ORDER BY environment, position LIMIT $4
    """,
    recent=_RECENT,
)
_NEWEST = compose(
    """
    SELECT position, event, created_at, body FROM events
    WHERE {recent} AND environment >= $2 AND (environment, position) < ($2, $3) ORDER BY environment DESC, position DESC LIMIT $4
    """,
    recent=_RECENT,
)
_PAST_ALL = 2**63 - 1


async def read_stream(connection: Connection, place: Place, *, after: int | None, limit: int) -> list[StreamedEvent]:
    """Returns the events after a position, oldest first; if `after` is None, the newest events, newest first."""
    query, position = (_NEWEST, _PAST_ALL) if after is None else (_AFTER, after)
    rows = await connection.fetch(query, *place, position, limit, DAYS)
    return [StreamedEvent(*row) for row in rows]
