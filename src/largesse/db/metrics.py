"""Metrics of a process's connection pools, read when they are scraped."""

from collections.abc import Iterator
from typing import Protocol
from weakref import WeakSet

import msgspec
from prometheus_client import REGISTRY
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


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
