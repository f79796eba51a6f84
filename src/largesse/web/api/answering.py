"""Shared by requests over ASGI and whole requests: admits callers, replies to errors, and keeps the logs and metrics."""

import math
import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

import msgspec
from prometheus_client import REGISTRY
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from largesse.base import clock
from largesse.base.throttle import Rate, Throttle
from largesse.customers.access import require_admission
from largesse.customers.authenticator import Caller
from largesse.customers.restrictions import require_network, require_scope
from largesse.request_log.service import NotedRequest, RequestLog
from largesse.web.api.operation import Operation
from largesse.web.api.reading import header_of_names
from largesse.web.kit.asgi import Reply, Scope, client_address
from largesse.web.kit.problems import problem_of, problem_reply
from largesse.web.kit.refusal_log import ACTS_FOR, PROBLEM, RefusalLog

Found = tuple[dict[str, Operation], dict[str, str]]  # operations of a path by method, and parameters of the path

REFUSED = 400  # the lowest status of a refusal
_COUNTED = "largesse.counted"  # set in a request's scope once its key's limit has counted it
_QUOTA = (
    "largesse.quota"  # in the same scope: how many requests the key has left, and the seconds until it gets one more
)
_WINDOW_S = 60


class Answering:
    """Admits callers, and completes replies. A key may send `rate_limit` requests a minute; 0 means no limit."""

    def __init__(self, rate_limit: int = 0) -> None:
        self._too_many = f"This key may send {rate_limit} requests a minute."
        self._requests: Throttle[int] | None = Throttle(Rate(rate_limit, _WINDOW_S)) if rate_limit else None
        self._policy = ("ratelimit-policy", f'"key";q={rate_limit};w={_WINDOW_S}')
        self.refusals = RefusalLog()

    @property
    def has_limit(self) -> bool:
        """Whether keys have a limit. If so, each answer says how many requests are left."""
        return self._requests is not None

    def admit(self, caller: Caller, operation: Operation, scope: Scope) -> None:
        """Raises a Problem unless the caller may use the operation. Counts each request once against its key's limit."""
        principal = caller.principal
        scope[ACTS_FOR] = principal
        require_network(principal, caller.address)
        require_admission(principal, inactive_too=not operation.needs_active)
        if operation.scope is not None:
            require_scope(principal, operation.scope)
        if self._requests is not None and principal.key_id is not None and _COUNTED not in scope:
            try:
                self._requests.spend(principal.key_id, self._too_many)
                scope[_COUNTED] = True
            finally:
                scope[_QUOTA] = self._requests.quota(principal.key_id)

    def completed(
        self, reply: Reply, scope: Scope, found: Found, request_id: bytes, ignored: Sequence[str], began_s: float
    ) -> Reply:
        """Returns the reply with headers for the ignored names and the key's limit. Logs ignored names and refusals."""
        if ignored:
            names = header_of_names(ignored)
            reply = msgspec.structs.replace(reply, headers=(*reply.headers, ("x-ignored", names)))
            self.refusals.ignored(scope, request_id, route_of(scope, found), names)
        if _QUOTA in scope:
            reply = msgspec.structs.replace(reply, headers=(*reply.headers, *self._limit(*scope[_QUOTA])))
        if reply.status >= REFUSED:
            self.refusals.refused(scope, request_id, route_of(scope, found), reply.status, began_s)
        return reply

    def _limit(self, left: int, one_more_in_s: float) -> tuple[tuple[str, str], tuple[str, str]]:
        """Returns the headers of draft-ietf-httpapi-ratelimit-headers-11. Within `t` seconds the key can send no more than `r` requests."""
        return self._policy, ("ratelimit", f'"key";r={left};t={max(1, math.ceil(one_more_in_s))}')


def log_request(
    log: RequestLog, scope: Scope, path: str, route: str, request_id: bytes, status: int, took_s: float
) -> None:
    """Adds a request of an API key to the request log. Leaves out unknown keys, which belong to no customer."""
    principal = scope.get(ACTS_FOR)
    if principal is not None and log.takes(principal.customer_id, status):
        method, problem, address = scope["method"], scope.get(PROBLEM), client_address(scope)
        ended_s = clock.passed_s()
        log.note(NotedRequest(principal, method, route, path, status, problem, request_id, address, ended_s, took_s))


def reply_to(error: Exception, scope: Scope, found: Found | None, request_id: bytes) -> Reply:
    """Returns the reply to an error."""
    problem = problem_of(error, scope, route=route_of(scope, found), request_id=request_id.decode())
    scope[PROBLEM] = problem.slug
    return problem_reply(problem)


def route_of(scope: Scope, found: Found | None) -> str:
    """Returns the template of a request's address, without the values of its parameters."""
    if found is not None:
        return next(iter(found[0].values())).path
    return getattr(scope.get("route"), "path", "none")


def new_request_id() -> bytes:
    """Returns a new request id."""
    return b"%016x" % random.getrandbits(64)  # an id, not a secret


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

    The metrics library would take a lock for each request. That takes longer than the rest of the counting.
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
