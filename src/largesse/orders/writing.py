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

import msgspec

from largesse.database import Connection
from largesse.delivery.outbox import mail_jobs_cte
from largesse.events import ORDER_CREATED, recorded_cte
from largesse.funding import posting_arguments, posting_ctes
from largesse.lines.writing import LineColumns, LineRow, copy_lines, lines_cte
from largesse.orders.horizon import drawn_ids
from largesse.orders.order import Order, Placed
from largesse.orders.rules import Decided
from largesse.orders.shapes import order_record

_encode = msgspec.json.Encoder().encode
_ROWS_AT_ONCE = 100
_PIECES_AHEAD = 2


async def write_orders(
    connection: Connection, decided: Decided, at: datetime, *, ids: Sequence[int] | None = None
) -> list[Placed]:
    """Writes the orders of a batch, all their rows by one statement; the caller commits.

    Those are the orders, their lines unless they were written before under `ids`, which else are drawn here, their events, the mail jobs of those that are emailed, and the ledger's
    entries with the balances they leave. Orders go in by the caller's reference, so that two batches that share references
    wait for each other in one direction only.
    """
    rows = [_order_row(place, order, at) for place, order in enumerate(decided.placed, 1)]
    rows.sort(key=lambda row: (row.customer_id, row.environment, row.external_reference or ""))
    lines = [LineRow(*line) for line in _lines(enumerate(decided.placed, 1))] if ids is None else []
    await connection.execute(
        _WRITE_ORDERS,
        at,
        *posting_arguments(decided.postings),
        _encode(rows).decode(),
        _encode(lines).decode(),
        ORDER_CREATED.name,
        ids,
        len(rows),
    )
    return [Placed(order, at) for order in decided.placed]


async def draw_ids(connection: Connection, count: int) -> list[int]:
    """New ids for orders whose lines are written before they are."""
    ids: list[int] = await connection.fetchval(f"SELECT {drawn_ids('$1::int')}", count)
    return ids


class _OrderRow(msgspec.Struct):
    """A row of `orders` but for its id, for which its place stands, and the body of its event from there on."""

    place: int
    reference: str
    customer_id: int
    environment: str
    service_account_id: int
    source: str
    external_reference: str | None
    gift_selection: str
    product_id: int | None
    collection_id: int | None
    template_id: int | None
    country: str
    currency: str
    value_minor: int
    total_minor: int
    code_count: int
    recipient_count: int
    delivery_mode: str
    wrapping_key: str
    from_name: str | None
    message: str | None
    scheduled_for: datetime | None
    expiry_after_days: int | None
    account_id: int | None
    api_key_id: int
    address: str | None
    event_after_id: str


def _order_row(place: int, order: Order, at: datetime) -> _OrderRow:
    return _OrderRow(
        place,
        order.reference,
        order.principal.customer_id,
        order.principal.environment,
        order.principal.service_account_id,
        order.wanted.source,
        order.wanted.external_reference,
        order.gift.selection,
        order.gift.product_id,
        order.gift.collection_id,
        order.gift.template_id,
        order.gift.country,
        order.gift.currency,
        order.gift.value_minor,
        order.total_minor,
        order.code_count,
        order.wanted.recipient_count,
        order.wanted.delivery_mode,
        order.wrapping_key,
        order.wanted.from_name,
        order.wanted.message,
        order.wanted.scheduled_for,
        order.wanted.expiry_after_days,
        order.account_id,
        order.principal.key_id,
        order.address,
        _event_after_id(order, at),
    )


def _event_after_id(order: Order, at: datetime) -> str:
    """The order record in JSON but for the id that it begins with, which the database will draw."""
    record = _encode(order_record(order, 0, at)).decode()
    assert record.startswith(_NO_ID), "an order record begins with its id"
    return record[len(_NO_ID) :]


_NO_ID = '{"id":0'
_BODY = f"'{_NO_ID[:-1]}' || id || event_after_id"
_DRAWN_ID = "(SELECT ids FROM drawn)[place]"
_WRITE_ORDERS = f"""
    WITH drawn AS MATERIALIZED (
        SELECT coalesce($8::int[], {drawn_ids("$9::int")}) AS ids
    ), new AS MATERIALIZED (
        SELECT {_DRAWN_ID} AS id, new.* FROM json_to_recordset($5::json) AS new (
            place integer, reference text, customer_id integer, environment text, service_account_id integer,
            source text, external_reference text, gift_selection text, product_id integer,
            collection_id integer, template_id integer, country text, currency text, value_minor bigint,
            total_minor bigint, code_count integer, recipient_count integer, delivery_mode text,
            wrapping_key text, from_name text, message text, scheduled_for timestamptz,
            expiry_after_days integer, account_id integer, api_key_id integer, address inet, event_after_id text)
    ),
    {lines_cte("$6", order_id=_DRAWN_ID)},
    {recorded_cte("new", order_id="id", event="$7", body=_BODY, at="$1")},
    {mail_jobs_cte("new", "$1")},
    {posting_ctes("$1", "$2", "$3", "$4", order_id="(SELECT ids FROM drawn)[order_id]")}
    INSERT INTO orders (
        id, reference, customer_id, environment, service_account_id, source, external_reference,
        gift_selection, product_id, collection_id, template_id, country, currency, value_minor,
        total_minor, code_count, recipient_count, delivery_mode, wrapping_key, from_name, message,
        scheduled_for, expiry_after_days, account_id, api_key_id, address, created_at)
    SELECT
        id, reference, customer_id, environment, service_account_id, source, external_reference,
        gift_selection, product_id, collection_id, template_id, country, currency, value_minor,
        total_minor, code_count, recipient_count, delivery_mode, wrapping_key, from_name, message,
        scheduled_for, expiry_after_days, account_id, api_key_id, address, $1
    FROM new
"""  # noqa: S608 - constants


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
            yield order_id, number, email, name, code.lookup, code.sealed


def _addressees(order: Order) -> Iterable[tuple[str | None, str | None]]:
    """The address and name of each line of an order, in the order of its codes."""
    if not order.wanted.recipients:
        return repeat((None, None), order.code_count)
    return chain.from_iterable(repeat((r.email, r.name), r.quantity) for r in order.wanted.recipients)
