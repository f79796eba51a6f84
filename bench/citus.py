"""Orders where customers are spread over nodes: `make bench-citus CLUSTER=program`, docs/scaling.md.

Two tables of its own. What an order costs the coordinator, the nodes and the serving process, in processor time, beside what it
costs one PostgreSQL: so many nodes does one coordinator feed. And how many orders, written as bulk, each node holds.
"""

import argparse
import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg
from tools import citus_cluster

from bench import load, processes
from bench.history import LINE_COLUMNS, ORDER_COLUMNS, Times, World, make_rows
from bench.installation import Installation, Server, installation
from bench.suite import say
from bench.world import many_accounts
from largesse.base.settings import load_settings
from largesse.encryption.vault import Vault, load_vault

CONNECTIONS = 64
_FEW_CONNECTIONS = 8
CUSTOMERS = 1_000
_MASTER_KEY = "5e" * 32
# What a session first asks an engine for takes it long: what is measured is what comes after, and where processors are few it
# comes for a few connections first.
_WARM_UP_S = 15.0
_FILLED_AT_ONCE = 10_000
_WHOSE = """
    SELECT c.id, ARRAY(SELECT id FROM service_accounts s WHERE s.customer_id = c.id) AS bots,
           ARRAY(SELECT id FROM products) AS products, a.payers, a.sales
    FROM customers c JOIN (
        SELECT customer_id, array_agg(id) FILTER (WHERE kind = 'funding') AS payers, min(id) FILTER (WHERE kind = 'sales') AS sales
        FROM accounts GROUP BY customer_id) AS a ON a.customer_id = c.id
    ORDER BY c.id
"""


class OnCluster(Installation):
    """An installation whose database is a cluster's."""

    def __init__(self, folder: Path, world: str, cluster: citus_cluster.Cluster) -> None:
        super().__init__(folder, world, [])
        self._cluster = cluster

    @property
    def url(self) -> str:
        return self._cluster.url

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LARGESSE_")}
        return {**kept, "LARGESSE_DATABASE_URL": self.url, "LARGESSE_MASTER_KEY": _MASTER_KEY}

    def open(self) -> None:
        """Migrates, and loads the world."""
        self._load(self.url)

    def close(self) -> None:
        """Nothing: the cluster is stopped by who started it."""


def main() -> None:
    """Runs it, and prints the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.citus", description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="of one load (%(default)s)")
    parser.add_argument("--orders", type=int, default=1_000_000, help="of 1,000 customers, as bulk (%(default)s)")
    options = parser.parse_args()
    if not citus_cluster.PROGRAM:
        raise SystemExit("bench: no cluster. CLUSTER= names a program that starts one (docs/testing.md, Citus)")
    load.require_wrk()
    say(
        "| ms of processor time an order | orders/s | coordinator | nodes | serving | one PostgreSQL instead | serving |\n"
        "|---|--:|--:|--:|--:|--:|--:|"
    )
    for customers, named in ((200, "200 customers"), (1, "one customer")):
        say(f"| {named} | {_costs(customers, options.seconds)} |")
    held = _spread(options.orders)
    say("\n| node | orders | share |\n|---|--:|--:|")
    for node, count in held.items():
        say(f"| {node} | {count:,} | {count / sum(held.values()):.1%} |")


def _costs(customers: int, seconds: float) -> str:
    """The cells of a row: what an order costs by processor, on a cluster and on one PostgreSQL."""
    world = many_accounts(customers, accounts=1)
    with _on_cluster(world) as (made, cluster):
        pids = [cluster.pid_of(server) for server in cluster.servers]
        rate, (coordinator, *nodes), serving = _measure(made, lambda: pids, seconds)
        made.verify()
    with installation(world, []) as alone:
        _, (one,), serving_alone = _measure(alone, lambda: [alone.postgres_pid], seconds)
    figures = (coordinator, sum(nodes), serving, one, serving_alone)
    return f"{rate:,.0f} | " + " | ".join(f"{figure:.2f}" for figure in figures)


def _measure(
    made: Installation, servers: Callable[[], Sequence[int]], seconds: float
) -> tuple[float, list[float], float]:
    """Orders a second, and the milliseconds of processor time of each server and of the serving process an order."""
    with made.serve() as server:
        for connections in (_FEW_CONNECTIONS, CONNECTIONS):
            _place(made, server, _WARM_UP_S, connections)
        pids = [*servers(), server.pid]
        before = [processes.cpu_s(pid) for pid in pids]
        placed = _place(made, server, seconds, CONNECTIONS)
        after = [processes.cpu_s(pid) for pid in pids]
    *costs, serving = (1000 * (late - early) / placed.requests for early, late in zip(before, after, strict=True))
    return placed.rate, costs, serving


def _place(made: Installation, server: Server, seconds: float, connections: int) -> load.Load:
    return load.orders(made, server, load.buyers(made), connections=connections, seconds=seconds)


@contextmanager
def _on_cluster(world: str) -> Iterator[tuple[OnCluster, citus_cluster.Cluster]]:
    folder = Path(tempfile.mkdtemp(prefix="largesse-bench-"))
    try:
        with citus_cluster.running() as cluster:
            made = OnCluster(folder, world, cluster)
            made.open()
            yield made, cluster
    finally:
        shutil.rmtree(folder)


def _spread(orders: int) -> Mapping[str, int]:
    """How many of so many orders of 1,000 customers each node holds."""
    with _on_cluster(many_accounts(CUSTOMERS, accounts=1)) as (made, _):
        vault = load_vault(load_settings(made.environment))
        return asyncio.run(_fill(made.url, vault, orders // CUSTOMERS))


async def _fill(url: str, vault: Vault, orders_each: int) -> Mapping[str, int]:
    """Writes so many orders of each customer, with their lines; the orders of each node then."""
    connection = await asyncpg.connect(url)
    try:
        whose = await connection.fetch(_WHOSE)
        began = datetime.now(UTC) - timedelta(days=365)
        times = Times(began, timedelta(days=365) / (orders_each * len(whose)))
        at_once = max(1, _FILLED_AT_ONCE // orders_each)
        for first in range(0, len(whose), at_once):
            orders: list[str] = []
            lines: list[str] = []
            for place, row in enumerate(whose[first : first + at_once], first):
                world = World(row["id"], row["bots"], (), row["products"], (), row["payers"], row["sales"])
                numbers = range(1 + place * orders_each, 1 + (place + 1) * orders_each)
                made = make_rows(vault, world, times, numbers, words=False)
                orders += made.orders
                lines += made.lines
            await connection.copy_to_table("orders", source=_text(orders), columns=ORDER_COLUMNS)
            await connection.copy_to_table("lines", source=_text(lines), columns=LINE_COLUMNS)
        rows = await connection.fetch(
            """
            SELECT nodename || ':' || nodeport AS node, sum(result::bigint)::bigint AS count
            FROM run_command_on_placements('orders', 'SELECT count(*) FROM %s') GROUP BY 1 ORDER BY 1
            """
        )
        return {row["node"]: row["count"] for row in rows}
    finally:
        await connection.close()


async def _text(rows: list[str]) -> AsyncIterator[bytes]:
    yield "".join(rows).encode()


if __name__ == "__main__":
    main()
