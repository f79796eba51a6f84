"""The SQL of products and collections. Loading a seed file skips what people have changed or removed (`of_people`).

A trigger raises the catalogue's version with each change, so that every process reads the change with its next request.
"""

import re
from collections.abc import Iterable, Sequence

import msgspec

from largesse.catalogue.model import Details
from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Connection, Row
from largesse.db.statements import Table

_DETAILS = "SELECT id, description, how_to_redeem, terms FROM products WHERE id = ANY($1::int[])"
_COUNT = "SELECT count(*) FROM collections WHERE customer_id = $1 AND active"
LOCK_OWN = """
    SELECT name, cardinality(product_ids) AS products, product_ids FROM collections
    WHERE customer_id = $1 AND id = $2 AND active FOR NO KEY UPDATE
"""
_INSERT = """
    INSERT INTO collections (key, of_people, customer_id, name, country, currency, value_minor, product_ids)
    VALUES ('app/' || gen_random_uuid(), true, $1, $2, $3, $4, $5, $6) RETURNING id
"""
UPDATE_OWN = "UPDATE collections SET of_people = true, name = $3, product_ids = $4 WHERE customer_id = $1 AND id = $2"
# The row stays, for recipients who still choose from it.
REMOVE_OWN = "UPDATE collections SET of_people = true, active = false WHERE customer_id = $1 AND id = $2"
_LOCK_CUSTOMER = "SELECT FROM customers WHERE id = $1 FOR NO KEY UPDATE"


class OwnCollection(msgspec.Struct, frozen=True):
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


async def insert_collection(connection: Connection, customer_id: int, new: OwnCollection) -> int:
    """Adds a customer's own collection and returns its id."""
    values = new.name, new.country, new.currency, new.value_minor, list(new.product_ids)
    return int(await connection.fetchval(_INSERT, customer_id, *values))


# The tables that a seed file fills, with rows found by key.
PRODUCTS = Table(
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
    fixed=("is_digital", "currency"),
    protected="saved.managed = 'office'",
)
COLLECTIONS = Table(
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
    protected="saved.of_people OR saved.managed = 'office'",
)


_WORDS = re.compile(r"[^\W_]+")
_MOST_WORDS = 8

# Conditions by state. These are about products and collections; those below are about their drafts.
_STATES = {
    "all": Fragment("true"),
    "active": Fragment("o.active"),
    "inactive": Fragment("NOT o.active"),
    "file": Fragment("o.managed = 'file'"),
}
_DRAFT_STATES = {
    "drafts": Fragment("true"),
    "scheduled": Fragment("d.publish_at IS NOT NULL"),
    "unscheduled": Fragment("d.publish_at IS NULL"),
    "failed": Fragment("d.failed IS NOT NULL"),
}
_PRODUCT_COLUMNS = Fragment("""
    o.id, o.key, o.name, o.is_digital, o.currency, o.active, o.managed, o.edition, o.picture, o.countries, o.denominations_minor,
    o.min_amount_minor, o.max_amount_minor, o.cost_minor, o.markup_percent, o.postage_minor, o.vat_percent, o.customer_ids, o.suppliers,
    d.object_id IS NOT NULL AS has_draft, d.publish_at, d.failed
""")
_COLLECTION_COLUMNS = Fragment("""
    o.id, o.key, o.name, o.country, o.currency, o.value_points_minor, o.allow_custom_value, cardinality(o.product_ids) AS products,
    o.active, o.managed, o.edition, d.object_id IS NOT NULL AS has_draft, d.publish_at, d.failed
""")
_HAS_WORDS = Fragment("to_tsvector('simple', key || ' ' || name) @@ to_tsquery('simple', $4)")
_LIST_PRODUCTS = {
    state: compose(
        """
        SELECT {columns} FROM products o LEFT JOIN catalogue_drafts d ON d.kind = 'product' AND d.object_id = o.id
        WHERE {of_state} AND ($1::text = '' OR o.currency = $1) AND o.key > $2 ORDER BY o.key LIMIT $3
    """,
        columns=_PRODUCT_COLUMNS,
        of_state=of_state,
    )
    for state, of_state in _STATES.items()
}
# Reads the index of words first. Otherwise the planner would compute the words of all products for a rare word.
# Reads whole rows only for the page.
_FIND_PRODUCTS = {
    state: compose(
        """
        WITH found AS MATERIALIZED (
            SELECT id, key, active, managed, currency FROM products WHERE {has_words}
        ), page AS MATERIALIZED (
            SELECT id FROM found o WHERE {of_state} AND ($1::text = '' OR currency = $1) AND key > $2 ORDER BY key LIMIT $3
        )
        SELECT {columns} FROM page JOIN products o ON o.id = page.id
        LEFT JOIN catalogue_drafts d ON d.kind = 'product' AND d.object_id = o.id ORDER BY o.key
    """,
        columns=_PRODUCT_COLUMNS,
        of_state=of_state,
        has_words=_HAS_WORDS,
    )
    for state, of_state in _STATES.items()
}
# If a word is common, the page is found early in the order of keys: the inner query reads rows lazily, in that order.
_MOST_FOUND = 5_000
_COUNT_FOUND = compose(
    "SELECT count(*) FROM (SELECT FROM products WHERE {has_words} LIMIT $2) AS found",
    has_words=Fragment("to_tsvector('simple', key || ' ' || name) @@ to_tsquery('simple', $1)"),
)
_FIND_COMMON = {
    state: compose(
        """
        WITH page AS MATERIALIZED (
            SELECT id FROM (
                SELECT id, key, name FROM products o
                WHERE {of_state} AND ($1::text = '' OR o.currency = $1) AND o.key > $2 ORDER BY o.key OFFSET 0) AS ordered
            WHERE {has_words} ORDER BY key LIMIT $3
        )
        SELECT {columns} FROM page JOIN products o ON o.id = page.id
        LEFT JOIN catalogue_drafts d ON d.kind = 'product' AND d.object_id = o.id ORDER BY o.key
    """,
        columns=_PRODUCT_COLUMNS,
        of_state=of_state,
        has_words=_HAS_WORDS,
    )
    for state, of_state in _STATES.items()
}
# Few products have a draft, so these are found by their drafts.
_DRAFTED_PRODUCTS = {
    state: compose(
        """
        SELECT {columns} FROM catalogue_drafts d JOIN products o ON o.id = d.object_id
        WHERE d.kind = 'product' AND {of_state} AND ($1::text = '' OR o.currency = $1) AND o.key > $2
            AND ($4::text = '' OR to_tsvector('simple', o.key || ' ' || o.name) @@ to_tsquery('simple', $4))
        ORDER BY o.key LIMIT $3
    """,
        columns=_PRODUCT_COLUMNS,
        of_state=of_state,
    )
    for state, of_state in _DRAFT_STATES.items()
}
_LIST_COLLECTIONS = {
    state: compose(
        """
        SELECT {columns} FROM collections o LEFT JOIN catalogue_drafts d ON d.kind = 'collection' AND d.object_id = o.id
        WHERE o.customer_id IS NULL AND {of_state} AND ($1::text = '' OR o.currency = $1) AND o.key > $2 ORDER BY o.key LIMIT $3
    """,
        columns=_COLLECTION_COLUMNS,
        of_state=of_state,
    )
    for state, of_state in {
        **_STATES,
        "drafts": Fragment("d.object_id IS NOT NULL"),
        "scheduled": Fragment("d.publish_at IS NOT NULL"),
        "unscheduled": Fragment("d.object_id IS NOT NULL AND d.publish_at IS NULL"),
        "failed": Fragment("d.failed IS NOT NULL"),
    }.items()
}
_CURRENCIES_USED = "SELECT code FROM currencies ORDER BY code"
_KEYS = {
    "product": "SELECT key FROM products WHERE starts_with(key, $1)",
    "collection": "SELECT key FROM collections WHERE starts_with(key, $1)",
}


async def list_products(
    connection: Connection, *, words: str = "", state: str = "all", currency: str = "", after: str = "", most: int = 50
) -> list[Row]:
    """Returns products by key, after a key, whose key or name has words that begin with each search word."""
    query = " & ".join(f"{word}:*" for word in _WORDS.findall(words.lower())[:_MOST_WORDS])
    if state in _DRAFT_STATES:
        return list(await connection.fetch(_DRAFTED_PRODUCTS[state], currency, after, most, query))
    if query:
        found = await connection.fetchval(_COUNT_FOUND, query, _MOST_FOUND)
        statements = _FIND_PRODUCTS if found < _MOST_FOUND else _FIND_COMMON
        return list(await connection.fetch(statements[state], currency, after, most, query))
    return list(await connection.fetch(_LIST_PRODUCTS[state], currency, after, most))


async def list_collections(
    connection: Connection, *, state: str = "all", currency: str = "", after: str = "", most: int = 50
) -> list[Row]:
    """Returns curated collections by key, after a key."""
    return list(await connection.fetch(_LIST_COLLECTIONS[state], currency, after, most))


async def list_currencies(connection: Connection) -> list[str]:
    """Returns the currencies in use."""
    return [row["code"] for row in await connection.fetch(_CURRENCIES_USED)]


async def keys_like(connection: Connection, kind: str, beginning: str) -> set[str]:
    """Returns the keys of products or collections that begin with a text."""
    return {row["key"] for row in await connection.fetch(_KEYS[kind], beginning)}
