"""One order at a time: how long a caller waits when there are no other callers.

*How.* `wrk` with one connection, and the median time of an answer. The reference is the sum of two medians: one commit of the same
rows by `pgbench` with one client, and one `GET /health` of the same server, which is HTTP and a round trip to the database.
A second row divides orders that count towards a budget by those of a customer without.

*What it means.* A single order waits for no timer and for no other orders. Beyond the bare commit and the bare HTTP exchange, its time goes
into the statements that check and decide: each is a round trip. If there is a budget, what is left of it is read in the round trip of the
locks, and what the order counts is written with the order.
"""

from bench import load, reference
from bench.installation import Failed, Installation, Server
from bench.results import Row, Sample
from bench.suite import WARM_UP_S, Suite, at_most, watched
from bench.world import many_accounts, one_account


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
        Row(
            "order-alone",
            "ms",
            "p50, one connection",
            "p50 of pgbench with one client + p50 of GET /health",
            at_most(2),
            pairs,
        ),
        _with_budget(suite),
    ]


def _with_budget(suite: Suite) -> Row:
    with suite.installation("order-alone, with a budget", many_accounts(customers=2, accounts=1)) as made:
        of = ("--currency", "GBP", "--service-account", "bot-0", "--limit", "900000000")
        made.command("budgets", "create", "customer-0", "All", *of)
        with made.serve() as server:
            with_budget, without = (lambda at=at: _order(made, server, suite.seconds, at) for at in (0, 1))
            _order(made, server, WARM_UP_S, 0)
            _order(made, server, WARM_UP_S, 1)
            pairs = suite.in_turn(with_budget, without)
    return Row("order-alone, with a budget", "ms", "p50, one budget", "p50, no budget", at_most(1.3), pairs)


def _order(made: Installation, server: Server, seconds: float, buyer: int = 0) -> Sample:
    who = [load.buyers(made)[buyer]]
    sample = watched(made, server, lambda: load.orders(made, server, who, connections=1, seconds=seconds))
    return Sample(sample.seen["p50_ms"], sample.seen)


def _commit_and_health(made: Installation, server: Server, seconds: float) -> Sample:
    commits = reference.run(made, clients=1, seconds=seconds, times=True)
    health = load.gets(made, server, "/health", None, connections=1, seconds=seconds)
    if commits.p50_us is None:
        raise Failed("pgbench logged no times")
    commit_ms, health_ms = commits.p50_us / 1e3, health.p50_us / 1e3
    return Sample(commit_ms + health_ms, {"commit_p50_ms": commit_ms, "health_p50_ms": health_ms})
