"""Writing placed orders: all rows of a batch in a few statements, whatever its size.

Rows travel as one JSON array a statement: msgspec writes it in a fraction of the time that the driver takes to encode
an array for each column, and the columns are named where they are read. Lines, which are the many, go by COPY.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain, islice, repeat
from operator import attrgetter

import msgspec

from largesse.chains import Chain
from largesse.database import Connection, is_spread
from largesse.delivery.outbox import mail_jobs_cte
from largesse.events import ORDER_CREATED, recorded_cte
from largesse.funding import entry_arguments, entry_ctes
from largesse.lines.writing import LineColumns, LineRow, copy_lines, lines_cte
from largesse.orders.horizon import drawn_ids
from largesse.orders.kept import COLUMNS, KeptOrder, sql_columns
from largesse.orders.order import Order, Placed
from largesse.orders.record import TOLD_COLUMNS, order_record
from largesse.orders.rules import BatchContext, Decided
from largesse.orders.spending import add_spending

_encode = msgspec.json.Encoder().encode
_ROWS_AT_ONCE = 100
_PIECES_AHEAD = 2


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
    wait for each other in one direction only.
    """
    at = context.now
    heads = {account_id: account.head for account_id, account in context.accounts.items()}
    by_reference = sorted(enumerate(decided.placed, 1), key=_reference_of)
    orders = [order.kept for _, order in by_reference]
    beside = [_BesideOrder(place, _event_after_id(order.kept, at)) for place, order in by_reference]
    lines = [] if ids else [LineRow(*line) for line in _lines(enumerate(decided.placed, 1))]
    spread = is_spread(connection)
    if spread and ids is None:
        ids = await draw_ids(connection, len(orders))
    await connection.execute(
        _WRITE_ORDERS[spread],
        at,
        *entry_arguments(chain, heads, decided.entries, at),
        _encode(orders).decode(),
        _encode(lines).decode(),
        ORDER_CREATED.name,
        ids,
        orders[0].customer_id if spread else len(orders),
        _encode(beside).decode(),
    )
    await add_spending(connection, decided.spent, at)
    return [Placed(order, at) for order in decided.placed]


async def draw_ids(connection: Connection, count: int) -> list[int]:
    """New ids for orders whose lines are written before they are."""
    ids: list[int] = await connection.fetchval(f"SELECT {drawn_ids('$1::int')}", count)
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
_COLUMNS = ", ".join(COLUMNS)
_NO_ID = '{"id":0'
_BODY = f"'{_NO_ID[:-1]}' || id || event_after_id"


def _write_orders(pin: str) -> str:
    """SQL that writes orders and all that belongs to them; with a `pin`, the placeholder of their one customer, on its node.

    That node is then the only one that hears of it: nothing is worked out once for several of the parts, as it would be told to
    all nodes, and the ids have been drawn before.
    """
    drawn_id = "($10::int[])[place]" if pin else "(SELECT ids FROM drawn)[place]"
    drawn = f"SELECT coalesce($10::int[], {drawn_ids('$11::int')}) AS ids"
    return f"""
        WITH {"" if pin else f"drawn AS MATERIALIZED ({drawn}),"}
        new AS {"NOT" if pin else ""} MATERIALIZED (
            SELECT {drawn_id} AS id, new.* FROM ROWS FROM (
                json_to_recordset($7::json) AS ({sql_columns()}),
                json_to_recordset($12::json) AS (place integer, event_after_id text)) AS new
        ),
        {lines_cte("$8", order_id=drawn_id)},
        {recorded_cte("new", order_id="id", event="$9", body=_BODY, at="$1")},
        {mail_jobs_cte("new", "$1")},
        {entry_ctes("$1", ("$2", "$3", "$4", "$5", "$6"), order_id=drawn_id.replace("place", "order_id"), pin=pin)}
        INSERT INTO orders (id, created_at, {_COLUMNS}) SELECT id, $1, {_COLUMNS} FROM new
    """  # noqa: S608 - constants


# By whether customers are spread over nodes.
_WRITE_ORDERS = {False: _write_orders(""), True: _write_orders("$11")}


async def write_lines(connection: Connection, orders: Iterable[tuple[int, Order]]) -> None:
    """Writes the lines of large orders under the ids given, one row for each code.

    By COPY, which for many rows takes less time than any INSERT, and in pieces: while the server writes one, the codes of
    the next are sealed, and other requests get their turn.
    """
    lines = _lines(orders)
    pieces = deque(asyncio.create_task(_take(lines)) for _ in range(_PIECES_AHEAD))
    while piece := await pieces.popleft():
        pieces.append(asyncio.create_task(_take(lines)))
        await copy_lines(connection, piece)


async def _take(lines: Iterator[LineColumns]) -> list[LineColumns]:
    """The next piece; taking lines seals their codes."""
    return list(islice(lines, _ROWS_AT_ONCE))


def _lines(orders: Iterable[tuple[int, Order]]) -> Iterator[LineColumns]:
    """The lines of orders under the ids given, or what stands for them, in the order of their columns."""
    for order_id, order in orders:
        for number, ((email, name), code) in enumerate(zip(_addressees(order), order.sealed, strict=True), 1):
            yield order.kept.customer_id, order_id, number, email, name, code.lookup, code.sealed


def _addressees(order: Order) -> Iterable[tuple[str | None, str | None]]:
    """The address and name of each line of an order, in the order of its codes."""
    if not order.recipients:
        return repeat((None, None), order.code_count)
    return chain.from_iterable(repeat((r.email, r.name), r.quantity) for r in order.recipients)
