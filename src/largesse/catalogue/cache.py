"""The catalogue of a process, never older than the version a request has seen.

Everything that all customers share is in memory. After an edit, only its changes are read. The own collections of a customer are read when
the customer uses them. A cache holds those that were used last.
"""

import asyncio
from collections.abc import Sequence
from decimal import Decimal

from largesse.base.batching import Batcher
from largesse.base.cooperative import CooperativeRunner, Result, Steps, first_slice
from largesse.base.errors import Unavailable
from largesse.base.recently_used import RecentlyUsed
from largesse.catalogue.listing import Serializer
from largesse.catalogue.loading import OwnCollections, load_own, load_snapshot
from largesse.catalogue.snapshot import Snapshot
from largesse.customers.authenticator import Caller
from largesse.db.pool import Database
from largesse.db.scope import LOOKUP, for_customers

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

    async def prepare(
        self,
        snapshot: Snapshot,
        customer_id: int,
        country: str,
        currency: str | None = None,
        amount: Decimal | None = None,
        keyword: str | None = None,
    ) -> None:
        """Computes the products and currencies of `snapshot` for some filters. Raises Unavailable if too many wait."""
        await self.finish(customer_id, snapshot.preparing(customer_id, country, currency, amount, keyword))

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
        async with self._database.connection(LOOKUP) as connection:
            self._snapshot = await load_snapshot(connection, self._serializer, former)
        if former is not None and not self._snapshot.follows(former):
            letting_go = asyncio.create_task(_let_go(former.parts()))
            self._letting_go.add(letting_go)
            letting_go.add_done_callback(self._letting_go.discard)

    async def _read_own(self, keys: Sequence[_OwnKey]) -> Sequence[OwnCollections]:
        customer_ids = list({customer_id for customer_id, _ in keys})
        async with self._database.connection(for_customers(keys)) as connection:
            found = await load_own(connection, customer_ids, self._serializer)
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
