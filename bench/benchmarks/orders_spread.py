"""A thousand funding accounts of two hundred customers: 64 connections, one serving process.

*How.* As orders-hot, with each order from the next of 1,000 accounts. `pgbench` picks one of its 1,000 at random. A second row
divides by `pgbench` over the lean tables of orders-hot, with as many accounts.

*What it means.* Here one commit an order does not wait for a balance: PostgreSQL flushes the commits of many sessions together,
and spends its time on statements. The product also pays for HTTP, JSON, keys and encryption on the same two cores. The goal is to
reach at least 45 % of the bare database.
"""

from functools import partial

from bench import lean, reference
from bench.benchmarks.orders_hot import commit, place
from bench.results import Row
from bench.suite import WARM_UP_S, Suite, at_least
from bench.world import many_accounts


def run(suite: Suite) -> list[Row]:
    with suite.installation("orders-spread", many_accounts()) as made:
        with made.serve() as server:
            place(made, server, WARM_UP_S)
            reference.prepare(made)
            commit(made, WARM_UP_S)
            pairs = suite.in_turn(partial(place, made, server, suite.seconds), partial(commit, made, suite.seconds))
            leanly = partial(lean.commit, made, lean.prepare(made, customers=200, accounts=5), suite.seconds)
            leanly()
            against_lean = suite.in_turn(partial(place, made, server, suite.seconds), leanly)
        reference.check(made)
    return [
        Row(
            "orders-spread",
            "orders/s",
            "64 connections, 1,000 accounts of 200 customers",
            "pgbench, 32 clients, the same function over 1,000 accounts",
            at_least(1.1),
            pairs,
        ),
        Row(
            "orders-spread, lean",
            "orders/s",
            "64 connections, 1,000 accounts",
            "pgbench, 32 clients, lean tables",
            None,
            against_lean,
        ),
    ]
