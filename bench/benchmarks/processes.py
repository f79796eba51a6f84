"""Two serving processes against one, with the load of orders-spread.

*How.* `largesse serve --processes 2` and `--processes 1` on the same database, in turn.

*What it means.* Several processes must not cost anything where the machine has no core to spare for them: batches become
smaller and two placers meet at the same accounts. With more cores they are the first step of scaling.
"""

from __future__ import annotations

from functools import partial

from bench.benchmarks.orders_hot import place
from bench.results import Row
from bench.suite import WARM_UP_S, Suite, at_least, row
from bench.world import many_accounts


def run(suite: Suite) -> list[Row]:
    with (
        suite.installation("processes", many_accounts()) as made,
        made.serve(processes_count=2) as two,
        made.serve() as one,
    ):
        place(made, two, WARM_UP_S)
        place(made, one, WARM_UP_S)
        pairs = suite.in_turn(
            partial(place, made, two, suite.seconds), partial(place, made, one, suite.seconds)
        )
    return [
        row(
            "processes",
            "orders/s",
            "orders-spread with 2 serving processes",
            "with 1",
            at_least(1.0),
            pairs,
        )
    ]
