"""Two serving processes compared with one, under the load of orders-spread.

*How.* `largesse serve --processes 2` and `--processes 1` on the same database, in turn. First each process has 64 connections, so that two
have 128 in all, and as many orders wait for each placer as for a single one. Then there are 64 connections in all, and half as many orders
wait for each of two placers. The rows of processor time say how much an order takes.

*What it means.* Several processes must cost nothing where the machine has no core to spare for them. With the full load for each, a second
process adds only conflicts at the same accounts. With the load divided, each process also has smaller batches, and reads and answers less
at once. So does one process with half of the connections: `processes, the second` divides by it, to show the cost of the second process
itself. If all cores are busy, each works slower, with less of the caches: `processes, apart` divides by two installations on this machine
that share nothing and are loaded at once. With more cores, more processes are the first step of scaling.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import mean

from bench.benchmarks.orders_hot import CONNECTIONS, place
from bench.installation import Installation, Server
from bench.results import Pair, Row, Sample
from bench.suite import WARM_UP_S, Suite, at_least, at_most
from bench.world import many_accounts


def run(suite: Suite) -> list[Row]:
    with (
        suite.installation("processes", many_accounts()) as made,
        made.serve(processes_count=2) as two,
        made.serve() as one,
        suite.installation("processes, another", many_accounts()) as other,
        other.serve() as beside,
    ):
        alone = partial(place, made, one, suite.seconds)
        place(made, two, WARM_UP_S, connections=2 * CONNECTIONS)
        place(made, one, WARM_UP_S)
        place(other, beside, WARM_UP_S)
        for_each = suite.in_turn(partial(place, made, two, suite.seconds, connections=2 * CONNECTIONS), alone)
        in_all = suite.in_turn(partial(place, made, two, suite.seconds), alone)
        in_half = suite.in_turn(
            partial(place, made, two, suite.seconds),
            partial(place, made, one, suite.seconds, connections=CONNECTIONS // 2),
        )
        apart = suite.in_turn(
            partial(place, made, two, suite.seconds, connections=2 * CONNECTIONS),
            partial(_at_once, suite.seconds, (made, one), (other, beside)),
        )
    two_each, two_in_all = "2 serving processes, 64 connections each", "2 serving processes, 64 connections in all"
    one_all, one_half = "1, 64 connections", "1, 32 connections"
    no_loss, little = at_least(1.0), at_most(1.15)
    return [
        Row("processes", "orders/s", two_each, one_all, no_loss, for_each),
        Row("processes, divided", "orders/s", two_in_all, one_all, no_loss, in_all),
        *(
            Row(
                f"processes, {name}", "µs", f"an order of {product}", f"of {reference}", little, _processor_times(pairs)
            )
            for name, product, reference, pairs in (
                ("each loaded", two_each, one_all, for_each),
                ("processor time", two_in_all, one_all, in_all),
                ("the second", two_in_all, one_half, in_half),
                ("apart", two_each, "2 installations at once, 64 connections each", apart),
            )
        ),
    ]


def _at_once(seconds: float, *sides: tuple[Installation, Server]) -> Sample:
    """Orders of several installations at the same time: all that they place, and what one took on average."""
    with ThreadPoolExecutor(len(sides)) as pool:
        placing = [pool.submit(place, made, server, seconds) for made, server in sides]
        samples = [one.result() for one in placing]
    return Sample(
        sum(one.value for one in samples), {name: mean(one.seen[name] for one in samples) for name in samples[0].seen}
    )


def _processor_times(pairs: list[Pair]) -> list[Pair]:
    return [Pair(processor_time(pair.product), processor_time(pair.reference)) for pair in pairs]


def processor_time(sample: Sample) -> Sample:
    """The microseconds of processor that an order took: of serving processes and of PostgreSQL."""
    return Sample(sample.seen["serving_cpu_us"] + sample.seen["postgres_cpu_us"], sample.seen)
