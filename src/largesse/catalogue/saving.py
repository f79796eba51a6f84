"""Products and collections as a world file describes them. Each change of either raises the catalogue's version, by a trigger."""

from __future__ import annotations

from collections.abc import Sequence

from largesse.database.pool import Connection
from largesse.database.saving import Saved, Table, Values

_PRODUCTS = Table(
    "products",
    {
        "key": "text",
        "name": "text",
        "is_digital": "boolean",
        "currency": "text",
        "countries": "text[]",
        "denominations_minor": "bigint[]",
        "min_amount_minor": "bigint",
        "max_amount_minor": "bigint",
        "cost_minor": "bigint",
        "markup_percent": "numeric",
        "postage_minor": "jsonb",
        "vat_percent": "jsonb",
        "customer_ids": "integer[]",
        "active": "boolean",
        "picture": "text",
        "description": "text",
        "how_to_redeem": "text",
        "terms": "text",
    },
    match="saved.key = new.key",
    fixed=("currency",),
)
_COLLECTIONS = Table(
    "collections",
    {
        "key": "text",
        "customer_id": "integer",
        "name": "text",
        "country": "text",
        "currency": "text",
        "value_minor": "bigint",
        "value_points_minor": "bigint[]",
        "allow_custom_value": "boolean",
        "product_ids": "integer[]",
        "active": "boolean",
    },
    match="saved.key = new.key",
    fixed=("customer_id", "currency"),
    kept="saved.of_people",
)


async def save_products(connection: Connection, rows: Sequence[Values]) -> Saved:
    """Adds products and overwrites those that differ, found by key. Raises FixedColumn for another currency."""
    return await _PRODUCTS.save(connection, rows)


async def save_collections(connection: Connection, rows: Sequence[Values]) -> Saved:
    """Adds collections and overwrites those that differ, found by key, but for what people have touched.

    Raises FixedColumn for another customer or currency.
    """
    return await _COLLECTIONS.save(connection, rows)
