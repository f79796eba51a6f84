"""The current snapshot of a process, never older than the version a request has seen."""

from __future__ import annotations

import asyncio
import gc

from largesse.base.errors import Unavailable
from largesse.catalogue.listing import Serializer
from largesse.catalogue.model import collection_from_row, product_from_row
from largesse.catalogue.snapshot import Snapshot
from largesse.db.pool import Connection, Database, Row
from largesse.db.scope import LOOKUP


class Catalogue:
    """Gives out snapshots and loads a new one when a newer version is asked for."""

    def __init__(self, database: Database, telling: Serializer) -> None:
        self._database = database
        self._telling = telling
        self._snapshot: Snapshot | None = None
        self._loading: asyncio.Task[None] | None = None

    async def at(self, version: int) -> Snapshot:
        """A snapshot of `version` (read from `catalogue_version`) or a later one.

        All who wait share one load. Its failure goes to each of them, and the next caller loads again.
        """
        # A load that was under way may have read an older version than was asked for; one that begins
        # after the question cannot, as versions only grow.
        for _ in range(2):
            if self._snapshot is not None and self._snapshot.version >= version:
                return self._snapshot
            await self._load()
        if self._snapshot is None or self._snapshot.version < version:
            raise Unavailable("The catalogue is older than expected.")
        return self._snapshot

    async def _load(self) -> None:
        if self._loading is None or self._loading.done():
            self._loading = asyncio.create_task(self._replace())
            self._loading.add_done_callback(_mark_failure_seen)
        # A caller who gives up must not end the load that others wait for.
        await asyncio.shield(self._loading)

    async def _replace(self) -> None:
        async with self._database.connection(LOOKUP) as connection:
            self._snapshot = await load_snapshot(connection, self._telling)
        # It lives until the catalogue changes: collections need not walk its products again and again.
        gc.freeze()


def _mark_failure_seen(loading: asyncio.Task[None]) -> None:
    """Keeps the loop from complaining when everybody who waited for a failed load has gone."""
    if not loading.cancelled():
        loading.exception()


async def load_snapshot(connection: Connection, telling: Serializer) -> Snapshot:
    """The catalogue as it is now. `connection` must not be in a transaction.

    Version and rows are read in one REPEATABLE READ transaction, so they belong together.
    """
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        version = await connection.fetchval("SELECT version FROM catalogue_version")
        products = await connection.fetch(
            """
            SELECT id, name, is_digital, currency, countries, denominations_minor, min_amount_minor,
                   max_amount_minor, cost_minor, markup_percent, postage_minor, vat_percent, customer_ids, picture
            FROM products WHERE active
            """
        )
        collections = await connection.fetch(
            """
            SELECT id, name, country, currency, customer_id, value_minor, value_points_minor,
                   allow_custom_value, product_ids
            FROM every_collection()
            """
        )
    # A large catalogue takes a tenth of a second to build, and the loop has other work meanwhile.
    return await asyncio.to_thread(_build, version, products, collections, telling)


def _build(version: int, products: list[Row], collections: list[Row], telling: Serializer) -> Snapshot:
    return Snapshot(version, map(product_from_row, products), map(collection_from_row, collections), telling)
