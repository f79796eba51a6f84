"""Marks of orders, which make a change of an order's row or recipients in the database detectable.

The mark of the entry that pays an order covers a digest of the order's row and its recipients, and `verify` recomputes it. When recipients are
erased or an address is corrected, the row gets two more values: the digest of the order as it was placed, and a mark of that digest together
with the order's new state. See docs/decisions/0031-marks-of-orders-and-lines.md.
"""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from ipaddress import ip_address

import msgspec

from largesse.db.fragments import compose, each
from largesse.db.pool import Connection, Row
from largesse.encryption.chain import Chain, content
from largesse.orders.order import COLUMNS, Order, OrderRow, order_row

OrderKey = tuple[int, int]  # the customer and the id of an order
Addressee = tuple[str | None, str | None]  # address and name of a line

# The most orders and codes that are read at once, unless a single order has more.
_ORDERS_AT_ONCE = 500
_CODES_AT_ONCE = 5_000


def order_digest(chain: Chain, order: Order, at: datetime) -> str:
    """Returns the digest of an order that is placed at that time."""
    recipients = list(order.addressees()) if order.recipients else []
    return chain.digest(_content(order.row, at, recipients)).hex()


async def read_digests(
    connection: Connection, chain: Chain, orders: Iterable[tuple[OrderKey, int]]
) -> dict[OrderKey, str]:
    """Returns the digests of orders as they were placed.

    Each order comes with its number of codes. Orders that are missing, or whose mark does not match, are left out.
    """
    digests = {}
    for piece in _pieces(dict(orders)):
        for row in await connection.fetch(_READ, *map(list, zip(*piece, strict=True))):
            now = _digest_now(chain, row)
            placed = row["placed_digest"]
            if placed is None:
                digests[row["customer_id"], row["id"]] = now.hex()
            elif _is_marked(chain, row, now):
                digests[row["customer_id"], row["id"]] = placed.hex()
    return digests


@asynccontextmanager
async def changing_orders(
    connection: Connection, chain: Chain, customer_id: int, order_ids: Sequence[int], *, waits: bool = False
) -> AsyncIterator[list[int]]:
    """Locks orders whose texts or recipients the block changes, and marks them afterwards. Yields the ids of the locked orders.

    Call it inside a transaction. Orders that another transaction has locked are left out unless it `waits` for them. An order that was changed
    in the database before gets no mark, so that `verify` still reports it.
    """
    held = await connection.fetch(_HOLD + ("" if waits else " SKIP LOCKED"), customer_id, list(order_ids))
    mine = [row["id"] for row in held]
    before = {row["id"]: (row, _digest_now(chain, row)) for row in await _read(connection, customer_id, mine)}
    yield mine
    marked = []
    for row in await _read(connection, customer_id, mine):
        was, digest_before = before[row["id"]]
        placed = was["placed_digest"] or digest_before
        digest = _digest_now(chain, row)
        if digest == digest_before or (was["placed_digest"] and not _is_marked(chain, was, digest_before)):
            continue
        marked.append((row["id"], placed, chain.mark(_changed(row, placed, digest))))
    if marked:
        await connection.execute(_MARK, customer_id, *map(list, zip(*marked, strict=True)))


async def _read(connection: Connection, customer_id: int, order_ids: Sequence[int]) -> Sequence[Row]:
    return await connection.fetch(_READ, [customer_id] * len(order_ids), order_ids)


def _pieces(codes: Mapping[OrderKey, int]) -> Iterable[list[OrderKey]]:
    piece: list[OrderKey] = []
    left = _CODES_AT_ONCE
    for key, count in codes.items():
        left -= count
        if piece and (left < 0 or len(piece) == _ORDERS_AT_ONCE):
            yield piece
            piece, left = [], _CODES_AT_ONCE - count
        piece.append(key)
    if piece:
        yield piece


def _digest_now(chain: Chain, row: Row) -> bytes:
    recipients = list(zip(row["emails"] or (), row["names"] or (), strict=True))
    return chain.digest(_content(order_row(row), row["created_at"], recipients))


def _is_marked(chain: Chain, row: Row, digest: bytes) -> bool:
    return chain.is_mark(_changed(row, row["placed_digest"], digest), row["mac"] or b"")


def _content(order: OrderRow, at: datetime, recipients: Sequence[Addressee]) -> bytes:
    if order.address and ":" in order.address:  # IPv6 can be written in several ways
        order = msgspec.structs.replace(order, address=str(ip_address(order.address)))
    return content("order", at, order, recipients)


def _changed(row: Row, placed: bytes, digest: bytes) -> bytes:
    return content("changed order", row["customer_id"], row["id"], placed.hex(), digest.hex())


_READ = compose(
    """
    SELECT o.id, o.created_at, {columns}, o.placed_digest, o.mac, l.emails, l.names
    FROM unnest($1::int[], $2::int[]) AS wanted (customer_id, id)
    JOIN orders o ON o.customer_id = wanted.customer_id AND o.id = wanted.id
    LEFT JOIN LATERAL (
        SELECT array_agg(recipient_email ORDER BY number) AS emails, array_agg(recipient_name ORDER BY number) AS names
        FROM lines WHERE customer_id = o.customer_id AND order_id = o.id
          AND (recipient_email IS NOT NULL OR recipient_name IS NOT NULL)) AS l ON true
""",
    columns=each("o.{name}", COLUMNS),
)
_HOLD = """
    SELECT id FROM orders WHERE customer_id = $1 AND id = ANY($2::int[]) ORDER BY id FOR NO KEY UPDATE
"""
# ANY, as a plan for any customer expects each to have few rows, and would read all of a large one.
_MARK = """
    UPDATE orders SET placed_digest = marked.placed, mac = marked.mac
    FROM unnest($2::int[], $3::bytea[], $4::bytea[]) AS marked (id, placed, mac)
    WHERE orders.customer_id = $1 AND orders.id = marked.id AND orders.id = ANY($2::int[])
"""
