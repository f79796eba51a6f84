"""orders-hot in an old installation with 5 million orders and 10 million lines, compared with a fresh one.

*How.* One installation is filled first (bench/fill.py: the rows the product would have written, by COPY, with the indexes built
afterwards), another stays fresh. Both are served at once and loaded in turn. `largesse verify` audits all of the filled one,
including its 10 million codes.

*What it means.* Orders are written at the end of tables and, where possible, of indexes: references begin with the hour, and ids
ascend. Rows that already exist are hardly touched.
"""

import time
from functools import partial

from bench.benchmarks.orders_hot import place
from bench.fill import fill
from bench.results import Row
from bench.suite import WARM_UP_S, Suite, at_least, say
from bench.world import one_account

ORDERS = 5_000_000
QUICK_ORDERS = 50_000


def run(suite: Suite) -> list[Row]:
    orders = QUICK_ORDERS if suite.quick else ORDERS
    with (
        suite.installation("growth, fresh", one_account()) as fresh,
        suite.installation("growth", one_account()) as grown,
    ):
        began = time.monotonic()
        fill(grown, orders)
        say(f"  filled with {orders:,} orders in {time.monotonic() - began:.0f} s")
        with grown.serve() as old, fresh.serve() as new:
            place(grown, old, WARM_UP_S)
            place(fresh, new, WARM_UP_S)
            pairs = suite.in_turn(partial(place, grown, old, suite.seconds), partial(place, fresh, new, suite.seconds))
    return [
        Row(
            "growth",
            "orders/s",
            f"orders-hot with {orders:,} orders and {2 * orders:,} lines in the tables",
            "orders-hot on fresh tables",
            at_least(0.9),
            pairs,
        )
    ]
