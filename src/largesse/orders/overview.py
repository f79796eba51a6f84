"""The newest orders of an installation, for its operator."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter

from largesse.database.distribution import arguments, within
from largesse.database.pool import Connection, Row
from largesse.database.rounds import Customers, places


@dataclass(frozen=True, slots=True)
class OrderOverview:
    """An order as an operator sees it: no codes, and nobody's name or address."""

    id: int
    created_at: datetime
    customer: str
    environment: str
    reference: str
    external_reference: str | None
    gift: str  # the key of the product or collection
    code_count: int
    delivery_mode: str  # send or manual
    scheduled_for: datetime | None
    source: str
    service_account: str | None
    account: str | None  # the key of the funding account; None when invoiced
    total_minor: int
    currency: str


async def list_newest_orders(
    connection: Connection, customer_id: int | None, *, before: int, limit: int
) -> list[OrderOverview]:
    """The `limit` newest orders with ids below `before`, newest first: of one customer, or of all."""
    rows: list[Row] = []
    for customers in await places(connection, None if customer_id is None else [customer_id]):
        rows += await connection.fetch(_newest(customers), before, limit, *arguments(customers))
    newest = sorted(rows, key=itemgetter("id"), reverse=True)[:limit]
    gifts = {
        (row["product_id"], row["collection_id"]): row["key"]
        for row in await connection.fetch(
            _GIFTS, [row["product_id"] for row in newest], [row["collection_id"] for row in newest]
        )
    }
    orders = []
    for row in newest:
        told = dict(row)
        gift = gifts[told.pop("product_id"), told.pop("collection_id")]
        orders.append(OrderOverview(gift=gift, **told))
    return orders


def _newest(customers: Customers) -> str:
    """SQL for the newest orders of those customers, else of all: those of each, by the primary key."""
    return f"""
        SELECT o.id, o.created_at, c.key AS customer, o.environment, o.reference, o.external_reference, o.product_id,
               o.collection_id, o.code_count, o.delivery_mode, o.scheduled_for, o.source, s.key AS service_account,
               a.key AS account, o.total_minor, o.currency
        FROM customers c CROSS JOIN LATERAL (
            SELECT * FROM orders
            WHERE customer_id = c.id AND id < $1 {within("customer_id", "$3", customers)} ORDER BY id DESC LIMIT $2) AS o
        LEFT JOIN service_accounts s ON s.id = o.service_account_id
        LEFT JOIN accounts a ON a.customer_id = o.customer_id AND a.id = o.account_id {within("a.customer_id", "$3", customers)}
        WHERE true {within("c.id", "$3", customers)}
        ORDER BY o.id DESC LIMIT $2
    """  # noqa: S608 - placeholders


# The keys of what orders give, a product or a collection each: in two columns of their ids.
_GIFTS = """
    SELECT id AS product_id, NULL::int AS collection_id, key FROM products WHERE id = ANY($1::int[])
    UNION ALL SELECT NULL, id, key FROM collections WHERE id = ANY($2::int[])
"""
