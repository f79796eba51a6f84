"""What is read for contacts where a customer has many orders, or many members of groups."""

import asyncpg
import pytest
from tests.chained import actor_over
from tests.distributed import IS_DISTRIBUTED
from tests.reports.generator import generate

from largesse.contacts import groups, store
from largesse.contacts.service import add_past_recipients
from largesse.db.roles import Role
from largesse.encryption.vault import Vault

ORDERS = 5_000
# The person 7 placed the first three orders of customer 1.
_OF_PERSON = """
    UPDATE orders SET user_id = 7, service_account_id = NULL, source = 'web'
    WHERE id IN (SELECT id FROM orders WHERE customer_id = 1 AND environment = 'production' ORDER BY id LIMIT 3);
    INSERT INTO report_groups (customer_id, environment, currency, source, product_id, collection_id, account_id, service_account_id, user_id)
    VALUES (1, 'production', 'GBP', 'web', 1, 0, 0, 0, 7);
    UPDATE report_orders SET group_id = (SELECT id FROM report_groups WHERE user_id = 7)
    WHERE customer_id = 1 AND order_id IN (SELECT id FROM orders WHERE user_id = 7);
    ANALYZE
"""
_READ = """
    SELECT sum(seq_tup_read + idx_tup_fetch) FROM pg_stat_xact_user_tables WHERE relname IN ('orders', 'report_orders', 'lines')
"""


@pytest.mark.skipif(IS_DISTRIBUTED, reason="what nodes read is not counted here")
async def test_the_orders_of_others_are_not_read(connection: asyncpg.Connection, vault: Vault) -> None:
    await generate(connection, ORDERS)
    await connection.execute(_OF_PERSON)
    async with connection.transaction():
        before = await connection.fetchval(_READ)
        saved = await add_past_recipients(actor_over(connection, 1), vault, 7)
        read = await connection.fetchval(_READ) - before
    assert saved.created == 3
    assert read < 50


# 3,000 contacts, whose group `small` has the last two, and `large` all but these.
_CONTACTS = """
    INSERT INTO contacts (customer_id, environment, id, email, email_key, name, sought)
    SELECT 1, 'production', n, n || '@many.example', n || '@many.example', 'P', 'p' || lpad(n::text, 5, '0') FROM generate_series(1, 3000) AS n;
    INSERT INTO contact_groups (customer_id, environment, id, name) VALUES (1, 'production', 1, 'small'), (1, 'production', 2, 'large');
    INSERT INTO contact_members (customer_id, environment, group_id, contact_id, joined_on)
    SELECT 1, 'production', CASE WHEN n > 2998 THEN 1 ELSE 2 END, n, current_date FROM generate_series(1, 3000) AS n
"""


@pytest.mark.skipif(IS_DISTRIBUTED, reason="a cluster has settings of its own for the coordinator's tables")
async def test_a_list_of_a_group_reads_its_members(connection: asyncpg.Connection) -> None:
    place = 1, "production"
    await connection.execute(f"SET session_replication_role = replica; {_CONTACTS}")
    await connection.execute("ANALYZE contacts, contact_members")
    # As after a VACUUM while nothing else runs.
    await connection.execute("UPDATE pg_class SET relallvisible = relpages WHERE relname = 'contact_members'")
    read = "SELECT sum(seq_tup_read + idx_tup_fetch) FROM pg_stat_xact_user_tables WHERE relname IN ('contacts', 'contact_members')"
    async with connection.transaction():
        await connection.execute(
            f"SET LOCAL ROLE {Role.APP}; SET LOCAL largesse.customers = '{{1}}'; SET LOCAL largesse.environments = '{{production}}'"
        )
        small, large = store.Filter(group_id=1), store.Filter(group_id=2)
        for _ in range(7):  # the last ones by the plan for any arguments
            assert [one.id for one in await store.list_contacts(connection, place, small, 51)] == [2999, 3000]
            assert [one.id for one in await store.list_by_id(connection, place, small, 51)] == [2999, 3000]
            assert await store.count_contacts(connection, place, small) == 2
        assert await connection.fetchval(read) <= 7 * 20
        assert [one.id for one in await store.list_contacts(connection, place, large, 2, after=10)] == [11, 12]
        assert await store.count_contacts(connection, place, large) == 2998
        plan = await connection.fetchval(f"EXPLAIN (FORMAT JSON) {groups._LIST}", *place)
        assert '"Index Only Scan"' in plan, "the index of members has what the policy compares"
