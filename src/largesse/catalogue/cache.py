"""The catalogue of a process, never older than the version a request has seen.

Everything that all customers share is in memory, and is read in parts. After an edit, only its changes are read. The own collections of a
customer are read when the customer uses them. A cache holds those that were used last.
"""

import asyncio
import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from largesse.base.batching import Batcher
from largesse.base.cooperative import CooperativeRunner, Result, Steps, finish_soon, first_slice
from largesse.base.errors import Unavailable
from largesse.base.recently_used import RecentlyUsed
from largesse.catalogue.listing import Serializer
from largesse.catalogue.model import Collection, Product, ProductReader, collection_from_row
from largesse.catalogue.products import Filters, ProductsBuilder
from largesse.catalogue.snapshot import Collections, Snapshot
from largesse.customers.authenticator import Caller
from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Connection, Database, read_in_parts
from largesse.db.scope import LOOKUP, for_customers

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


# Customers whose own collections are cached, and their total weight: some 20 MB.
_MAX_OWN = 10_000
_MAX_OWN_WEIGHT = 500_000
_OWN_AT_ONCE = 100
_OWN_WAITING = 10_000
# How long requests may still use a replaced catalogue.
_LEFT_S = 5.0

_OwnKey = tuple[int, str]  # a customer and an environment


class Catalogue:
    """Returns snapshots, and reads the changes of a newer version when it is needed."""

    def __init__(
        self,
        database: Database,
        serializer: Serializer,
        *,
        max_own: int = _MAX_OWN,
        max_own_weight: int = _MAX_OWN_WEIGHT,
    ) -> None:
        self._database = database
        self._serializer = serializer
        self._snapshot: Snapshot | None = None
        self._loading: asyncio.Task[None] | None = None
        self._letting_go: set[asyncio.Task[None]] = set()
        self._runner = CooperativeRunner()
        self._own: RecentlyUsed[int, OwnCollections] = RecentlyUsed(
            max_entries=max_own, max_total=max_own_weight, weigh=lambda own: own.collections.weight
        )
        self._own_reads: Batcher[_OwnKey, OwnCollections] = Batcher(
            self._read_own, tasks=1, max_items=_OWN_AT_ONCE, max_waiting=_OWN_WAITING
        )

    async def at(self, version: int) -> Snapshot:
        """Returns the catalogue that all customers share, at `version` (read from `catalogue_version`) or later.

        Callers that wait share one load. If it fails, all of them get the error, and the next caller loads again.
        """
        # A load that is already under way may read an older version than this one. A load that begins
        # now cannot, because versions only grow.
        for _ in range(2):
            if (snapshot := self.loaded(version)) is not None:
                return snapshot
            await self._load()
        if (snapshot := self.loaded(version)) is not None:
            return snapshot
        raise Unavailable("The catalogue is older than expected.")

    def loaded(self, version: int) -> Snapshot | None:
        """Returns the catalogue that all customers share, if it is in memory at that version or later; otherwise None."""
        snapshot = self._snapshot
        return snapshot if snapshot is not None and snapshot.version >= version else None

    async def of(self, caller: Caller) -> Snapshot:
        """Returns the catalogue with the caller's own collections, no older than when the caller was looked up."""
        snapshot = await self.at(caller.catalogue_version)
        if not caller.collections_version:  # the customer never had any
            return snapshot
        principal = caller.principal
        own = self._own.get(principal.customer_id)
        if own is None or own.version < caller.collections_version:
            own = await self._own_reads.submit((principal.customer_id, principal.environment))
        return snapshot.with_own(own.collections)

    async def prepare(self, snapshot: Snapshot, customer_id: int, filters: Filters) -> None:
        """Computes the products and currencies of `snapshot` for some filters. Raises Unavailable if too many wait."""
        await self.finish(customer_id, snapshot.preparing(customer_id, filters))

    async def finish(self, customer_id: int, steps: Steps[Result]) -> Result:
        """Returns the result of a computation over a snapshot, which runs in slices if it takes long. Raises Unavailable if too many wait."""
        result = first_slice(steps)
        return await self._runner.finish(customer_id, steps) if result is None else result

    async def close(self) -> None:
        """Ends the loads."""
        await self._own_reads.close()
        for task in self._letting_go:
            task.cancel()

    async def _load(self) -> None:
        if self._loading is None or self._loading.done():
            self._loading = asyncio.create_task(self._replace())
            self._loading.add_done_callback(_mark_failure_seen)
        # A caller who gives up must not end the load that others wait for.
        await asyncio.shield(self._loading)

    async def _replace(self) -> None:
        former = self._snapshot
        self._snapshot = await self._database.read(LOOKUP, load_snapshot, self._serializer, former)
        if former is not None and not self._snapshot.follows(former):
            letting_go = asyncio.create_task(_let_go(former.parts()))
            self._letting_go.add(letting_go)
            letting_go.add_done_callback(self._letting_go.discard)

    async def _read_own(self, keys: Sequence[_OwnKey]) -> Sequence[OwnCollections]:
        customer_ids = list({customer_id for customer_id, _ in keys})
        found = await self._database.read(for_customers(keys), load_own, customer_ids, self._serializer)
        for customer_id, own in found.items():
            self._own.put(customer_id, own)
        return [found[customer_id] for customer_id, _ in keys]


async def _let_go(parts: list[object]) -> None:
    """Frees a catalogue that was replaced as a whole, part by part: 50,000 products at once take a twentieth of a second."""
    await asyncio.sleep(_LEFT_S)
    while parts:
        parts.pop()
        await asyncio.sleep(0)


def _mark_failure_seen(loading: asyncio.Task[None]) -> None:
    """Prevents asyncio's warning about a failed load for which nobody waits any more."""
    if not loading.cancelled():
        loading.exception()
