"""Writes placed orders: all rows of a batch in a few statements, whatever its size.

Rows travel as one JSON array per statement: msgspec writes it in a fraction of the time that the driver takes to encode
an array for each column. The lines of large orders go as arrays of columns.

With distributed customers, a batch is of one customer, and each table takes a statement for that customer's node: the
coordinator would split a statement that writes several tables, and commit it in two phases.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from operator import attrgetter

import msgspec

from largesse.base.clock import passed_s
from largesse.budgets.store import charge_on_node, new_charges
from largesse.db.fragments import NOTHING, Fragment, compose, join
from largesse.db.pipeline import Statement
from largesse.db.pool import Connection, coordinator_of, is_distributed
from largesse.encryption.chain import Chain
from largesse.events.kinds import ORDER_CREATED
from largesse.events.store import NEXT_EVENT_ID, EventColumns, insert_events, new_events
from largesse.jobs.outbox import insert_mail_jobs, new_mail_jobs
from largesse.ledger.posting import NEXT_ENTRY_ID, Posting, mark_entries, new_balances, new_entries, post_by_shard_group
from largesse.lines.store import LineColumns, LineRow, insert_lines, new_lines, write_columns
from largesse.orders.follow_ups import FollowUpRow, Schedule, insert_follow_ups, new_follow_ups
from largesse.orders.ids import drawn_ids
from largesse.orders.marks import order_digest
from largesse.orders.order import (
    RESPONSE_COLUMNS,
    Order,
    OrderRow,
    SpendingKey,
    insert_orders,
    new_orders,
    order_record,
    written_orders,
)
from largesse.orders.rules import BatchContext, Decided

_encode = msgspec.json.Encoder().encode


class Pace(msgspec.Struct, frozen=True):
    """How the lines of large orders are written."""

    rows: int  # lines of one statement
    codes: int  # codes that are encrypted before other requests run
    rest: float = 0.0  # the pause after a statement, as a share of the time that it took


# Statements of 100 lines take a third more processor time. To encrypt 100 codes takes a millisecond.
ALONE = Pace(rows=500, codes=100)
# At the pace of ALONE, small orders would wait for a core, and for the event loop, in each of their steps.
BESIDE_SMALL_ORDERS = Pace(rows=250, codes=25, rest=0.5)
_MAX_REST_S = 0.01


def by_reference(orders: Sequence[Order]) -> list[tuple[int, Order]]:
    """Returns the orders with their positions from 1, sorted by the caller's reference, so that two batches with the same ones cannot deadlock."""
    return sorted(enumerate(orders, 1), key=_reference_of)


def _reference_of(place_and_order: tuple[int, Order]) -> tuple[int, str, str]:
    row = place_and_order[1].row
    return row.customer_id, row.environment, row.external_reference or ""


def event_after_id(order: OrderRow, at: datetime) -> str:
    """Returns the end of an event's body: the whole body is EVENT_BEFORE_ID, the order's id and this JSON."""
    record = _encode(order_record(0, _response_columns(order), at)).decode()
    assert record.startswith(_NO_ID), "an order record begins with its id"
    return record[len(_NO_ID) :]


_response_columns = attrgetter(*RESPONSE_COLUMNS)
EVENT_BEFORE_ID = '{"id":'
_NO_ID = f"{EVENT_BEFORE_ID}0"


def lines_of(orders: Iterable[tuple[int, Order]]) -> Iterator[LineColumns]:
    """Yields the columns of each line of the orders, which come with their ids or positions. Encrypts the code of each line."""
    for order_id, order in orders:
        for number, ((email, name), code) in enumerate(zip(order.addressees(), order.sealed, strict=True), 1):
            yield order.row.customer_id, order_id, number, email, name, code.lookup, code.sealed


async def write_orders(
    connection: Connection, chain: Chain, decided: Decided, context: BatchContext, *, ids: Sequence[int] | None = None
) -> Statement | None:
    """Writes the orders of a batch with all their rows by one statement, which is returned: the caller runs it and commits.

    The rows are the orders, their events, the mail jobs of emailed orders, the ledger entries with the new balances, and the lines, unless those
    were written before under `ids`. With distributed customers it takes a statement for each table, all of which have run: returns None.
    """
    at = context.now
    digests: dict[str | None, str] = {order.reference: order_digest(chain, order, at) for order in decided.placed}
    posting = mark_entries(chain, context.accounts, decided.entries, at, digests)
    await _add_spending(connection, decided.spent, at)
    if is_distributed(connection):
        await charge_on_node(connection, decided.charges)
        await write_by_shard_group(connection, decided.placed, posting, at, ids)
        return None
    new = by_reference(decided.placed)
    beside = [_BesideOrder(place, event_after_id(order.row, at)) for place, order in new]
    lines = lines_of(enumerate(decided.placed, 1)) if ids is None else ()
    rows = _encode([order.row for _, order in new]).decode(), _encode([LineRow(*line) for line in lines]).decode()
    more = ORDER_CREATED.name, ids, len(new), _encode(beside).decode()
    parts = tuple(filter(None, (list(_follow_ups(decided.placed, at)), decided.charges)))
    sql = _WRITE_ORDERS[any(order.follow_up for order in decided.placed), bool(decided.charges)]
    return Statement(sql, (at, *posting.arguments, *rows, *more, *(_encode(part).decode() for part in parts)))


def _follow_ups(orders: Iterable[Order], at: datetime) -> Iterator[FollowUpRow]:
    for place, order in enumerate(orders, 1):
        if order.follow_up is None:
            continue
        row, asked, sent_at = order.row, order.follow_up, order.row.scheduled_for or at
        due_at = asked.claim_by  # a code batch has no recipients to remind
        if not row.is_batch:
            due_at = Schedule(row.environment, row.country, sent_at, asked.claim_by, asked.reminder_days).due_at(at)
        yield FollowUpRow(place, row.customer_id, row.environment, asked.claim_by, asked.reminder_days, sent_at, due_at)


async def draw_ids(connection: Connection, count: int) -> list[int]:
    """Returns new ids for orders whose lines are written first."""
    ids: list[int] = await coordinator_of(connection).fetchval(_DRAW_IDS, count)
    return ids


class _BesideOrder(msgspec.Struct):
    """The data that is written with an order: its position, from which its id follows, and the end of its event's body."""

    place: int
    event_after_id: str


# The body of an order's event. The same statement draws the order's id.
_EVENT_BODY = compose("'{before_id}' || id || event_after_id", before_id=Fragment(EVENT_BEFORE_ID))
_NEW_EVENTS = new_events(
    Fragment("new"), order_id=Fragment("id"), event=Fragment("$9"), body=_EVENT_BODY, at=Fragment("$1")
)
_DRAWN_ID = Fragment("(SELECT ids FROM drawn)[place]")
_DRAWN_ID_OF_ENTRY = Fragment("(SELECT ids FROM drawn)[order_id]")
_DRAW_IDS = compose("SELECT {ids}", ids=drawn_ids(Fragment("$1::int")))


def _writing(beside: Fragment) -> Fragment:
    """Returns the statement that writes orders. `beside` has additional parts."""
    return compose(
        """
    WITH drawn AS MATERIALIZED (
        SELECT coalesce($10::int[], {drawn}) AS ids
    ), new AS MATERIALIZED (
        {orders}
    ),
    new_lines AS ({lines}),
    new_events AS ({events}),
    new_mail_jobs AS ({mail_jobs}),
    new_entries AS ({entries}),
    new_balances AS ({balances}){beside}
    {written}
    """,
        drawn=drawn_ids(Fragment("$11::int")),
        orders=new_orders("$7", "$12", order_id=_DRAWN_ID),
        lines=new_lines("$8", order_id=_DRAWN_ID),
        events=_NEW_EVENTS,
        mail_jobs=new_mail_jobs(Fragment("new"), Fragment("$1")),
        entries=new_entries("$1", "$2", order_id=_DRAWN_ID_OF_ENTRY),
        balances=new_balances("$3", "$4", "$5", "$6"),
        beside=beside,
        written=written_orders(Fragment("new"), "$1"),
    )


def _follow_up_part(placeholder: str) -> Fragment:
    return compose(", new_follow_ups AS ({follow_ups})", follow_ups=new_follow_ups(placeholder, order_id=_DRAWN_ID))


# The keys say whether any order of the batch has follow-ups, and whether any counts towards a budget.
_WRITE_ORDERS = {
    (False, False): _writing(NOTHING),
    (True, False): _writing(_follow_up_part("$13")),
    (False, True): _writing(new_charges("$13")),
    (True, True): _writing(join(NOTHING, (_follow_up_part("$13"), new_charges("$14")))),
}


async def write_lines(
    connection: Connection, orders: Iterable[tuple[int, Order]], pace: Callable[[], Pace] = lambda: ALONE
) -> None:
    """Writes the lines of large orders under the given ids, one row for each code.

    Works in pieces: while the server writes one piece, the codes of the next are encrypted, and other requests run. Asks for
    the pace before each piece.
    """
    lines = lines_of(orders)
    taking = asyncio.create_task(_take(lines, pace()))
    while piece := await taking:
        began, current = passed_s(), pace()
        taking = asyncio.create_task(_take(lines, current))
        if is_distributed(connection):
            await insert_lines(connection, piece)
        else:
            await write_columns(connection, piece)
        if current.rest:
            await asyncio.sleep(min(current.rest * (passed_s() - began), _MAX_REST_S))


async def _take(lines: Iterator[LineColumns], pace: Pace) -> list[LineColumns]:
    """Returns the next piece of lines. Taking a line encrypts its code."""
    piece: list[LineColumns] = []
    while len(piece) < pace.rows and (some := list(islice(lines, pace.codes))):
        piece += some
        await asyncio.sleep(0)
    return piece


async def write_by_shard_group(
    connection: Connection, orders: Sequence[Order], posting: Posting, at: datetime, ids: Sequence[int] | None
) -> None:
    """Writes the rows of a batch of one customer. With `ids`, the lines were written before, with these order ids."""
    count = len(orders)
    drawn = await coordinator_of(connection).fetchrow(_DRAW, 0 if ids else count, count, len(posting.rows))
    assert drawn is not None, "a row of arrays"
    if ids is None:
        ids = drawn["orders"]
        await insert_lines(connection, list(lines_of(zip(ids, orders, strict=True))))
    new = [(ids[place - 1], order.row) for place, order in by_reference(orders)]
    await insert_events(connection, list(_events(drawn["events"], new, at)))
    await insert_mail_jobs(
        connection,
        [
            (order.customer_id, order_id, order.environment, order.scheduled_for or at)
            for order_id, order in new
            if not order.is_batch
        ],
    )
    await post_by_shard_group(connection, posting, at, drawn["entries"], ids)
    await insert_orders(connection, new, at)
    await insert_follow_ups(connection, [(ids[row.place - 1], row) for row in _follow_ups(orders, at)])


def _events(event_ids: Iterable[int], orders: Iterable[tuple[int, OrderRow]], at: datetime) -> Iterable[EventColumns]:
    for event_id, (order_id, order) in zip(event_ids, orders, strict=True):
        body = f"{EVENT_BEFORE_ID}{order_id}{event_after_id(order, at)}".encode()
        yield event_id, order_id, order.customer_id, order.environment, ORDER_CREATED.name, body, at


_DRAW = compose(
    """
    SELECT {orders} AS orders,
           ARRAY(SELECT {event_id} FROM generate_series(1, $2::int)) AS events,
           ARRAY(SELECT {entry_id} FROM generate_series(1, $3::int)) AS entries
""",
    orders=drawn_ids(Fragment("$1::int")),
    event_id=NEXT_EVENT_ID,
    entry_id=NEXT_ENTRY_ID,
)


async def _add_spending(connection: Connection, spent: Mapping[SpendingKey, int], at: datetime) -> None:
    """Adds to the daily sums of the day of `at`, or of a later day that has begun meanwhile. Replaces sums of an earlier day."""
    if not spent:
        return
    await connection.executemany(_ADD_SPENDING, [(*key, at.date(), spent_minor) for key, spent_minor in spent.items()])


_ADD_SPENDING = """
    INSERT INTO daily_spending AS known (customer_id, service_account_id, environment, currency, day, spent_minor)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (customer_id, service_account_id, environment, currency) DO UPDATE SET
        spent_minor = excluded.spent_minor + CASE WHEN known.day >= excluded.day THEN known.spent_minor ELSE 0 END,
        day = greatest(known.day, excluded.day)
"""
