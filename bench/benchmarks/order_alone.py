"""One order at a time: how long a caller waits when there are no other callers.

*How.* `wrk` with one connection, and the median time of an answer. The reference is the sum of two medians: one commit of the same
rows by `pgbench` with one client, and one `GET /health` of the same server, which is HTTP and a round trip to the database.

*What it means.* A single order waits for no timer and for no other orders. Beyond the bare commit and the bare HTTP exchange,
its time goes into the statements that check and decide: each is a round trip.
"""

from __future__ import annotations

from bench import load, reference
from bench.installation import Failed, Installation, Server
from bench.results import Row, Sample
from bench.suite import WARM_UP_S, Suite, at_most, row, watched
from bench.world import one_account


def run(suite: Suite) -> list[Row]:
    with suite.installation("order-alone", one_account()) as made:
        with made.serve() as server:
            _order(made, server, WARM_UP_S)
            reference.prepare(made)
            _commit_and_health(made, server, WARM_UP_S)
            pairs = suite.in_turn(
                lambda: _order(made, server, suite.seconds), lambda: _commit_and_health(made, server, suite.seconds)
            )
        reference.check(made)
    return [
        row(
            "order-alone",
            "ms",
            "p50, one connection",
            "p50 of pgbench with one client + p50 of GET /health",
            at_most(2.5),
            pairs,
        )
    ]


def _order(made: Installation, server: Server, seconds: float) -> Sample:
    who = load.buyers(made)
    sample = watched(made, server, lambda: load.orders(made, server, who, connections=1, seconds=seconds))
    return Sample(sample.seen["p50_ms"], sample.seen)


def _commit_and_health(made: Installation, server: Server, seconds: float) -> Sample:
    commits = reference.run(made, clients=1, seconds=seconds, times=True)
    health = load.gets(made, server, "/health", None, connections=1, seconds=seconds)
    if commits.p50_us is None:
        raise Failed("pgbench logged no times")
    commit_ms, health_ms = commits.p50_us / 1e3, health.p50_us / 1e3
    return Sample(commit_ms + health_ms, {"commit_p50_ms": commit_ms, "health_p50_ms": health_ms})
