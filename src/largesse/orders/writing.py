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
from largesse.funding import posting_arguments, posting_ctes
from largesse.orders.order import Order, Placed
from largesse.orders.rules import Decided
from largesse.orders.shapes import ORDER_CREATED, order_record

_encode = msgspec.json.Encoder().encode
_ROWS_AT_ONCE = 100
_PIECES_AHEAD = 2

_Line = tuple[int, int, str | None, str | None, int, bytes]


async def write_orders(
    connection: Connection, decided: Decided, at: datetime, *, with_lines: bool
) -> list[Placed]:
    """Writes the orders of a batch, all their rows by one statement; the caller commits.

    Those are the orders, their lines if asked for, their events, the mail jobs of those that are emailed, and the ledger's
    entries with the balances they leave. Orders go in by the caller's reference, so that two batches that share references
    wait for each other in one direction only.
    """
    placed = [Placed(order_id, order, at) for order_id, order in decided.placed]
    placed.sort(key=lambda p: p.order.reference_key or (0, "", ""))
    lines = [_LineRow(*line) for line in _lines(decided.placed)] if with_lines else []
    await connection.execute(
        _WRITE_ORDERS,
        at,
        *posting_arguments(decided.postings),
        _encode([_order_row(p) for p in placed]).decode(),
        _encode(lines).decode(),
        ORDER_CREATED,
    )
    return placed


class _OrderRow(msgspec.Struct):
    """A row of `orders`, and the body of its event."""

    id: int
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
    event_body: str


def _order_row(p: Placed) -> _OrderRow:
    return _OrderRow(
        p.id,
        p.order.reference,
        p.order.principal.customer_id,
        p.order.principal.environment,
        p.order.principal.service_account_id,
        p.order.wanted.source,
        p.order.wanted.external_reference,
        p.order.gift.selection,
        p.order.gift.product_id,
        p.order.gift.collection_id,
        p.order.gift.template_id,
        p.order.gift.country,
        p.order.gift.currency,
        p.order.gift.value_minor,
        p.order.total_minor,
        p.order.code_count,
        p.order.wanted.recipient_count,
        p.order.wanted.delivery_mode,
        p.order.wrapping_key,
        p.order.wanted.from_name,
        p.order.wanted.message,
        p.order.wanted.scheduled_for,
        p.order.wanted.expiry_after_days,
        p.order.account_id,
        p.order.principal.key_id,
        p.order.address,
        _encode(order_record(p)).decode(),
    )


class _LineRow(msgspec.Struct, gc=False):
    """A row of `lines`."""

    order_id: int
    number: int
    recipient_email: str | None
    recipient_name: str | None
    code_lookup: int
    sealed: bytes


_WRITE_ORDERS = f"""
    WITH new AS MATERIALIZED (
        SELECT * FROM json_to_recordset($5::json) AS new (
            id integer, reference text, customer_id integer, environment text, service_account_id integer,
            source text, external_reference text, gift_selection text, product_id integer,
            collection_id integer, template_id integer, country text, currency text, value_minor bigint,
            total_minor bigint, code_count integer, recipient_count integer, delivery_mode text,
            wrapping_key text, from_name text, message text, scheduled_for timestamptz,
            expiry_after_days integer, account_id integer, api_key_id integer, address inet, event_body text)
    ), new_lines AS (
        INSERT INTO lines (order_id, number, recipient_email, recipient_name, code_lookup, sealed)
        SELECT order_id, number, recipient_email, recipient_name, code_lookup, decode(sealed, 'base64')
        FROM json_to_recordset($6::json) AS new (
            order_id integer, number integer, recipient_email text, recipient_name text, code_lookup bigint,
            sealed text)
    ), new_events AS (
        INSERT INTO events (order_id, customer_id, environment, event, body, created_at)
        SELECT id, customer_id, environment, $7, convert_to(event_body, 'UTF8'), $1 FROM new
    ), new_mail_jobs AS (
        INSERT INTO mail_jobs (order_id, environment, due_at)
        SELECT id, environment, coalesce(scheduled_for, $1) FROM new WHERE delivery_mode = 'send'
    ), {posting_ctes("$1", "$2", "$3", "$4")}
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

_LINE_COLUMNS = _LineRow.__struct_fields__


async def write_lines(connection: Connection, orders: Sequence[tuple[int, Order]]) -> None:
    """Writes the lines of large orders under the ids given, one row for each code.

    By COPY, which for many rows takes less time than any INSERT, and in pieces: while the server writes one, the codes of
    the next are sealed, and other requests get their turn.
    """
    lines = _lines(orders)
    pieces = deque(asyncio.create_task(_take(lines)) for _ in range(_PIECES_AHEAD))
    while piece := await pieces.popleft():
        pieces.append(asyncio.create_task(_take(lines)))
        await connection.copy_records_to_table("lines", records=piece, columns=_LINE_COLUMNS)


async def _take(lines: Iterator[_Line]) -> list[_Line]:
    """The next piece; taking lines seals their codes."""
    return list(islice(lines, _ROWS_AT_ONCE))


def _lines(orders: Sequence[tuple[int, Order]]) -> Iterator[_Line]:
    """The lines of orders under the ids given, in the order of `_LINE_COLUMNS`."""
    for order_id, order in orders:
        for number, ((email, name), code) in enumerate(zip(_addressees(order), order.sealed, strict=True), 1):
            yield order_id, number, email, name, code.lookup, code.sealed


def _addressees(order: Order) -> Iterable[tuple[str | None, str | None]]:
    """The address and name of each line of an order, in the order of its codes."""
    if not order.wanted.recipients:
        return repeat((None, None), order.code_count)
    return chain.from_iterable(repeat((r.email, r.name), r.quantity) for r in order.wanted.recipients)
