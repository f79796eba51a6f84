"""Erasing recipients from what callers wrote on orders: the personal texts among the options, and the external reference."""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from largesse.base.email import email_key
from largesse.db.pool import Connection
from largesse.events.store import rewrite_event
from largesse.orders.options import PERSONAL

_TEXTS = (*PERSONAL, "external_reference")  # columns of `orders`
_COLUMNS = ", ".join(_TEXTS)
_ERASE = ", ".join(f"{name} = NULL" for name in PERSONAL)
_BEFORE = ", ".join(f"before.{name}" for name in PERSONAL)
_ERASED = "…"
_HOLDS_ADDRESS = r"[^\s@]@[^\s@]"  # for the database


class Texts(NamedTuple):
    """What was written on an order before it was erased, or what of that was."""

    order_id: int
    external_reference: str | None
    written: tuple[str | None, ...]  # the personal texts


async def find_orders_mentioning(connection: Connection, email: str, customer_id: int | None) -> list[tuple[int, int]]:
    """The orders, of one customer or of all, whose texts hold that address. Reads all orders."""
    rows = await connection.fetch(
        f"""
        SELECT customer_id, id FROM orders WHERE position($1 IN lower(concat_ws(' ', {_COLUMNS}))) > 0
          AND ($2::int IS NULL OR customer_id = $2) ORDER BY id
        """,  # noqa: S608 - columns
        email_key(email),
        customer_id,
    )
    return [(row["customer_id"], row["id"]) for row in rows]


async def erase_mentions(connection: Connection, order: tuple[int, int], email: str) -> Texts | None:
    """Takes an address out of the texts of an order, and of the event that tells of it; returns the texts as they were.

    An external reference that holds it is replaced as a whole: the caller's no longer names the order.
    """
    row = await connection.fetchrow(
        f"SELECT reference, {_COLUMNS} FROM orders WHERE customer_id = $1 AND id = $2 FOR UPDATE",  # noqa: S608 - columns
        *order,
    )
    if row is None:
        return None
    address = re.compile(re.escape(email), re.IGNORECASE)
    texts = {name: None if row[name] is None else address.sub(_ERASED, row[name]) for name in _TEXTS}
    if texts["external_reference"] != row["external_reference"]:
        texts["external_reference"] = f"erased-{row['reference']}"
    assigned = ", ".join(f"{name} = ${at}" for at, name in enumerate(texts, 3))
    await connection.execute(
        f"UPDATE orders SET {assigned} WHERE customer_id = $1 AND id = $2",  # noqa: S608 - columns
        *order,
        *texts.values(),
    )
    await rewrite_event(connection, order, texts)
    return Texts(order[1], row["external_reference"], tuple(row[name] for name in PERSONAL))


async def erase_texts(connection: Connection, customer_id: int, order_ids: Sequence[int]) -> list[Texts]:
    """Erases the personal texts of a customer's orders, and what of their references holds an address; returns what is gone.

    Says of them that their recipients are erased. Those of which that was said before, or that somebody else has locked, are left
    out. Events that tell of them are gone by then: who erases all of an order waits longer than those are kept.
    """
    rows = await connection.fetch(
        f"""
        WITH before AS (
            SELECT id, {_COLUMNS}, external_reference ~ $3 AS is_renamed FROM orders
            WHERE customer_id = $1 AND id = ANY($2::int[]) AND erased_at IS NULL ORDER BY id FOR UPDATE SKIP LOCKED)
        UPDATE orders SET erased_at = (SELECT clock_now()), {_ERASE}, external_reference =
            CASE WHEN is_renamed THEN 'erased-' || reference ELSE orders.external_reference END
        FROM before WHERE orders.customer_id = $1 AND orders.id = before.id
        RETURNING before.id, CASE WHEN is_renamed THEN before.external_reference END AS external_reference, {_BEFORE}
        """,  # noqa: S608 - columns
        customer_id,
        list(order_ids),
        _HOLDS_ADDRESS,
    )
    texts = (Texts(order_id, reference, tuple(written)) for order_id, reference, *written in map(tuple, rows))
    return sorted(texts, key=attrgetter("order_id"))
