"""Metrics of the database in a process: of its connection pools, and whether the disk is full.

`DiskWatch` notices a full disk by failed writes, and by a check every few seconds. The check writes a temporary file of the server, on the
disk of the tables. It needs no table, no right and no vacuum. On a cluster it checks the coordinator's disk. Only failed writes show that a
node's disk is full.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol
from weakref import WeakSet

import asyncpg
import msgspec
import structlog
from prometheus_client import REGISTRY, Gauge
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from largesse.db.scope import OPERATOR, Scope


class PoolUsage(msgspec.Struct, frozen=True):
    """Connections in use and idle, callers that wait for one, and the limit."""

    used: int
    idle: int
    waiting: int
    limit: int


class Pool(Protocol):
    """A pool that reports its usage."""

    def usage(self) -> PoolUsage:
        """Returns the usage now."""


class PoolGauges(Collector):
    """The open pools of this process, added up: a serving process with a worker has two."""

    def __init__(self) -> None:
        self.pools: WeakSet[Pool] = WeakSet()

    def collect(self) -> Iterator[Metric]:
        """Yields the gauges `largesse_pool_…`, with the usage of the pools now."""
        usages = [pool.usage() for pool in list(self.pools)]
        connections = GaugeMetricFamily(
            "largesse_pool_connections", "Connections to the database, by whether they are in use.", labels=["state"]
        )
        connections.add_metric(["used"], sum(usage.used for usage in usages))
        connections.add_metric(["idle"], sum(usage.idle for usage in usages))
        yield connections
        yield GaugeMetricFamily(
            "largesse_pool_limit",
            "How many connections to the database this process opens at most.",
            sum(usage.limit for usage in usages),
        )
        yield GaugeMetricFamily(
            "largesse_pool_waiting",
            "How many wait for a connection to the database.",
            sum(usage.waiting for usage in usages),
        )


POOLS = PoolGauges()
REGISTRY.register(POOLS)


LOOK_EVERY_S = 5.0
# More rows than the least memory holds, so that the server writes them to a file: about half a megabyte.
_WRITE_FILE = "SELECT count(*) FROM generate_series(1, 20000)"

_FULL = Gauge("largesse_database_full", "1 while the disk of the database is full, else 0.")
_log = structlog.get_logger(__name__)

Transaction = Callable[[Scope], AbstractAsyncContextManager[asyncpg.Connection]]


class DiskWatch:
    """Remembers whether the last write or check found the disk full."""

    def __init__(self) -> None:
        self.is_full = False

    def note_full(self, error: asyncpg.DiskFullError) -> None:
        """Records that a write failed because the disk is full."""
        if not self.is_full:
            _log.error("database_full", error=" ".join(str(error).split()))
        self._set(is_full=True)

    async def look(self, transaction: Transaction) -> None:
        """Checks in a transaction whether the disk has room. Changes nothing while the database is away."""
        try:
            async with transaction(OPERATOR) as connection:
                await connection.execute("SET LOCAL work_mem = '64kB'")
                await connection.execute(_WRITE_FILE)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError):
            return  # the session has already recorded that the disk is full
        if self.is_full:
            _log.info("database_has_room")
        self._set(is_full=False)

    async def look_for_ever(self, transaction: Transaction) -> None:
        """Repeats the check until cancelled."""
        while True:
            await self.look(transaction)
            await asyncio.sleep(LOOK_EVERY_S)

    def _set(self, *, is_full: bool) -> None:
        self.is_full = is_full
        _FULL.set(is_full)
