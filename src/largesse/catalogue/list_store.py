"""The SQL of the office's lists of products and collections: pages by key, filtered and searched by an index."""

from __future__ import annotations

import re

from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Connection, Row

_WORDS = re.compile(r"[^\W_]+")
_MOST_WORDS = 8

_LISTED = Fragment("""
    d.object_id IS NOT NULL AS has_draft, d.publish_at, d.failed
""")
_OF_STATE = Fragment("""
    ($1::text = 'all' OR CASE $1
        WHEN 'active' THEN o.active WHEN 'inactive' THEN NOT o.active WHEN 'file' THEN o.managed = 'file'
        WHEN 'drafts' THEN d.object_id IS NOT NULL WHEN 'scheduled' THEN d.publish_at IS NOT NULL ELSE d.failed IS NOT NULL END)
""")
_PRODUCT_COLUMNS = Fragment("""
    o.id, o.key, o.name, o.is_digital, o.currency, o.active, o.managed, o.edition, o.picture, o.countries, o.denominations_minor,
    o.min_amount_minor, o.max_amount_minor, o.cost_minor, o.markup_percent, o.postage_minor, o.vat_percent, o.customer_ids, o.suppliers
""")
_LIST_PRODUCTS = compose(
    """
    SELECT {columns}, {listed} FROM products o LEFT JOIN catalogue_drafts d ON d.kind = 'product' AND d.object_id = o.id
    WHERE {of_state} AND ($2::text = '' OR o.currency = $2) AND o.key > $3 ORDER BY o.key LIMIT $4
""",
    columns=_PRODUCT_COLUMNS,
    listed=_LISTED,
    of_state=_OF_STATE,
)
# The index of words first, whatever the planner thinks of its size: the few found are sorted.
_FIND_PRODUCTS = compose(
    """
    WITH found AS MATERIALIZED (
        SELECT id FROM products WHERE to_tsvector('simple', key || ' ' || name) @@ to_tsquery('simple', $5))
    SELECT {columns}, {listed} FROM found JOIN products o ON o.id = found.id
    LEFT JOIN catalogue_drafts d ON d.kind = 'product' AND d.object_id = o.id
    WHERE {of_state} AND ($2::text = '' OR o.currency = $2) AND o.key > $3 ORDER BY o.key LIMIT $4
""",
    columns=_PRODUCT_COLUMNS,
    listed=_LISTED,
    of_state=_OF_STATE,
)
# Those with a draft are few, so they are found by their drafts.
_PRODUCTS_WITH_DRAFTS = compose(
    """
    SELECT {columns}, {listed} FROM catalogue_drafts d JOIN products o ON o.id = d.object_id
    WHERE d.kind = 'product' AND {of_state} AND ($2::text = '' OR o.currency = $2) AND o.key > $3 ORDER BY o.key LIMIT $4
""",
    columns=_PRODUCT_COLUMNS,
    listed=_LISTED,
    of_state=_OF_STATE,
)
_LIST_COLLECTIONS = compose(
    """
    SELECT o.id, o.key, o.name, o.country, o.currency, o.value_points_minor, o.allow_custom_value, cardinality(o.product_ids) AS products,
           o.active, o.managed, o.edition, {listed}
    FROM collections o LEFT JOIN catalogue_drafts d ON d.kind = 'collection' AND d.object_id = o.id
    WHERE o.customer_id IS NULL AND {of_state} AND ($2::text = '' OR o.currency = $2) AND o.key > $3 ORDER BY o.key LIMIT $4
""",
    listed=_LISTED,
    of_state=_OF_STATE,
)
_CURRENCIES_USED = "SELECT code FROM currencies ORDER BY code"
_KEYS = {
    "product": "SELECT key FROM products WHERE starts_with(key, $1)",
    "collection": "SELECT key FROM collections WHERE starts_with(key, $1)",
}
STATES = ("all", "active", "inactive", "drafts", "scheduled", "failed", "file")
_BY_DRAFT = frozenset({"drafts", "scheduled", "failed"})


async def list_products(
    connection: Connection, *, words: str = "", state: str = "all", currency: str = "", after: str = "", most: int = 50
) -> list[Row]:
    """Returns products by key, after a key: those that have all words in their key or name, each as its beginning."""
    wanted = _WORDS.findall(words.lower())[:_MOST_WORDS]
    if wanted:
        query = " & ".join(f"{word}:*" for word in wanted)
        return list(await connection.fetch(_FIND_PRODUCTS, state, currency, after, most, query))
    statement = _PRODUCTS_WITH_DRAFTS if state in _BY_DRAFT else _LIST_PRODUCTS
    return list(await connection.fetch(statement, state, currency, after, most))


async def list_collections(
    connection: Connection, *, state: str = "all", currency: str = "", after: str = "", most: int = 50
) -> list[Row]:
    """Returns curated collections by key, after a key."""
    return list(await connection.fetch(_LIST_COLLECTIONS, state, currency, after, most))


async def list_currencies(connection: Connection) -> list[str]:
    """Returns the currencies in use."""
    return [row["code"] for row in await connection.fetch(_CURRENCIES_USED)]


async def keys_like(connection: Connection, kind: str, beginning: str) -> set[str]:
    """Returns the keys that begin so, of products or collections."""
    return {row["key"] for row in await connection.fetch(_KEYS[kind], beginning)}
