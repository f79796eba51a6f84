"""The newest orders of an installation, for its operator."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from largesse.database import Connection


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
    # Those of each customer, by the primary key.
    newest = """
        SELECT o.* FROM customers AS owner
        CROSS JOIN LATERAL (
            SELECT * FROM orders WHERE customer_id = owner.id AND id < $1 ORDER BY id DESC LIMIT $2) AS o
        WHERE $3::int IS NULL OR owner.id = $3
        ORDER BY o.id DESC LIMIT $2
    """
    rows = await connection.fetch(
        f"""
        SELECT o.id, o.created_at, c.key AS customer, o.environment, o.reference, o.external_reference,
               coalesce(p.key, l.key) AS gift, o.code_count, o.delivery_mode, o.scheduled_for, o.source,
               s.key AS service_account, a.key AS account, o.total_minor, o.currency
        FROM ({newest}) AS o
        JOIN customers c ON c.id = o.customer_id
        LEFT JOIN service_accounts s ON s.id = o.service_account_id
        LEFT JOIN accounts a ON a.customer_id = o.customer_id AND a.id = o.account_id
        LEFT JOIN products p ON p.id = o.product_id
        LEFT JOIN collections l ON l.id = o.collection_id
        ORDER BY o.id DESC
        """,  # noqa: S608 - a constant
        before,
        limit,
        customer_id,
    )
    return [OrderOverview(**row) for row in rows]
