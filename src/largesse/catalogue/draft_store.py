"""The SQL of drafts and versions of products and collections, and of publishing them. `kind` is `product` or `collection`."""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

import msgspec

from largesse.catalogue.content import Content, decode, encode
from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Connection, Row

KEPT_VERSIONS = 20

_DRAFT = Fragment("""
    d.content::text AS draft, d.edition AS draft_edition, d.based_on, d.author, d.saved_at, d.publish_at, d.failed
""")
_PRODUCTS = compose(
    """
    SELECT p.id, p.key, p.managed, p.edition, to_jsonb(p)::text AS content, {draft}
    FROM products p LEFT JOIN catalogue_drafts d ON d.kind = 'product' AND d.object_id = p.id
""",
    draft=_DRAFT,
)
_COLLECTIONS = compose(
    """
    SELECT c.id, c.key, c.managed, c.edition, to_jsonb(c)::text AS content, {draft}
    FROM collections c LEFT JOIN catalogue_drafts d ON d.kind = 'collection' AND d.object_id = c.id
    WHERE c.customer_id IS NULL
""",
    draft=_DRAFT,
)
_READ = {
    "product": compose("{products} WHERE p.id = $1", products=_PRODUCTS),
    "collection": compose("{collections} AND c.id = $1", collections=_COLLECTIONS),
}
# A save locks the object itself, because there may be no draft yet.
_LOCK = {
    "product": "SELECT FROM products WHERE id = $1 FOR NO KEY UPDATE",
    "collection": "SELECT FROM collections WHERE id = $1 FOR NO KEY UPDATE",
}
_LOCK_MANY = {
    "product": "SELECT id FROM products WHERE id = ANY($1::int[]) ORDER BY id FOR NO KEY UPDATE",
    "collection": "SELECT id FROM collections WHERE id = ANY($1::int[]) ORDER BY id FOR NO KEY UPDATE",
}
NEXT_EDITION = "SELECT nextval('catalogue_editions')"
_SAVE_DRAFTS = """
    INSERT INTO catalogue_drafts AS saved (kind, object_id, content, edition, based_on, author, saved_at)
    SELECT $1, object_id, content::jsonb, nextval('catalogue_editions'), based_on, $5, clock_now()
    FROM unnest($2::int[], $3::text[], $4::bigint[]) AS new (object_id, content, based_on)
    ON CONFLICT (kind, object_id) DO UPDATE SET content = excluded.content, edition = excluded.edition,
        based_on = excluded.based_on, author = excluded.author, saved_at = excluded.saved_at, publish_at = NULL, failed = NULL
"""
_DELETE_DRAFTS = "DELETE FROM catalogue_drafts WHERE kind = $1 AND object_id = ANY($2::int[])"
_SCHEDULE = """
    UPDATE catalogue_drafts SET publish_at = $3, failed = NULL, edition = nextval('catalogue_editions') WHERE kind = $1 AND object_id = $2
"""
_FAIL = "UPDATE catalogue_drafts SET publish_at = NULL, failed = $3 WHERE kind = $1 AND object_id = $2"
DUE = """
    SELECT kind, object_id, author FROM catalogue_drafts WHERE publish_at <= clock_now() ORDER BY publish_at LIMIT $1
"""
_NEW_PRODUCTS = """
    INSERT INTO products (key, name, is_digital, currency, countries, denominations_minor, min_amount_minor, max_amount_minor, cost_minor,
                          markup_percent, postage_minor, vat_percent, customer_ids, active, managed)
    SELECT key, name, is_digital, currency, coalesce(countries, '{}'), coalesce(denominations_minor, '{}'), min_amount_minor,
           max_amount_minor, cost_minor, markup_percent, postage_minor, vat_percent, customer_ids, false, 'office'
    FROM jsonb_to_recordset($1::text::jsonb) AS new (key text, name text, is_digital boolean, currency text, countries text[],
        denominations_minor bigint[], min_amount_minor bigint, max_amount_minor bigint, cost_minor bigint, markup_percent numeric,
        postage_minor jsonb, vat_percent jsonb, customer_ids integer[])
    ON CONFLICT (key) DO NOTHING RETURNING id, key
"""
_NEW_COLLECTIONS = """
    INSERT INTO collections (key, name, country, currency, value_points_minor, allow_custom_value, product_ids, active, managed)
    SELECT key, name, country, currency, value_points_minor, allow_custom_value, product_ids, false, 'office'
    FROM jsonb_to_recordset($1::text::jsonb) AS new (key text, name text, country text, currency text, value_points_minor bigint[],
        allow_custom_value boolean, product_ids integer[])
    ON CONFLICT (key) DO NOTHING RETURNING id, key
"""
_NEW = {"product": _NEW_PRODUCTS, "collection": _NEW_COLLECTIONS}
_WRITE_PRODUCTS = """
    UPDATE products AS p SET name = new.name, countries = new.countries, denominations_minor = new.denominations_minor,
        min_amount_minor = new.min_amount_minor, max_amount_minor = new.max_amount_minor, cost_minor = new.cost_minor,
        markup_percent = new.markup_percent, postage_minor = new.postage_minor, vat_percent = new.vat_percent,
        customer_ids = new.customer_ids, active = new.active, picture = new.picture, description = new.description,
        how_to_redeem = new.how_to_redeem, terms = new.terms, suppliers = new.suppliers, edition = new.edition
    FROM jsonb_to_recordset($1::text::jsonb) AS new (id integer, edition bigint, name text, countries text[], denominations_minor bigint[],
        min_amount_minor bigint, max_amount_minor bigint, cost_minor bigint, markup_percent numeric, postage_minor jsonb,
        vat_percent jsonb, customer_ids integer[], active boolean, picture text, description text, how_to_redeem text, terms text,
        suppliers text[])
    WHERE p.id = new.id AND p.managed = 'office'
"""
_WRITE_COLLECTIONS = """
    UPDATE collections AS c SET name = new.name, country = new.country, value_points_minor = new.value_points_minor,
        allow_custom_value = new.allow_custom_value, product_ids = new.product_ids, active = new.active, edition = new.edition
    FROM jsonb_to_recordset($1::text::jsonb) AS new (id integer, edition bigint, name text, country text, value_points_minor bigint[],
        allow_custom_value boolean, product_ids integer[], active boolean)
    WHERE c.id = new.id AND c.managed = 'office' AND c.customer_id IS NULL
"""
_WRITE = {"product": _WRITE_PRODUCTS, "collection": _WRITE_COLLECTIONS}
_RELEASE = {
    "product": """
        UPDATE products SET managed = 'office', edition = nextval('catalogue_editions') WHERE id = $1 AND managed = 'file' RETURNING key
    """,
    "collection": """
        UPDATE collections SET managed = 'office', edition = nextval('catalogue_editions')
        WHERE id = $1 AND managed = 'file' AND customer_id IS NULL RETURNING key
    """,
}
# Deletes an object that was never published and that nothing refers to.
_DELETE_NEW = {
    "product": """
        DELETE FROM products p WHERE id = $1 AND managed = 'office' AND edition = 0 AND NOT active
            AND NOT EXISTS (SELECT FROM vouchers v WHERE v.product_id = p.id)
            AND NOT EXISTS (SELECT FROM stock_warnings w WHERE w.product_id = p.id)
            AND NOT EXISTS (SELECT FROM collections c WHERE p.id = ANY (c.product_ids))
            AND NOT EXISTS (SELECT FROM catalogue_drafts d WHERE d.kind = 'collection' AND d.content -> 'product_ids' @> to_jsonb(p.id))
            AND NOT EXISTS (SELECT FROM catalogue_versions e WHERE e.kind = 'collection' AND e.content -> 'product_ids' @> to_jsonb(p.id))
            AND NOT EXISTS (SELECT FROM templates t WHERE t.product_id = p.id AND t.removed_at IS NULL)
    """,
    "collection": """
        DELETE FROM collections c WHERE id = $1 AND managed = 'office' AND edition = 0 AND NOT active AND customer_id IS NULL
            AND NOT EXISTS (SELECT FROM templates t WHERE t.collection_id = c.id AND t.removed_at IS NULL)
    """,
}
# Adds the published version. On the back office's first publication, also adds the content published before it.
_ADD_VERSIONS = """
    INSERT INTO catalogue_versions (kind, object_id, edition, content, published_at, published_by)
    SELECT $1, object_id, edition, content::jsonb, clock_now(), $5
    FROM unnest($2::int[], $3::bigint[], $4::text[]) AS new (object_id, edition, content)
    ON CONFLICT DO NOTHING
"""
_DELETE_OLD_VERSIONS = """
    DELETE FROM catalogue_versions v WHERE kind = $1 AND object_id = ANY($2::int[]) AND edition <= (
        SELECT edition FROM catalogue_versions o WHERE o.kind = $1 AND o.object_id = v.object_id ORDER BY edition DESC OFFSET $3 LIMIT 1)
"""
_VERSIONS = """
    SELECT edition, content::text, published_at, published_by FROM catalogue_versions WHERE kind = $1 AND object_id = $2
    ORDER BY edition DESC LIMIT $3
"""
_CUSTOMERS_BY_KEY = "SELECT id, key FROM customers WHERE key = ANY($1::text[])"
_CUSTOMERS_BY_ID = "SELECT id, key FROM customers WHERE id = ANY($1::int[])"
_PRODUCTS_BY_KEY = "SELECT id, key, currency FROM products WHERE key = ANY($1::text[])"
_PRODUCTS_BY_ID = "SELECT id, key FROM products WHERE id = ANY($1::int[])"
_IDS_BY_KEY = {
    "product": "SELECT id FROM products WHERE key = $1",
    "collection": "SELECT id FROM collections WHERE key = $1 AND customer_id IS NULL",
}
_BY_KEY = {
    "product": compose("{products} WHERE p.key = ANY($1::text[])", products=_PRODUCTS),
    "collection": compose("{collections} AND c.key = ANY($1::text[])", collections=_COLLECTIONS),
}
_AFTER_KEY = {
    "product": compose("{products} WHERE p.key > $1 ORDER BY p.key LIMIT $2", products=_PRODUCTS),
    "collection": compose("{collections} AND c.key > $1 ORDER BY c.key LIMIT $2", collections=_COLLECTIONS),
}
# The templates and collections that a change concerns.
_TEMPLATES = Fragment("""
    SELECT t.id, t.customer_id, c.key AS customer, coalesce(t.name, t.key) AS name, t.value_minor, t.currency, t.country
    FROM templates t JOIN customers c ON c.id = t.customer_id WHERE t.removed_at IS NULL
""")
TEMPLATES_OF_PRODUCT = compose("{templates} AND t.product_id = $1 ORDER BY t.id LIMIT $2", templates=_TEMPLATES)
TEMPLATES_OF_COLLECTION = compose("{templates} AND t.collection_id = $1 ORDER BY t.id LIMIT $2", templates=_TEMPLATES)
COLLECTIONS_OF_PRODUCT = """
    SELECT id, name, country, currency, customer_id, value_minor, value_points_minor, allow_custom_value, product_ids
    FROM collections WHERE product_ids @> ARRAY[$1::int] AND active ORDER BY id LIMIT $2
"""


class Draft(msgspec.Struct, frozen=True):
    """Unpublished content of a product or a collection, saved by `author`."""

    content: Content
    edition: int
    based_on: int
    author: str
    saved_at: datetime
    publish_at: datetime | None
    failed: str | None


class Edited(msgspec.Struct, frozen=True):
    """A product or a collection as the back office edits it: the published content, and its draft."""

    kind: str
    id: int
    key: str
    managed: str  # file or office
    edition: int
    content: Content
    draft: Draft | None

    @property
    def newest(self) -> Content:
        """The content in the form: the draft, otherwise the published content."""
        return self.content if self.draft is None else self.draft.content

    @property
    def seen(self) -> int:
        """The newest edition, of the draft or of a publication after it. A form is based on it."""
        return self.edition if self.draft is None else max(self.edition, self.draft.edition)

    @property
    def is_behind(self) -> bool:
        """Whether something was published after the draft was saved. Then the draft must be saved again before it is published."""
        return self.draft is not None and self.draft.based_on != self.edition

    @property
    def is_new(self) -> bool:
        """Whether it was made in the back office and never published."""
        return self.managed == "office" and self.edition == 0 and not self.content.active


class Version(msgspec.Struct, frozen=True):
    """A published content of a product or a collection."""

    edition: int
    content: Content
    published_at: datetime
    published_by: str


def _edited(kind: str, row: Row) -> Edited:
    draft = None
    if row["draft"] is not None:
        draft = Draft(
            decode(kind, row["draft"]),
            row["draft_edition"],
            *(row[name] for name in ("based_on", "author", "saved_at", "publish_at", "failed")),
        )
    content = decode(kind, row["content"])
    return Edited(kind, row["id"], row["key"], row["managed"], row["edition"], content, draft)


async def read(connection: Connection, kind: str, object_id: int, *, locks: bool = False) -> Edited | None:
    """Returns a product or a curated collection with its draft; None if there is none. `locks` locks it until the transaction ends."""
    if locks:
        await connection.execute(_LOCK[kind], object_id)
    row = await connection.fetchrow(_READ[kind], object_id)
    return None if row is None else _edited(kind, row)


async def lock_all(connection: Connection, kind: str, object_ids: Sequence[int]) -> None:
    """Locks several drafts until the transaction ends."""
    await connection.fetch(_LOCK_MANY[kind], list(object_ids))


async def read_many(connection: Connection, kind: str, keys: Collection[str]) -> dict[str, Edited]:
    """Returns products or curated collections by key, with their drafts."""
    return {row["key"]: _edited(kind, row) for row in await connection.fetch(_BY_KEY[kind], list(keys))}


async def list_contents(connection: Connection, kind: str, after: str, most: int) -> list[Edited]:
    """Returns products or curated collections in the order of their keys, after a key."""
    return [_edited(kind, row) for row in await connection.fetch(_AFTER_KEY[kind], after, most)]


async def save_drafts(
    connection: Connection, kind: str, drafts: Sequence[tuple[int, Content, int]], author: str
) -> None:
    """Saves drafts: the id of each object, its content, and the published edition. Removes their schedules."""
    ids, contents, based_on = ([one[column] for one in drafts] for column in range(3))
    await connection.execute(_SAVE_DRAFTS, kind, ids, [encode(one) for one in contents], based_on, author)  # type: ignore[arg-type]


async def delete_drafts(connection: Connection, kind: str, object_ids: Sequence[int]) -> None:
    """Deletes drafts."""
    await connection.execute(_DELETE_DRAFTS, kind, list(object_ids))


async def schedule(connection: Connection, kind: str, object_id: int, at: datetime | None) -> None:
    """Sets when a draft is published automatically; None means never."""
    await connection.execute(_SCHEDULE, kind, object_id, at)


async def fail(connection: Connection, kind: str, object_id: int, why: str) -> None:
    """Records why a scheduled draft was not published."""
    await connection.execute(_FAIL, kind, object_id, why)


async def list_due(connection: Connection, most: int) -> list[Row]:
    """Returns the drafts that are due: kind, id of the object, and who saved it."""
    return await connection.fetch(DUE, most)


async def add(connection: Connection, kind: str, new: Mapping[str, Content]) -> dict[str, int]:
    """Adds objects that nobody can send yet, by key. Returns the ids of those added, by key: it skips keys that are taken."""
    rows = [{"key": key, **json.loads(encode(content))} for key, content in new.items()]
    return {row["key"]: row["id"] for row in await connection.fetch(_NEW[kind], json.dumps(rows))}


async def delete_new(connection: Connection, kind: str, object_id: int) -> bool:
    """Deletes an object that was never published, unless something refers to it. Returns whether it did."""
    return str(await connection.execute(_DELETE_NEW[kind], object_id)).endswith(" 1")


async def write(connection: Connection, kind: str, published: Mapping[int, Content], edition: int) -> int:
    """Publishes contents by id under an edition, as one change of the catalogue. Returns how many it wrote."""
    rows = [{"id": one, "edition": edition, **json.loads(encode(content))} for one, content in published.items()]
    return int(str(await connection.execute(_WRITE[kind], json.dumps(rows))).rpartition(" ")[2])


async def release(connection: Connection, kind: str, object_id: int) -> str | None:
    """Makes the back office manage an object, and returns its key. None if it does already, or there is none."""
    key: str | None = await connection.fetchval(_RELEASE[kind], object_id)
    return key


async def add_versions(
    connection: Connection, kind: str, versions: Sequence[tuple[int, int, Content]], published_by: str
) -> None:
    """Adds published versions, each as id, edition and content. Existing versions stay."""
    ids, editions, contents = ([one[column] for one in versions] for column in range(3))
    await connection.execute(_ADD_VERSIONS, kind, ids, editions, [encode(one) for one in contents], published_by)  # type: ignore[arg-type]


async def delete_old_versions(connection: Connection, kind: str, object_ids: Sequence[int]) -> None:
    """Deletes all versions of objects except the newest ones."""
    await connection.execute(_DELETE_OLD_VERSIONS, kind, list(object_ids), KEPT_VERSIONS)


async def list_versions(connection: Connection, kind: str, object_id: int, most: int = KEPT_VERSIONS) -> list[Version]:
    """Returns the published versions, newest first."""
    rows = await connection.fetch(_VERSIONS, kind, object_id, most)
    return [
        Version(row["edition"], decode(kind, row["content"]), row["published_at"], row["published_by"]) for row in rows
    ]


async def customers_by_key(connection: Connection, keys: Collection[str]) -> dict[str, int]:
    """Returns the ids of customers by key."""
    return {row["key"]: row["id"] for row in await connection.fetch(_CUSTOMERS_BY_KEY, list(keys))}


async def customer_keys(connection: Connection, ids: Collection[int]) -> dict[int, str]:
    """Returns the keys of customers by id."""
    return {row["id"]: row["key"] for row in await connection.fetch(_CUSTOMERS_BY_ID, list(ids))}


async def products_by_key(connection: Connection, keys: Collection[str]) -> dict[str, tuple[int, str]]:
    """Returns ids and currencies of products by key."""
    rows = await connection.fetch(_PRODUCTS_BY_KEY, list(keys))
    return {row["key"]: (row["id"], row["currency"]) for row in rows}


async def product_keys(connection: Connection, ids: Collection[int]) -> dict[int, str]:
    """Returns the keys of products by id."""
    return {row["id"]: row["key"] for row in await connection.fetch(_PRODUCTS_BY_ID, list(ids))}


async def find(connection: Connection, kind: str, key: str) -> int | None:
    """Returns the id of the object with a key; None if there is none."""
    object_id: int | None = await connection.fetchval(_IDS_BY_KEY[kind], key)
    return object_id
