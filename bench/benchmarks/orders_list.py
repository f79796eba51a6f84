"""`GET /orders`: the ten newest orders, for callers that poll.

*How.* As products, after some thousand orders were placed.

*What it means.* The key look-up, one query by an index that ends with the order's id, and ten orders written as JSON.
"""

from bench.benchmarks.orders_hot import place
from bench.reads import against_fixed_bytes
from bench.results import Row
from bench.suite import WARM_UP_S, Suite, at_least
from bench.world import one_account


def run(suite: Suite) -> list[Row]:
    with suite.installation("orders-list", one_account()) as made, made.serve_with() as server:
        place(made, server, WARM_UP_S)
        pairs = against_fixed_bytes(suite, made, server, "/orders")
    return [
        Row(
            "orders-list",
            "answers/s",
            "GET /orders",
            "the same server, fixed bytes of that size, no key",
            at_least(0.55),
            pairs,
        )
    ]
