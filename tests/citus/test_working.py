"""What a worker does on a cluster: with one node and the coordinator, together or not at all, and at one node after the other."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing

import pytest
from tests.background import Statements
from tests.chained import CHAIN
from tests.citus.conftest import CUSTOMERS, NODES, Asked, Overheard, own_accounts_of, principal_of
from tests.orders.builder import build_order

from largesse.db import sharding
from largesse.db.pool import Database
from largesse.db.roles import Role
from largesse.db.scope import OPERATOR, WORKER
from largesse.db.shard_groups import Customers, ShardGroupRunner
from largesse.events.store import CUSTOMERS_WAITING
from largesse.orders.placer import Placer
from largesse.webhooks.queues import fan_out


@pytest.fixture
async def worker(spread: Overheard, database_url: str) -> AsyncIterator[Overheard]:
    """The same cluster, as who works, with an order of each customer."""
    placer = Placer(spread, CHAIN)
    for customer_id in range(1, CUSTOMERS + 1):
        principal = principal_of(customer_id)
        own = await own_accounts_of(spread, principal)
        await placer.place(build_order(principal, own, external_reference=f"{customer_id}"))
    await placer.close()
    worker = await Overheard.connect(database_url, role=Role.WORKER)
    assert isinstance(worker, Overheard)
    yield worker
    await worker.close()


async def told(worker: Database) -> list[int]:
    """The customers of whose orders the read models were told."""
    rows = await worker.fetch(WORKER, "SELECT customer_id FROM order_changes ORDER BY customer_id")
    return [row["customer_id"] for row in rows]


async def test_what_follows_from_an_event_is_committed_with_its_mark_in_two_phases(worker: Overheard) -> None:
    async with worker.connection(WORKER) as connection:
        homes = await sharding.node_names(connection, [1])
    worker.asked = Asked()
    async with worker.connection(WORKER) as connection:
        assert await fan_out(connection, 10, [1]) == (1, 0)
    assert worker.asked.nodes == {homes[1]}, worker.asked.commands
    assert len(worker.asked.prepared) == 1
    assert await told(worker) == [1]


async def test_a_node_that_is_away_stops_no_other_and_loses_nothing(worker: Overheard, database_url: str) -> None:
    name = database_url.rpartition("/")[2]
    async with worker.connection(OPERATOR) as connection:
        homes = await sharding.node_names(connection, range(1, CUSTOMERS + 1))
    away = {customer for customer, home in homes.items() if home == homes[1]}
    (node,) = [url for url in NODES if f":{homes[1].rpartition(':')[2]}/" in url]
    rounds = ShardGroupRunner(worker)

    async def step(customers: Customers) -> tuple[int, int]:
        async with worker.connection(WORKER) as connection:
            return await fan_out(connection, 10, customers)

    with closing(Statements(node)) as server:
        server.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        server.execute(f"SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE datname = '{name}'")
        try:
            await rounds.run(CUSTOMERS_WAITING, step)
            assert await told(worker) == sorted(set(homes) - away)
        finally:
            server.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
    async with asyncio.timeout(30):
        while len(await told(worker)) < CUSTOMERS:
            await rounds.run(CUSTOMERS_WAITING, step)
            await asyncio.sleep(0.2)
    assert await told(worker) == sorted(homes), "each once"
