"""One busy funding account that pays for every order: 64 connections, two recipients an order, one serving process.

*How.* `wrk` keeps 64 connections busy with `POST /send/gift`. Each order has its own reference and writes an order, two lines, two ledger
entries, two balances, an event and a mail job. The reference is PostgreSQL alone: `pgbench` with 32 clients calls one SQL function that
writes the same rows into the same tables, one order a commit. A second row divides by the same service limited to one order a transaction
(`python -m bench.server PORT 1`): same code, same load, same durability. A third divides by `pgbench` over tables of its own with the least
that an order needs (bench/lean.py). No release changes them, so ratios of several releases are comparable.

*What it means.* With one commit an order, each order waits until the one before it has reached the disk, because both change the same
balance. The disk's flushes a second are the limit, however fast the database. A batch pays one flush for all its orders.
"""

from functools import partial

from bench import lean, load, reference
from bench.installation import Installation, Server
from bench.results import Row, Sample
from bench.suite import WARM_UP_S, Suite, at_least, watched
from bench.world import one_account

CONNECTIONS = 64
CLIENTS = 32


def run(suite: Suite) -> list[Row]:
    with suite.installation("orders-hot", one_account()) as made:
        with made.serve() as server, made.serve_with(max_orders=1) as one_by_one:
            product = partial(place, made, server, suite.seconds)
            alone = partial(place, made, one_by_one, suite.seconds)
            sql = partial(commit, made, suite.seconds)
            place(made, server, WARM_UP_S)
            place(made, one_by_one, WARM_UP_S)
            reference.prepare(made)
            commit(made, WARM_UP_S)
            against_sql = suite.in_turn(product, sql)
            against_alone = suite.in_turn(product, alone)
            leanly = partial(lean.commit, made, lean.prepare(made), suite.seconds)
            leanly()
            against_lean = suite.in_turn(product, leanly)
        reference.check(made)
    return [
        Row(
            "orders-hot",
            "orders/s",
            "64 connections, one account",
            "pgbench, 32 clients, one SQL function, one order a commit",
            at_least(3.4),
            against_sql,
        ),
        Row(
            "orders-hot, batched",
            "orders/s",
            "64 connections, one account",
            "the same code, one order a transaction",
            at_least(10),
            against_alone,
        ),
        Row(
            "orders-hot, lean",
            "orders/s",
            "64 connections, one account",
            "pgbench, 32 clients, lean tables",
            None,
            against_lean,
        ),
    ]


def place(made: Installation, server: Server, seconds: float, *, connections: int = CONNECTIONS) -> Sample:
    """Orders of every buyer in turn."""
    who = load.buyers(made)
    return watched(made, server, lambda: load.orders(made, server, who, connections=connections, seconds=seconds))


def commit(made: Installation, seconds: float) -> Sample:
    """The same rows by SQL, one order a commit."""
    return watched(made, None, lambda: reference.run(made, clients=CLIENTS, seconds=seconds).rate)
