"""Erasing an address from what callers wrote on orders: message, sender and the external reference."""

from __future__ import annotations

import re

from largesse.base.email import email_key
from largesse.database import Connection
from largesse.events import rewrite_event

_TEXTS = ("message", "from_name", "external_reference")
_ERASED = "…"


async def find_orders_mentioning(
    connection: Connection, email: str, customer_id: int | None
) -> list[tuple[int, int]]:
    """The orders, of one customer or of all, whose texts hold that address. Reads all orders."""
    rows = await connection.fetch(
        """
        SELECT customer_id, id FROM orders WHERE position($1 IN lower(concat_ws(' ', message, from_name, external_reference))) > 0
          AND ($2::int IS NULL OR customer_id = $2) ORDER BY id
        """,
        email_key(email),
        customer_id,
    )
    return [(row["customer_id"], row["id"]) for row in rows]


async def erase_mentions(connection: Connection, order: tuple[int, int], email: str) -> None:
    """Takes an address out of the texts of an order, and of the event that tells of it.

    An external reference that holds it is replaced as a whole: the caller's no longer names the order.
    """
    row = await connection.fetchrow(
        """
        SELECT reference, message, from_name, external_reference FROM orders WHERE customer_id = $1 AND id = $2 FOR UPDATE
        """,
        *order,
    )
    if row is None:
        return
    address = re.compile(re.escape(email), re.IGNORECASE)
    texts = {name: None if row[name] is None else address.sub(_ERASED, row[name]) for name in _TEXTS}
    if texts["external_reference"] != row["external_reference"]:
        texts["external_reference"] = f"erased-{row['reference']}"
    await connection.execute(
        """
        UPDATE orders SET message = $3, from_name = $4, external_reference = $5 WHERE customer_id = $1 AND id = $2
        """,
        *order,
        *texts.values(),
    )
    told = {"fromName": texts["from_name"], "externalReference": texts["external_reference"]}
    await rewrite_event(connection, order, told)
