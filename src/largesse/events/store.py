"""The table `events`: an event is written in the transaction that it is about, fanned out to subscribers once, and pruned. Callers that pull read the
stream of a customer: every event of the last 30 days, in the order in which it was recorded.

The parts of statements (common table expressions) allow more work in the same round trip. The order in an event is rewritten when personal
data is erased.

The table `order_changes`: which orders have changed since the read models last read them. A row does not say what changed: the read models read
the order as it is now, so several changes count as one. A row is written in the transaction that changes the order. When an order is placed,
its event is enough.
"""

import base64
import binascii
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from largesse.base.errors import InvalidRequest
from largesse.db.fragments import NOTHING, Fragment, compose, grouped
from largesse.db.pool import Connection, Row
from largesse.db.scope import Place
from largesse.db.shard_groups import Customers
from largesse.db.sharding import arguments
from largesse.db.statements import Part, insert
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


# The customers among $1 with the newest changes of orders.
CUSTOMERS_CHANGED = """
    SELECT customer_id FROM order_changes WHERE customer_id = ANY($1::int[]) ORDER BY id DESC LIMIT 500
"""
_CHANGED = "INSERT INTO order_changes (customer_id, order_id, changed_at) VALUES ($1, $2, clock_now())"
_RECORD = """
    INSERT INTO order_changes (customer_id, order_id, texts, changed_at)
    SELECT customer_id, order_id, $3, (SELECT clock_now())
    FROM unnest($1::int[], $2::int[]) AS changed (customer_id, order_id)
"""
_NEWEST_CHANGES = grouped(
    """
    SELECT id, customer_id, order_id, texts FROM order_changes
    WHERE (texts OR NOT $2) {within customer_id} ORDER BY id DESC LIMIT $1
    """,
    "$3",
)
# BETWEEN bounds the scan of the index. If VACUUM last found the queue empty, the planner takes it for empty.
# Then it would compare each id of a list with each waiting row. `+ 0` prevents that.
_REMOVE = """
    DELETE FROM order_changes WHERE customer_id = ANY($1::int[]) AND id BETWEEN $3 AND $4 AND id + 0 = ANY($2::bigint[])
"""
# For changes with texts that still wait, such as after an interrupted `rebuild-reports`: every order is about to be recorded again.
_FORGET_TEXTS = "DELETE FROM order_changes WHERE texts"
_CHANGE_ALL = """
    INSERT INTO order_changes (customer_id, order_id, texts, changed_at)
    SELECT customer_id, id, true, (SELECT clock_now()) FROM orders ORDER BY id
"""
_LAST = "SELECT max(id) FROM order_changes WHERE id <= $1 AND texts"
_LAST_OF_ALL = "SELECT coalesce(max(id), 0) FROM order_changes"


class Change(NamedTuple):
    """An order that has changed; with `texts`, its names and texts may have changed too."""

    id: int
    customer_id: int
    order_id: int
    texts: bool


def changed_cte(orders: Fragment) -> Fragment:
    """Returns the part of a statement that records changes of orders. `orders` is a query of constants for their `customer_id` and `order_id`."""
    return compose(
        """
        changed_orders AS (
            INSERT INTO order_changes (customer_id, order_id, changed_at)
            SELECT customer_id, order_id, (SELECT clock_now()) FROM ({orders}) AS changed)
    """,
        orders=orders,
    )


def changed(customer_id: int, order_id: int) -> Part:
    """Returns the part of a statement that records the change of an order."""
    return Part(_CHANGED, customer_id, order_id)


async def record_changes(connection: Connection, orders: Iterable[tuple[int, int]], *, texts: bool = False) -> None:
    """Records that orders have changed, each by the ids of customer and order. Call it inside the transaction that changes them."""
    wanted = sorted(orders)
    customer_ids, order_ids = [customer_id for customer_id, _ in wanted], [order_id for _, order_id in wanted]
    await connection.execute(_RECORD, customer_ids, order_ids, texts)


async def read_changes(
    connection: Connection, limit: int, customers: Customers = None, *, texts: bool = False
) -> list[Change]:
    """Returns the newest changes, at most `limit`, so that recent changes do not wait behind a backlog. With `texts`, only changes with texts."""
    rows = await connection.fetch(_NEWEST_CHANGES.of(customers), limit, texts, *arguments(customers))
    return [Change(*row) for row in rows]


async def remove_changes(connection: Connection, changes: Sequence[Change]) -> None:
    """Deletes changes. Call it inside the transaction that updates the read models."""
    customer_ids, ids = {change.customer_id for change in changes}, [change.id for change in changes]
    await connection.execute(_REMOVE, sorted(customer_ids), ids, min(ids), max(ids))


async def last_change(connection: Connection, *, up_to: int) -> int | None:
    """Returns the id of the last change with texts and an id up to `up_to`; None if there is none."""
    last_id: int | None = await connection.fetchval(_LAST, up_to)
    return last_id


async def change_all_orders(connection: Connection) -> tuple[int, int]:
    """Records every order as changed. Returns how many orders there are, and the id of the last change."""
    await connection.execute(_FORGET_TEXTS)
    done = await connection.execute(_CHANGE_ALL)
    return int(done.split()[-1]), await connection.fetchval(_LAST_OF_ALL)
