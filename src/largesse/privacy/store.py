"""The SQL of exports, receipts of erasures, and orders whose retention period has ended.

An export holds no codes, PINs or vouchers: they are money.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from largesse.base.email import email_key
from largesse.base.money import to_number
from largesse.db.pool import Connection, Row
from largesse.encryption.vault import Vault
from largesse.fulfilment.notifications import open_email
from largesse.fulfilment.shipments import read_address
from largesse.lines.states import LineKey
from largesse.lines.store import read_line_records
from largesse.orders.options import PERSONAL

OrderKey = tuple[int, int]  # customer and id
Json = dict[str, Any]
_PERSONAL = ", ".join(f"o.{name}" for name in PERSONAL)


async def read_order(connection: Connection, vault: Vault, order: OrderKey, numbers: Sequence[int]) -> Json:
    """Returns an order with these of its lines and their mail, for export."""
    row = await connection.fetchrow(
        f"""
        SELECT o.reference, c.key AS customer, o.environment, o.created_at, o.scheduled_for, o.external_reference,
               o.value_minor, o.currency, o.country, {_PERSONAL}, p.name AS product, g.name AS collection
        FROM orders o JOIN customers c ON c.id = o.customer_id
        LEFT JOIN products p ON p.id = o.product_id LEFT JOIN collections g ON g.id = o.collection_id
        WHERE o.customer_id = $1 AND o.id = $2
        """,  # noqa: S608 - columns
        *order,
    )
    assert row is not None, "orders are never deleted"
    columns: Json = dict(row)
    value_minor = columns.pop("value_minor")
    return {
        **columns,
        "value": to_number(value_minor, row["currency"]),
        "lines": await _lines(connection, vault, order, numbers),
        "mail": await _mail(connection, order, numbers),
    }


async def _lines(connection: Connection, vault: Vault, order: OrderKey, numbers: Sequence[int]) -> list[Json]:
    states = {
        row["number"]: row
        for row in await connection.fetch(
            """
            SELECT number, language, sealed_email FROM line_states
            WHERE customer_id = $1 AND order_id = $2 AND number = ANY($3::int[])
            """,
            *order,
            list(numbers),
        )
    }
    lines = []
    for email, name, record in await read_line_records(connection, *order) if numbers else ():
        if record.number not in numbers:
            continue
        key = LineKey(*order, record.number)
        state: Row | None = states.get(record.number)
        left = state["sealed_email"] if state else None
        lines.append(
            {
                "email": email,
                "name": name,
                **msgspec.structs.asdict(record),
                "language": state["language"] if state else None,
                "email_left": open_email(vault, left, key) if left else None,
                "parcel": await _parcel(connection, vault, key),
            }
        )
    return lines


async def _parcel(connection: Connection, vault: Vault, key: LineKey) -> Json | None:
    row = await connection.fetchrow(
        """
        SELECT requested_at, exported_at, shipped_at, carrier, tracking_number FROM shipments
        WHERE customer_id = $1 AND order_id = $2 AND number = $3
        """,
        *key,
    )
    return None if row is None else {**row, "address": await read_address(connection, vault, key)}


async def _mail(connection: Connection, order: OrderKey, numbers: Sequence[int]) -> list[Json]:
    rows = await connection.fetch(
        """
        SELECT email, name, kind, edition, state, attempts, created_at, finished_at, reason FROM messages
        WHERE customer_id = $1 AND order_id = $2
          AND CASE WHEN kind = 'gift' THEN line_numbers && $3::int[] ELSE edition = ANY($3::int[]) END
        ORDER BY id
        """,
        *order,
        list(numbers),
    )
    return [dict(row) for row in rows]


async def read_members(connection: Connection, email: str) -> list[Json]:
    """Returns the memberships of an address."""
    rows = await connection.fetch(
        """
        SELECT c.key AS customer, u.email, u.name, u.role, u.is_active, u.created_at, u.last_login_at
        FROM users u JOIN customers c ON c.id = u.customer_id WHERE lower(u.email) = lower($1) ORDER BY c.key
        """,
        email,
    )
    return [dict(row) for row in rows if email_key(row["email"]) == email_key(email)]


class Receipt(msgspec.Struct, frozen=True):
    """What an erasure removed, by number, without names."""

    number: int
    at: datetime
    orders: int
    lines: int
    messages: int  # whose recipient was removed
    cancelled: int  # of those: will not be sent any more
    captured: int  # copies in the captured mailbox
    parcels: int
    texts: int  # orders whose texts or reference contained the address
    drafts: int  # deleted


async def add_receipt(
    connection: Connection, counts: Mapping[str, int], *, customer_id: int | None, retention_days: int | None = None
) -> Receipt:
    """Saves what an erasure removed; `retention_days` where the retention period ended."""
    row = await connection.fetchrow(
        """
        INSERT INTO erasures (at, customer_id, orders, lines, messages, cancelled, captured, parcels, texts, drafts,
            retention_days)
        VALUES (clock_now(), $1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING id, at
        """,
        customer_id,
        *counts.values(),
        retention_days,
    )
    assert row is not None, "an INSERT returns its row"
    return Receipt(number=row["id"], at=row["at"], **counts)


# An order that was erased stays in front until the read models have followed; looked up one by one, so that none is sorted.
_NOT_ERASED = "(SELECT erased_at FROM orders o WHERE o.customer_id = r.customer_id AND o.id = r.order_id) IS NULL"


def _due(condition: str) -> str:
    """SQL for the first $2 orders at their end for $1 days."""
    return f"""
        SELECT customer_id, order_id, codes FROM report_orders r
        WHERE erasable_since <= (SELECT clock_now()) - $1 * interval '1 day'
          AND {condition}
        ORDER BY erasable_since LIMIT $2
    """  # noqa: S608 - constants


DUE = _due(_NOT_ERASED)
# Where orders lie on nodes: the eraser sees which are erased already. Not by the index of the customers, who may have many that are not due.
DUE_OF = _due("customer_id + 0 = ANY($3::int[])")
CUSTOMERS_DUE = """
    SELECT customer_id FROM report_orders
    WHERE erasable_since <= (SELECT clock_now()) - $2 * interval '1 day' AND customer_id = ANY($1::int[])
    ORDER BY erasable_since LIMIT 500
"""
