"""Two serving processes compared with one, under the load of orders-spread.

*How.* `largesse serve --processes 2` and `--processes 1` on the same database, in turn. First each process has 64 connections, so
that two have 128 in all and as many orders wait for each placer as for the one. Then there are 64 connections in all, and half
as many orders wait for each of two placers. The rows of processor time say what an order takes of it.

*What it means.* Several processes must cost nothing where the machine has no core to spare for them. With as much load for each, a
second process adds only conflicts at the same accounts. With the load divided, batches are smaller as well, and so is what each
process reads and answers at once. One process with half of the connections has that too: the last row divides by it, and so says
what the second process itself costs. With more cores, more processes are the first step of scaling.
"""

from __future__ import annotations

from functools import partial

from bench.benchmarks.orders_hot import CONNECTIONS, place
from bench.results import Pair, Row, Sample
from bench.suite import WARM_UP_S, Suite, at_least, at_most
from bench.world import many_accounts


def run(suite: Suite) -> list[Row]:
    with (
        suite.installation("processes", many_accounts()) as made,
        made.serve(processes_count=2) as two,
        made.serve() as one,
    ):
        alone = partial(place, made, one, suite.seconds)
        place(made, two, WARM_UP_S, connections=2 * CONNECTIONS)
        place(made, one, WARM_UP_S)
        for_each = suite.in_turn(partial(place, made, two, suite.seconds, connections=2 * CONNECTIONS), alone)
        in_all = suite.in_turn(partial(place, made, two, suite.seconds), alone)
        in_half = suite.in_turn(
            partial(place, made, two, suite.seconds),
            partial(place, made, one, suite.seconds, connections=CONNECTIONS // 2),
        )
    return [
        Row(
            "processes",
            "orders/s",
            "2 serving processes, 64 connections each",
            "1, 64 connections",
            at_least(1.0),
            for_each,
        ),
        Row(
            "processes, divided",
            "orders/s",
            "2 serving processes, 64 connections in all",
            "1, 64 connections",
            at_least(1.0),
            in_all,
        ),
        Row(
            "processes, each loaded",
            "µs",
            "an order of 2 serving processes, 64 connections each",
            "of 1, 64 connections",
            at_most(1.15),
            _processor_times(for_each),
        ),
        Row(
            "processes, processor time",
            "µs",
            "an order of 2 serving processes, 64 connections in all",
            "of 1, 64 connections",
            at_most(1.15),
            _processor_times(in_all),
        ),
        Row(
            "processes, the second",
            "µs",
            "an order of 2 serving processes, 64 connections in all",
            "of 1, 32 connections",
            at_most(1.15),
            _processor_times(in_half),
        ),
    ]


def _processor_times(pairs: list[Pair]) -> list[Pair]:
    return [Pair(processor_time(pair.product), processor_time(pair.reference)) for pair in pairs]


def processor_time(sample: Sample) -> Sample:
    """The microseconds of processor that an order took: of serving processes and of PostgreSQL."""
    return Sample(sample.seen["serving_cpu_us"] + sample.seen["postgres_cpu_us"], sample.seen)
