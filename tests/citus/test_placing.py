"""Orders on a cluster: each is placed by one node."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest
from tests.chained import CHAIN
from tests.citus.conftest import CUSTOMERS, Asked, Overheard, own_accounts_of, principal_of
from tests.orders.builder import build_order

from largesse.database import OPERATOR, distribution, migrate
from largesse.orders.placer import Placer


async def test_tables_are_where_they_are_said_to_be(spread: Overheard, database_url: str) -> None:
    rows = await spread.fetch(
        OPERATOR, "SELECT table_name::text AS name, citus_table_type AS kind, colocation_id FROM citus_tables"
    )
    kinds = {row["name"]: row["kind"] for row in rows}
    assert {name for name, kind in kinds.items() if kind == "distributed"} == set(distribution.DISTRIBUTED)
    assert {name for name, kind in kinds.items() if kind == "reference"} == set(distribution.REFERENCE)
    assert len({row["colocation_id"] for row in rows if row["kind"] == "distributed"}) == 1
    assert (await migrate.upgrade(database_url)).spread == []


async def test_customers_live_on_all_nodes(spread: Overheard) -> None:
    nodes = await spread.fetch(
        OPERATOR,
        "SELECT DISTINCT nodeport FROM generate_series(1, 1000) AS id "
        "JOIN pg_dist_shard_placement ON shardid = get_shard_id_for_distribution_column('orders', id)",
    )
    assert len(nodes) > 1


async def test_placing_an_order_asks_one_node_which_commits_it_as_its_own(spread: Overheard) -> None:
    placer = Placer(spread, CHAIN)
    homes = set()
    try:
        for customer_id in range(1, CUSTOMERS + 1):
            principal = principal_of(customer_id)
            own = await own_accounts_of(spread, principal)
            for codes in (1, 101):
                spread.asked = Asked()
                order = build_order(principal, own, codes=codes, external_reference=f"{customer_id}-{codes}")
                await placer.place(order)
                assert len(spread.asked.nodes) == 1, spread.asked.commands
                assert spread.asked.prepared == []
                homes |= spread.asked.nodes
    finally:
        await placer.close()
    assert len(homes) > 1


async def test_orders_of_many_customers_at_once_are_each_placed(spread: Overheard) -> None:
    placer = Placer(spread, CHAIN)
    try:
        orders = []
        for customer_id in range(1, CUSTOMERS + 1):
            principal = principal_of(customer_id)
            own = await own_accounts_of(spread, principal)
            orders += [build_order(principal, own, external_reference=f"{n}") for n in range(10)]
        await asyncio.gather(*(placer.place(order) for order in orders))
    finally:
        await placer.close()
    rows = await spread.fetch(OPERATOR, "SELECT customer_id, count(*) AS n FROM orders GROUP BY customer_id")
    assert {row["customer_id"]: row["n"] for row in rows} == dict.fromkeys(range(1, CUSTOMERS + 1), 10)


async def test_a_role_may_no_more_where_its_rows_are_on_nodes(spread: Overheard) -> None:
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await spread.execute(OPERATOR, "UPDATE entries SET amount_minor = 1 WHERE customer_id = 1")
