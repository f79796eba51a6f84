"""Reads the catalogue: all of it in parts, its changes since a version, or some customers' own collections."""

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from largesse.base.cooperative import finish_soon
from largesse.catalogue.listing import Serializer
from largesse.catalogue.model import Collection, Product, ProductReader, collection_from_row
from largesse.catalogue.products import ProductsBuilder
from largesse.catalogue.snapshot import Collections, Snapshot
from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Connection, read_in_parts

# Rows that are processed before other requests run. They take half a millisecond.
_ROWS_AT_ONCE = 50
# The most changes that are applied to a snapshot. With more, everything is read again.
_MAX_CHANGES = 5_000

_COLUMNS = Fragment("""
    id, name, is_digital, currency, countries, denominations_minor, min_amount_minor, max_amount_minor, cost_minor, markup_percent,
    postage_minor, vat_percent, customer_ids, picture, suppliers
""")
_ALL_PRODUCTS = compose("SELECT {columns} FROM products WHERE active ORDER BY id", columns=_COLUMNS)
_PRODUCTS = compose("SELECT {columns} FROM products WHERE active AND id = ANY($1::int[])", columns=_COLUMNS)
_OF_COLLECTION = Fragment("""
    id, name, country, currency, customer_id, value_minor, value_points_minor, allow_custom_value, product_ids
""")
_CURATED = compose("SELECT {of_collection} FROM curated_collections($1::int[])", of_collection=_OF_COLLECTION)
_CHANGES = "SELECT product_ids, collection_ids FROM catalogue_changes WHERE version > $1 AND version <= $2"
# Reads version and collections in one statement, so that they fit each other.
# Uses a subquery, not a join, so that the planner uses the index for a table of any size.
_OWN = compose(
    """
    SELECT wanted.customer_id AS of_customer, coalesce(v.version, 0) AS version, own.*
    FROM unnest($1::int[]) AS wanted (customer_id)
    LEFT JOIN collection_versions v ON v.customer_id = wanted.customer_id
    LEFT JOIN LATERAL (
        SELECT {of_collection} FROM collections WHERE customer_id = wanted.customer_id AND active OFFSET 0) AS own ON true
""",
    of_collection=_OF_COLLECTION,
)
_VERSION = "SELECT version FROM catalogue_version"


async def load_snapshot(connection: Connection, serializer: Serializer, former: Snapshot | None = None) -> Snapshot:
    """Returns the current catalogue: `former` itself if nothing has changed, otherwise a copy of it with the changes.

    Reads all of it without `former`, or if there are too many changes, or if some are no longer stored. `connection` must not be in a
    transaction: this reads version and rows in one REPEATABLE READ transaction, so that they fit each other.
    """
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        version = await connection.fetchval(_VERSION)
        if former is not None:
            if former.version == version:
                return former
            changes = await _read_changes(connection, former.version, version)
            if changes is not None:
                return await finish_soon(former.changed(version, *changes))
        return await _load_all(connection, version, serializer)


async def read_changed_products(connection: Connection, after: int, version: int) -> frozenset[int] | None:
    """Returns the ids of the products that changed after one version, up to a later one. None if the changes of a version are not stored."""
    rows = await connection.fetch(_CHANGES, after, version)
    if len(rows) != version - after:
        return None
    return frozenset(product_id for row in rows for product_id in row["product_ids"])


class _Changes(NamedTuple):
    """The new products and curated collections by id. None means that one is no longer offered."""

    products: Mapping[int, Product | None]
    collections: Mapping[int, Collection | None]


async def _read_changes(connection: Connection, after: int, version: int) -> _Changes | None:
    """Returns what has changed. None if that is too much, or if the changes of a version are not stored."""
    rows = await connection.fetch(_CHANGES, after, version)
    product_ids = {product_id for row in rows for product_id in row["product_ids"]}
    collection_ids = {collection_id for row in rows for collection_id in row["collection_ids"]}
    if len(rows) != version - after or len(product_ids) + len(collection_ids) > _MAX_CHANGES:
        return None
    products: dict[int, Product | None] = dict.fromkeys(sorted(product_ids))
    collections: dict[int, Collection | None] = dict.fromkeys(sorted(collection_ids))
    read, wanted = ProductReader(), list(products)
    for start in range(0, len(wanted), _ROWS_AT_ONCE):
        found = await connection.fetch(_PRODUCTS, wanted[start : start + _ROWS_AT_ONCE])
        products.update((row["id"], read(row)) for row in found)
    if collections:
        curated = map(collection_from_row, await connection.fetch(_CURATED, list(collections)))
        collections.update((one.id, one) for one in curated)
    return _Changes(products, collections)


async def _load_all(connection: Connection, version: int, serializer: Serializer) -> Snapshot:
    builder, read = ProductsBuilder(serializer), ProductReader()
    with _uncollected():
        async for rows in read_in_parts(connection, _ALL_PRODUCTS, _ROWS_AT_ONCE):
            for row in rows:
                builder.add(read(row))
        products = await finish_soon(builder.finishing())
        curated = Collections.of(map(collection_from_row, await connection.fetch(_CURATED, None)), serializer)
    return Snapshot(version, products, curated, serializer)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Excludes a large catalogue from garbage collections, during the reading and after it. It lives until it is replaced."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if was_enabled:
            gc.enable()


class OwnCollections(NamedTuple):
    """A customer's own collections, at one version of these collections."""

    version: int
    collections: Collections


async def load_own(
    connection: Connection, customer_ids: Sequence[int], serializer: Serializer
) -> dict[int, OwnCollections]:
    """Returns the own collections of customers by id. The connection acts for these customers."""
    versions: dict[int, int] = {}
    found: dict[int, list[Collection]] = {customer_id: [] for customer_id in customer_ids}
    for row in await connection.fetch(_OWN, list(found)):
        versions[row["of_customer"]] = row["version"]
        if row["id"] is not None:
            found[row["of_customer"]].append(collection_from_row(row))
    return {
        customer_id: OwnCollections(versions[customer_id], Collections.of(own, serializer))
        for customer_id, own in found.items()
    }
