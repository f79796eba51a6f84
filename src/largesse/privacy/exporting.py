"""All that is held about a recipient, in JSON. Codes, PINs and vouchers are not of it: who has them has money."""

from __future__ import annotations

from collections.abc import Sequence
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
from largesse.privacy.lookup import Found, OrderKey

Json = dict[str, Any]
_PERSONAL = ", ".join(f"o.{name}" for name in PERSONAL)


async def export(connection: Connection, vault: Vault, email: str, found: Found) -> Json:
    """What is held about the address where it was found."""
    orders = [
        await _order(connection, vault, order, found.lines.get(order, ()))
        for order in sorted({*found.lines, *found.mentions})
    ]
    return {"email": email, "orders": orders, "drafts": found.drafts, "people": await _people(connection, email)}


async def _order(connection: Connection, vault: Vault, order: OrderKey, numbers: Sequence[int]) -> Json:
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
    told: Json = dict(row)
    value_minor = told.pop("value_minor")
    return {
        **told,
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


async def _people(connection: Connection, email: str) -> list[Json]:
    rows = await connection.fetch(
        """
        SELECT c.key AS customer, u.email, u.name, u.role, u.is_active, u.created_at, u.last_login_at
        FROM users u JOIN customers c ON c.id = u.customer_id WHERE lower(u.email) = lower($1) ORDER BY c.key
        """,
        email,
    )
    return [dict(row) for row in rows if email_key(row["email"]) == email_key(email)]
