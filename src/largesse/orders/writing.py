"""Writing placed orders: all rows of a batch in a few statements, whatever its size.

Rows travel as one JSON array a statement: msgspec writes it in a fraction of the time that the driver takes to encode
an array for each column, and the columns are named where they are read. The lines of large orders, which are the many, go as arrays of columns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain, islice, repeat
from operator import attrgetter

import msgspec

from largesse.chains import Chain
from largesse.database import Connection, beside_of, is_spread
from largesse.delivery.outbox import new_mail_jobs
from largesse.events import ORDER_CREATED, new_events
from largesse.funding import entry_arguments, new_balances, new_entries
from largesse.lines.writing import LineColumns, LineRow, insert_lines, new_lines, write_columns
from largesse.orders.horizon import drawn_ids
from largesse.orders.kept import KeptOrder, new_orders, written_orders
from largesse.orders.order import Order, Placed
from largesse.orders.record import TOLD_COLUMNS, order_record
from largesse.orders.rules import BatchContext, Decided
from largesse.orders.spending import add_spending
from largesse.orders.writing_at_home import EVENT_BODY, Rows, write_at_home

_encode = msgspec.json.Encoder().encode
# Lines of large orders that go in one statement: of 100 instead, they take a third more of the processor.
_ROWS_AT_ONCE = 500
# Of these, lines whose codes are sealed before other requests get their turn: a millisecond.
_SEALED_AT_ONCE = 100


async def write_orders(
    connection: Connection,
    chain: Chain,
    decided: Decided,
    context: BatchContext,
    *,
    ids: Sequence[int] | None = None,
) -> list[Placed]:
    """Writes the orders of a batch, all their rows by one statement; the caller commits.

    Those are the orders, their lines unless they were written before under `ids`, which else are drawn here, their events, the mail jobs of those that are emailed, and the ledger's
    entries with the balances they leave. Orders go in by the caller's reference, so that two batches that share references
    wait for each other in one direction only. Where customers are spread, a batch is of one, and it takes a statement for each table.
    """
    at = context.now
    heads = {account_id: account.head for account_id, account in context.accounts.items()}
    entries, *balances = entry_arguments(chain, heads, decided.entries, at)
    by_reference = sorted(enumerate(decided.placed, 1), key=_reference_of)
    beside = [_BesideOrder(place, _event_after_id(order.kept, at)) for place, order in by_reference]
    lines = [LineRow(*line) for line in _lines(enumerate(decided.placed, 1))] if ids is None else []
    rows = Rows(
        at=at,
        orders=_encode([order.kept for _, order in by_reference]).decode(),
        beside=_encode(beside).decode(),
        lines=_encode(lines).decode(),
        entries=entries,
        balances=balances,
    )
    if is_spread(connection):
        await write_at_home(connection, decided, rows, ids)
    else:
        count = len(decided.placed)
        await connection.execute(
            _WRITE_ORDERS,
            at,
            entries,
            *balances,
            rows.orders,
            rows.lines,
            ORDER_CREATED.name,
            ids,
            count,
            rows.beside,
        )
    await add_spending(connection, decided.spent, at)
    return [Placed(order, at) for order in decided.placed]


async def draw_ids(connection: Connection, count: int) -> list[int]:
    """New ids for orders whose lines are written before they are."""
    ids: list[int] = await beside_of(connection).fetchval(f"SELECT {drawn_ids('$1::int')}", count)
    return ids


class _BesideOrder(msgspec.Struct):
    """What is written with an order: its place, which stands for its id, and the body of its event from there on."""

    place: int
    event_after_id: str


def _reference_of(place_and_order: tuple[int, Order]) -> tuple[int, str, str]:
    kept = place_and_order[1].kept
    return kept.customer_id, kept.environment, kept.external_reference or ""


def _event_after_id(order: KeptOrder, at: datetime) -> str:
    """The order record in JSON but for the id that it begins with, which the database will draw."""
    record = _encode(order_record(0, _told(order), at)).decode()
    assert record.startswith(_NO_ID), "an order record begins with its id"
    return record[len(_NO_ID) :]


_told = attrgetter(*TOLD_COLUMNS)
_NO_ID = '{"id":0'
_DRAWN_ID = "(SELECT ids FROM drawn)[place]"
_WRITE_ORDERS = f"""
    WITH drawn AS MATERIALIZED (
        SELECT coalesce($10::int[], {drawn_ids("$11::int")}) AS ids
    ), new AS MATERIALIZED (
        {new_orders("$7", "$12", order_id=_DRAWN_ID)}
    ),
    new_lines AS ({new_lines("$8", order_id=_DRAWN_ID)}),
    new_events AS ({new_events("new", order_id="id", event="$9", body=EVENT_BODY, at="$1")}),
    new_mail_jobs AS ({new_mail_jobs("new", "$1")}),
    new_entries AS ({new_entries("$1", "$2", order_id="(SELECT ids FROM drawn)[order_id]")}),
    new_balances AS ({new_balances("$3", "$4", "$5", "$6")})
    {written_orders("new", "$1")}
"""  # noqa: S608 - constants


async def write_lines(connection: Connection, orders: Iterable[tuple[int, Order]]) -> None:
    """Writes the lines of large orders under the ids given, one row for each code.

    In pieces: while the server writes one, the codes of the next are sealed, and other requests get their turn.
    """
    wanted = list(orders)
    lines = _lines(wanted)
    taking = asyncio.create_task(_take(lines))
    while piece := await taking:
        taking = asyncio.create_task(_take(lines))
        if is_spread(connection):
            await insert_lines(connection, piece, account_id=wanted[0][1].account_ids[1])
        else:
            await write_columns(connection, piece)


async def _take(lines: Iterator[LineColumns]) -> list[LineColumns]:
    """The next piece; taking lines seals their codes."""
    piece: list[LineColumns] = []
    while len(piece) < _ROWS_AT_ONCE and (some := list(islice(lines, _SEALED_AT_ONCE))):
        piece += some
        await asyncio.sleep(0)
    return piece


def _lines(orders: Iterable[tuple[int, Order]]) -> Iterator[LineColumns]:
    """The lines of orders under the ids given, or what stands for them, in the order of their columns."""
    for order_id, order in orders:
        for number, ((email, name), code) in enumerate(zip(_addressees(order), order.sealed, strict=True), 1):
            yield order.kept.customer_id, order_id, number, email, name, code.lookup, code.sealed


def _addressees(order: Order) -> Iterable[tuple[str | None, str | None]]:
    """The address and name of each line of an order, in the order of its codes: as they are asked for, for they may be 5,000."""
    if not order.recipients:
        return repeat((None, None), order.code_count)
    addressees, quantities = map(_addressee, order.recipients), map(_quantity, order.recipients)
    return chain.from_iterable(map(repeat, addressees, quantities))


_addressee = attrgetter("email", "name")
_quantity = attrgetter("quantity")
