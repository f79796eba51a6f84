"""Metrics of requests: their count by operation and status, and their duration."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import accumulate

from prometheus_client import REGISTRY
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_ALERTING = (500, 503)  # the statuses that the rules in deploy/prometheus watch
_LABELS = [*map(str, _BUCKETS_S), "+Inf"]


class _Durations:
    """The number of requests in each bucket, and the sum of their durations."""

    __slots__ = ("counts", "sum_s")

    def __init__(self) -> None:
        self.counts = [0] * len(_LABELS)
        self.sum_s = 0.0


class RequestTally(Collector):
    """Counts requests in plain numbers, which only the event loop changes.

    The library's metrics take a lock each time, which takes longer than everything else done to count a request.
    """

    def __init__(self) -> None:
        self._answered: Counter[tuple[str, int]] = Counter()
        self._durations: dict[str, _Durations] = {}

    def expect(self, operations: Iterable[str]) -> None:
        """Starts the failures of these operations at 0: Prometheus sees the first failure only as a rise from 0."""
        for operation in operations:
            for status in _ALERTING:
                self._answered[operation, status] += 0

    def count(self, operation: str, status: int, took_s: float) -> None:
        """Counts a request that was answered with `status`. `operation` is never a text that a caller chose."""
        self._answered[operation, status] += 1
        durations = self._durations.get(operation)
        if durations is None:
            durations = self._durations[operation] = _Durations()
        durations.counts[bisect_left(_BUCKETS_S, took_s)] += 1
        durations.sum_s += took_s

    def collect(self) -> Iterator[Metric]:
        """Yields the metrics `largesse_requests` and `largesse_request_seconds` since the start."""
        answered = CounterMetricFamily(
            "largesse_requests", "Requests by operation and status.", labels=["operation", "status"]
        )
        for (operation, status), count in sorted(dict(self._answered).items()):
            answered.add_metric([operation, str(status)], count)
        yield answered
        took = HistogramMetricFamily(
            "largesse_request_seconds", "From the head of a request to its answer, by operation.", labels=["operation"]
        )
        for operation, durations in sorted(dict(self._durations).items()):
            buckets = list(zip(_LABELS, accumulate(durations.counts), strict=True))
            took.add_metric([operation], buckets, durations.sum_s)
        yield took


REQUESTS = RequestTally()
REGISTRY.register(REQUESTS)
