"""What people are told of products beyond their names: read when it is shown, and not in the snapshot, which it would swell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from largesse.database.pool import Connection

MAX_DESCRIPTION = 500
MAX_HOW_TO_REDEEM = 1_000
MAX_TERMS = 4_000


@dataclass(frozen=True, slots=True)
class Details:
    """Texts about a product, each with line breaks, in the one language that its name is in; None where nothing is said."""

    description: str | None = None
    how_to_redeem: str | None = None
    terms: str | None = None


NOTHING_SAID = Details()


async def read_details(connection: Connection, product_ids: Iterable[int]) -> dict[int, Details]:
    """The details of each of the products, by id."""
    rows = await connection.fetch(
        "SELECT id, description, how_to_redeem, terms FROM products WHERE id = ANY($1::int[])",
        list(product_ids),
    )
    return {row["id"]: Details(row["description"], row["how_to_redeem"], row["terms"]) for row in rows}
