"""The SQL of products and collections. Loading a seed file skips what people have changed or removed (`of_people`).

A trigger raises the catalogue's version with each change, so that every process reads the change with its next request.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from largesse.catalogue.model import Details
from largesse.db.pool import Connection, Row
from largesse.db.statements import Saved, Table, Values

_DETAILS = "SELECT id, description, how_to_redeem, terms FROM products WHERE id = ANY($1::int[])"
_COUNT = "SELECT count(*) FROM collections WHERE customer_id = $1 AND active"
_LOCK = """
    SELECT name, cardinality(product_ids) AS products FROM collections
    WHERE customer_id = $1 AND id = $2 AND active FOR NO KEY UPDATE
"""
_INSERT = """
    INSERT INTO collections (key, of_people, customer_id, name, country, currency, value_minor, product_ids)
    VALUES ('app/' || gen_random_uuid(), true, $1, $2, $3, $4, $5, $6) RETURNING id
"""
_UPDATE = "UPDATE collections SET of_people = true, name = $3, product_ids = $4 WHERE customer_id = $1 AND id = $2"
_REMOVE = "UPDATE collections SET of_people = true, active = false WHERE customer_id = $1 AND id = $2"
_LOCK_CUSTOMER = "SELECT FROM customers WHERE id = $1 FOR NO KEY UPDATE"


@dataclass(frozen=True, slots=True)
class OwnCollection:
    """A customer's own collection, from which recipients in `country` choose a gift worth `value_minor`."""

    name: str
    country: str
    currency: str
    value_minor: int
    product_ids: Sequence[int]


async def read_details(connection: Connection, product_ids: Iterable[int]) -> dict[int, Details]:
    """Returns the details of each of the products, by id."""
    rows = await connection.fetch(_DETAILS, list(product_ids))
    return {row["id"]: Details(row["description"], row["how_to_redeem"], row["terms"]) for row in rows}


async def count_collections(connection: Connection, customer_id: int) -> int:
    """Returns how many own collections a customer has. Locks the customer, so that two requests cannot exceed the limit."""
    await connection.execute(_LOCK_CUSTOMER, customer_id)
    return int(await connection.fetchval(_COUNT, customer_id))


async def lock_collection(connection: Connection, customer_id: int, collection_id: int) -> Row | None:
    """Locks a customer's own collection until the transaction ends; returns its name and how many products it has."""
    return await connection.fetchrow(_LOCK, customer_id, collection_id)


async def insert_collection(connection: Connection, customer_id: int, new: OwnCollection) -> int:
    """Adds a customer's own collection and returns its id."""
    values = new.name, new.country, new.currency, new.value_minor, list(new.product_ids)
    return int(await connection.fetchval(_INSERT, customer_id, *values))


async def update_collection(
    connection: Connection, customer_id: int, collection_id: int, name: str, product_ids: Sequence[int]
) -> None:
    """Replaces the name and the products of a customer's own collection."""
    await connection.execute(_UPDATE, customer_id, collection_id, name, list(product_ids))


async def deactivate_collection(connection: Connection, customer_id: int, collection_id: int) -> None:
    """Removes a customer's own collection. Its row stays, for recipients who still choose from it."""
    await connection.execute(_REMOVE, customer_id, collection_id)


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
        "suppliers": "text[]",
        "managed": "text",
    },
    match="saved.key = new.key",
    fixed=("currency",),
    kept="saved.managed = 'office'",
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
        "managed": "text",
    },
    match="saved.key = new.key",
    fixed=("customer_id", "currency"),
    kept="saved.of_people OR saved.managed = 'office'",
)


async def save_products(connection: Connection, rows: Sequence[Values]) -> Saved:
    """Adds the products of a seed file and overwrites those that differ, by key, except those that the office manages.

    Raises FixedColumn for another currency.
    """
    return await _PRODUCTS.save(connection, rows)


async def save_collections(connection: Connection, rows: Sequence[Values]) -> Saved:
    """Adds the collections of a seed file and overwrites those that differ, by key, except those that people have changed
    or the office manages.

    Raises FixedColumn for another customer or currency.
    """
    return await _COLLECTIONS.save(connection, rows)
