"""Finds the recipients of a search, among the newest orders that it finds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from largesse.base.email import is_erased
from largesse.base.text import folded
from largesse.db.pool import Connection
from largesse.reports.listing import ListedOrder
from largesse.reports.search import MAX_TERMS

MAX_LINES = 10_000  # of the orders that are looked through, unless the first has more

# Names and addresses without regard to letter case and accents, as `search` has the words that are searched for.
_FIND = """
    SELECT order_id, recipient_email AS email, recipient_name AS name, min(number) AS number
    FROM lines
    WHERE customer_id = $1 AND order_id = ANY($2::int[]) AND recipient_email IS NOT NULL
      AND regexp_replace(normalize(lower(concat_ws(' ', recipient_name, recipient_email)), NFKD), '[\u0300-\u036f]', '', 'g')
          LIKE ALL($3::text[])
    GROUP BY order_id, recipient_email, recipient_name
    ORDER BY order_id DESC, number LIMIT $4
"""


@dataclass(frozen=True, slots=True)
class FoundRecipient:
    """A recipient of an order."""

    order: ListedOrder
    email: str
    name: str | None


async def find_recipients(
    connection: Connection, customer_id: int, orders: Sequence[ListedOrder], search: str, limit: int
) -> list[FoundRecipient]:
    """Returns recipients of some orders whose name or address contains each word of a search, those of the newest order first.

    `orders` are newest first. If they have too many lines, only the newest orders are read.
    """
    looked_at = {order.order_id: order for order in _first(orders)}
    words = [folded(word) for word in search.split()[:MAX_TERMS]]
    if not looked_at or not words:
        return []
    patterns = [f"%{_literally(word)}%" for word in words]
    rows = await connection.fetch(_FIND, customer_id, list(looked_at), patterns, limit)
    return [
        FoundRecipient(looked_at[row["order_id"]], row["email"], row["name"])
        for row in rows
        if not is_erased(row["email"])
    ]


def _first(orders: Sequence[ListedOrder]) -> Iterator[ListedOrder]:
    lines = 0
    for order in orders:
        lines += order.codes
        if lines > MAX_LINES and lines > order.codes:
            return
        if not order.is_batch:
            yield order


def _literally(word: str) -> str:
    """Returns a word with the wildcards of LIKE escaped."""
    return word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
