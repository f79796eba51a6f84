"""Lists of contacts read what they show, whatever the planner expects."""

from collections.abc import Awaitable, Callable
from itertools import pairwise

import asyncpg
import pytest
from tests.distributed import IS_DISTRIBUTED

from largesse.contacts import groups, store
from largesse.customers.principal import Principal
from largesse.db.roles import Role
from largesse.orders import placeholders
from largesse.orders.recipients import OrderRecipient

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


@pytest.mark.skipif(IS_DISTRIBUTED, reason="a cluster has settings of its own for the coordinator's tables")
async def test_a_search_for_a_common_word_reads_the_contacts_of_one_page(connection: asyncpg.Connection) -> None:
    place, all_of_them = (1, "production"), store.Filter(words="person")
    # Not in the order of the list; and so many, as with fewer the planner reads all of them: it expects a policy to show only one of 400.
    contacts = (
        _CONTACTS.partition(";")[0]
        .replace("3000", "120000")
        .replace("'p' || lpad(n::text, 5, '0')", "'person ' || md5(n::text)")
    )
    await connection.execute(f"SET session_replication_role = replica; {contacts}")
    await connection.execute("ANALYZE contacts")
    read = "SELECT sum(seq_tup_read + idx_tup_fetch) FROM pg_stat_xact_user_tables WHERE relname = 'contacts'"
    async with connection.transaction():
        await connection.execute(
            f"SET LOCAL ROLE {Role.APP}; SET LOCAL largesse.customers = '{{1}}'; SET LOCAL largesse.environments = '{{production}}'"
        )
        for _ in range(7):  # the last ones by the plan for any arguments
            assert len(await store.list_contacts(connection, place, all_of_them, 51)) == 51
        assert await connection.fetchval(read) == 7 * 51


@pytest.mark.skipif(IS_DISTRIBUTED, reason="the rows are read on a node")
async def test_a_page_reads_its_own_contacts_and_the_groups_of_each(connection: asyncpg.Connection) -> None:
    """A page of 100,000 contacts read and sorted all of them, and looked each up in each group."""
    place, groups_each = (1, "production"), 2
    contacts = _CONTACTS.partition(";")[0].replace("'p' || lpad(n::text, 5, '0')", "md5(n::text)")
    await connection.execute(f"SET session_replication_role = replica; {contacts}")
    await connection.execute(
        f"""
        INSERT INTO contact_groups (customer_id, environment, id, name) SELECT 1, 'production', n, 'Group ' || n FROM generate_series(1, 100) AS n;
        INSERT INTO contact_members (customer_id, environment, group_id, contact_id, joined_on)
        SELECT 1, 'production', 1 + (id + 7 * n) % 100, id, '2030-01-01' FROM contacts, generate_series(1, {groups_each}) AS n;
        ANALYZE contacts, contact_groups, contact_members
        """
    )
    middle = await connection.fetchval("SELECT id FROM contacts ORDER BY sought OFFSET 1500 LIMIT 1")
    so_far = """
        SELECT sum(seq_tup_read + idx_tup_fetch) FILTER (WHERE relname = 'contacts')::int,
               sum(idx_scan) FILTER (WHERE relname = 'contact_members')::int FROM pg_stat_xact_user_tables
    """
    for page in (
        lambda: store.list_contacts(connection, place, store.Filter(), 51),
        lambda: store.list_contacts(connection, place, store.Filter(), 51, after=middle),
        lambda: store.list_contacts(connection, place, store.Filter(), 51, before=middle),
        lambda: store.list_by_id(connection, place, store.Filter(), 51, middle),
    ):
        async with connection.transaction():
            await connection.execute(
                f"SET LOCAL ROLE {Role.APP}; SET LOCAL largesse.customers = '{{1}}'; SET LOCAL largesse.environments = '{{production}}'"
            )
            before = await connection.fetchrow(so_far)
            assert [len(one.groups) for one in await page()] == 51 * [groups_each]
            read, looked_up = (now - then for now, then in zip(await connection.fetchrow(so_far), before, strict=True))
            assert read <= 51 + 1, "and the one where the page begins"
            assert looked_up == 51


@pytest.mark.skipif(IS_DISTRIBUTED, reason="a cluster has settings of its own for the coordinator's tables")
async def test_changes_read_the_contacts_that_they_name(connection: asyncpg.Connection) -> None:
    """Among many customers with few contacts, each look-up and each change of a large one read all of its contacts, from the sixth on."""
    place, named = (1, "production"), range(1001, 1021)
    contacts = _CONTACTS.partition(";")[0]
    others = contacts.replace("SELECT 1,", "SELECT 10 + n / 3,").replace("(1, 3000)", "(3001, 12000)")
    await connection.execute(f"SET session_replication_role = replica; {contacts}; {others}; ANALYZE contacts")
    principal = Principal(1, "production", 1, "Acme", "pro", "balance", 1, "bot", True)
    emails = [f"{number}@many.example" for number in named]
    found = await store.find_contacts(connection, place, ids=named)

    async def change(how: Callable[..., Awaitable[object]], *arguments: object) -> None:
        await store.lock_contacts(connection, place)
        await how(connection, place, *arguments)

    so_far = "SELECT (seq_tup_read + idx_tup_fetch)::int FROM pg_stat_xact_user_tables WHERE relname = 'contacts'"
    for run in (
        lambda: store.find_contacts(connection, place, emails=emails),
        lambda: store.find_contacts(connection, place, ids=named),
        lambda: placeholders._read_values(connection, principal, [OrderRecipient(email) for email in emails]),
        lambda: change(store.save_addresses, dict.fromkeys(named, b"sealed")),
        lambda: change(store.update_contacts, found),
        lambda: change(store.free_keys, named),
        lambda: change(store.delete_contacts, named),
    ):
        async with connection.transaction():
            await connection.execute(
                f"SET LOCAL ROLE {Role.APP}; SET LOCAL largesse.customers = '{{1}}'; SET LOCAL largesse.environments = '{{production}}'"
            )
            read = [await connection.fetchval(so_far)]
            for _ in range(8):  # the last ones by the plan for any arguments
                await run()
                read.append(await connection.fetchval(so_far))
            assert max(now - then for then, now in pairwise(read)) <= len(named)
