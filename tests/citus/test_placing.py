"""Orders on a cluster: each is placed by one node."""

import asyncio

import asyncpg
import pytest
from tests.chained import CHAIN
from tests.citus.conftest import CUSTOMERS, Asked, Overheard, nodes_of, own_accounts_of, place, principal_of
from tests.orders.builder import build_order

from largesse.db import migrate, sharding
from largesse.db.scope import OPERATOR, for_customer
from largesse.orders.placer import Placer


async def test_tables_are_where_they_are_said_to_be(spread: Overheard, database_url: str) -> None:
    rows = await spread.fetch(
        OPERATOR, "SELECT table_name::text AS name, citus_table_type AS kind, colocation_id FROM citus_tables"
    )
    kinds = {row["name"]: row["kind"] for row in rows}
    assert {name for name, kind in kinds.items() if kind == "distributed"} == set(sharding.DISTRIBUTED)
    assert {name for name, kind in kinds.items() if kind == "reference"} == set(sharding.REFERENCE)
    assert len({row["colocation_id"] for row in rows if row["kind"] == "distributed"}) == 1
    assert (await migrate.upgrade(database_url)).distributed == []


async def test_customers_live_on_all_nodes(spread: Overheard) -> None:
    async with spread.connection(OPERATOR) as connection:
        homes = await sharding.node_names(connection, range(1, 1001))
    assert len(homes) == 1000
    for node in set(homes.values()):
        assert 400 < list(homes.values()).count(node) < 600


async def test_placing_an_order_asks_one_node_which_commits_it_as_its_own(spread: Overheard) -> None:
    placer = Placer(spread, CHAIN)
    async with spread.connection(OPERATOR) as connection:
        homes = await sharding.node_names(connection, range(1, CUSTOMERS + 1))
    assert len(set(homes.values())) > 1
    try:
        for customer_id in range(1, CUSTOMERS + 1):
            principal = principal_of(customer_id)
            own = await own_accounts_of(spread, principal)
            for codes in (1, 101):
                spread.asked = Asked()
                order = build_order(principal, own, codes=codes, external_reference=f"{customer_id}-{codes}")
                await placer.place(order)
                assert spread.asked.nodes == {homes[customer_id]}, spread.asked.commands
                assert spread.asked.prepared == []
                assert all(command.count("BEGIN") < 2 for _, command in spread.asked.commands)
    finally:
        await placer.close()


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
    for customer_id in range(1, CUSTOMERS + 1):
        count = "SELECT count(*) FROM orders"  # of whom the transaction is for, as the nodes' policies hold it
        assert await spread.fetchval(for_customer(customer_id, "production"), count) == 10


async def test_a_role_may_no_more_where_its_rows_are_on_nodes(spread: Overheard) -> None:
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await spread.execute(for_customer(1, "production"), "UPDATE entries SET amount_minor = 1 WHERE customer_id = 1")


async def test_rows_of_others_are_refused_by_the_node_and_nothing_is_seen_without_a_scope(spread: Overheard) -> None:
    forged = """
        INSERT INTO mail_jobs (customer_id, order_id, environment, due_at) VALUES (2, 1, 'production', now())
    """
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
        await spread.execute(for_customer(1, "production"), forged)
    with pytest.raises(asyncpg.PostgresError):
        await spread.fetch(OPERATOR, "SELECT FROM orders")


async def test_policies_hide_what_is_of_others_on_the_nodes(spread: Overheard, database_url: str) -> None:
    await place(spread, 2, codes=2)
    owner = await asyncpg.connect(database_url)
    hidden = 0
    for table in sharding.DISTRIBUTED:
        count = f"SELECT count(*) FROM {table} WHERE customer_id = 2"
        if not await owner.fetchval(count):
            continue
        hidden += 1
        try:
            assert await spread.fetchval(for_customer(2, "production"), count), table
        except asyncpg.InsufficientPrivilegeError:
            continue  # who serves may not read it at all
        assert await spread.fetchval(for_customer(1, "production"), count) == 0, table
    await owner.close()
    assert hidden >= len(("accounts", "entries", "events", "lines", "orders"))


async def test_orders_of_who_has_moved_are_passed_on(spread: Overheard, database_url: str) -> None:
    placer = Placer(spread, CHAIN)
    principal = principal_of(1)
    own = await own_accounts_of(spread, principal)
    try:
        await placer.place(build_order(principal, own, external_reference="before"))
        await move(database_url, 1)
        home = (await nodes_of(spread))[1]
        spread.asked = Asked()
        await placer.place(build_order(principal, own, external_reference="after"))
    finally:
        await placer.close()
    assert spread.asked.nodes == {home}, "by the node where the customer lived a moment ago"
    assert any(command.startswith("COMMIT") for _, command in spread.asked.commands), "which is another"
    assert spread.asked.prepared == []
    scope = for_customer(1, "production")
    assert await spread.fetchval(scope, "SELECT count(*) FROM orders WHERE customer_id = 1") == 2


async def move(database_url: str, customer_id: int) -> None:
    """Moves a customer, and its shard group, to another node."""
    connection = await asyncpg.connect(database_url)
    await connection.execute(
        f"""
        SELECT citus_move_shard_placement(p.shardid, p.nodename, p.nodeport, n.nodename, n.nodeport, 'block_writes')
        FROM pg_dist_shard_placement p JOIN pg_dist_node n ON n.groupid <> 0 AND n.nodeport <> p.nodeport
        WHERE p.shardid = get_shard_id_for_distribution_column('accounts', {customer_id})
        """
    )
    await connection.close()
