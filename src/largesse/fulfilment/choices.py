"""Which products of a collection a recipient may choose: plain rules."""

from __future__ import annotations

from collections.abc import Sequence

from largesse.catalogue.amounts import can_become
from largesse.catalogue.products import Product, product_from_row
from largesse.database.pool import Connection
from largesse.lines.lines import Line

_PRODUCT = """
    SELECT id, name, is_digital, currency, countries, denominations_minor, min_amount_minor, max_amount_minor,
           cost_minor, markup_percent, postage_minor, vat_percent, customer_ids, picture
    FROM products
"""


def is_available(product: Product, line: Line) -> bool:
    """Whether the product can be had for the line: in its currency, country and for its customer, at its value."""
    return can_become(product, line.country, line.currency, line.value_minor, line.customer_id)


async def read_choices(connection: Connection, line: Line) -> list[Product]:
    """The products a collection's line may become, in the collection's order."""
    ids: Sequence[int] | None = await connection.fetchval(
        "SELECT product_ids FROM collections WHERE id = $1", line.collection_id
    )
    rows = await connection.fetch(_PRODUCT + "WHERE active AND id = ANY($1::int[])", list(ids or ()))
    by_id = {row["id"]: product_from_row(row) for row in rows}
    products = [by_id[product_id] for product_id in ids or () if product_id in by_id]
    return [product for product in products if is_available(product, line)]


async def read_product(connection: Connection, product_id: int) -> Product:
    """A product, also one that is not sold any more: what was sent is kept."""
    row = await connection.fetchrow(_PRODUCT + "WHERE id = $1", product_id)
    assert row is not None, "products are never deleted"
    return product_from_row(row)
