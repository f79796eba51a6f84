"""Collections of one customer's own, as its people make, change and remove them. What they have touched is theirs: a world file
leaves it as it is.

A change raises the catalogue's version, so that every process has it with the next request it answers.

Products and collections as a world file describes them. Each change of either raises the catalogue's version, by a trigger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from largesse.base.errors import InvalidRequest, NotFound
from largesse.db.pool import Connection
from largesse.db.statements import Saved, Table, Values

MOST_COLLECTIONS = 200
MOST_PRODUCTS = 100  # of one collection
MAX_NAME = 200


class TooManyCollections(InvalidRequest):
    """The customer has as many as it may."""

    def __init__(self) -> None:
        super().__init__(f"A customer has at most {MOST_COLLECTIONS} collections of its own.")


@dataclass(frozen=True, slots=True)
class OwnCollection:
    """A collection to be made: what recipients in `country` choose from, worth `value_minor`."""

    name: str
    country: str
    currency: str
    value_minor: int
    product_ids: Sequence[int]


async def add_collection(connection: Connection, customer_id: int, wanted: OwnCollection) -> int:
    """Adds one and returns its id. Raises TooManyCollections."""
    # Locked, so that two who add at the same time do not both take the last place.
    await connection.execute("SELECT FROM customers WHERE id = $1 FOR NO KEY UPDATE", customer_id)
    count = await connection.fetchval("SELECT count(*) FROM collections WHERE customer_id = $1 AND active", customer_id)
    if count >= MOST_COLLECTIONS:
        raise TooManyCollections
    added: int = await connection.fetchval(
        """
        INSERT INTO collections (key, of_people, customer_id, name, country, currency, value_minor, product_ids)
        VALUES ('app/' || gen_random_uuid(), true, $1, $2, $3, $4, $5, $6) RETURNING id
        """,
        customer_id,
        wanted.name,
        wanted.country,
        wanted.currency,
        wanted.value_minor,
        list(wanted.product_ids),
    )
    return added


async def change_collection(
    connection: Connection, customer_id: int, collection_id: int, *, name: str, product_ids: Sequence[int]
) -> None:
    """Gives it another name and other products: whoever has not chosen yet chooses among them. Raises NotFound."""
    changed = await connection.fetchval(
        """
        UPDATE collections SET of_people = true, name = $3, product_ids = $4
        WHERE customer_id = $1 AND id = $2 AND active RETURNING id
        """,
        customer_id,
        collection_id,
        name,
        list(product_ids),
    )
    if not changed:
        raise _no_such_collection()


async def remove_collection(connection: Connection, customer_id: int, collection_id: int) -> None:
    """Removes it: it can be sent no more, and who was sent it still chooses. Raises NotFound."""
    removed = await connection.fetchval(
        """
        UPDATE collections SET of_people = true, active = false
        WHERE customer_id = $1 AND id = $2 AND active RETURNING id
        """,
        customer_id,
        collection_id,
    )
    if not removed:
        raise _no_such_collection()


def _no_such_collection() -> NotFound:
    return NotFound("There is no such collection.")


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
