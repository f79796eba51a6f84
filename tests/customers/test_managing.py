"""A customer is never without an administrator, whoever is removed or demoted, and at once too."""

import asyncio

import asyncpg
import pytest
from tests.chained import actor_on
from tests.distributed import IS_DISTRIBUTED, WAITING
from tests.waiting import until

from largesse.base.errors import NotFound
from largesse.customers.members import LastAdministrator, invite, list_members, remove, set_role
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.encryption.vault import Vault
from largesse.ledger.store import take_all_accounts
from largesse.staff.service import LastOwner, deactivate

VAULT = Vault((bytes(32),))


@pytest.fixture
async def database(database: Database) -> Database:
    async with database.transaction(OPERATOR) as connection:
        for key in ("acme", "globex"):
            await connection.execute(
                """
                WITH made AS (
                    INSERT INTO customers (key, name, plan, funding) VALUES ($1, $1, 'pro', 'balance') RETURNING id)
                INSERT INTO users (customer_id, email, name, role, is_active)
                SELECT id, name || '@' || $1 || '.example', name, role, is_active FROM made CROSS JOIN (VALUES
                    ('ada', 'admin', true), ('bob', 'admin', false), ('cem', 'member', true)) AS one (name, role, is_active)
                """,
                key,
            )
    return database


async def ids(database: Database, customer: str = "acme") -> tuple[int, dict[str, int]]:
    rows = await database.fetch(
        OPERATOR,
        "SELECT u.id, u.customer_id, u.name FROM users u JOIN customers c ON c.id = u.customer_id WHERE c.key = $1",
        customer,
    )
    return rows[0]["customer_id"], {row["name"]: row["id"] for row in rows}


async def roles(database: Database) -> dict[str, tuple[str, bool]]:
    rows = await database.fetch(
        OPERATOR,
        "SELECT u.name, u.role, u.is_active FROM users u JOIN customers c ON c.id = u.customer_id WHERE c.key = 'acme'",
    )
    return {row["name"]: (row["role"], row["is_active"]) for row in rows}


async def test_the_last_administrator_stays(database: Database) -> None:
    """Neither who was removed nor another customer's administrator stands in for them."""
    customer_id, people = await ids(database)
    actor = await actor_on(database, VAULT, customer_id)
    before = await roles(database)
    with pytest.raises(LastAdministrator):
        await remove(actor, people["ada"], take_all_accounts)
    with pytest.raises(LastAdministrator):
        await set_role(actor, people["ada"], "viewer")
    assert await roles(database) == before
    await set_role(actor, people["ada"], "admin")
    await set_role(actor, people["cem"], "admin")
    await remove(actor, people["ada"], take_all_accounts)
    assert await roles(database) == {"ada": ("admin", False), "bob": ("admin", False), "cem": ("admin", True)}
    with pytest.raises(LastAdministrator):
        await remove(actor, people["cem"], take_all_accounts)


async def test_two_who_remove_each_other_at_once_leave_one(database: Database) -> None:
    customer_id, people = await ids(database)
    actor = await actor_on(database, VAULT, customer_id)
    await set_role(actor, people["cem"], "admin")
    removals = (remove(actor, people[name], take_all_accounts) for name in ("ada", "cem"))
    done = await asyncio.gather(*removals, return_exceptions=True)
    assert [type(one) for one in done if isinstance(one, BaseException)] == [LastAdministrator]


async def test_two_who_are_invited_with_lower_roles_at_once_leave_an_administrator(database: Database) -> None:
    """Neither has signed in yet, so each invitation may change the role."""
    customer_id, people = await ids(database)
    actor = await actor_on(database, VAULT, customer_id)
    await set_role(actor, people["cem"], "admin")
    invited = []
    async with database.transaction(OPERATOR) as connection:
        await connection.execute("SELECT FROM users WHERE customer_id = $1 FOR UPDATE", customer_id)
        for count, name in enumerate(("ada", "cem"), 1):
            again = invite(actor, f"{name}@acme.example", name=None, role="viewer", mails=False, start_over=None)
            invited.append(asyncio.create_task(again))
            await until(lambda count=count: database.fetch(OPERATOR, f"SELECT WHERE ({WAITING}) = {count}"))
    done = await asyncio.gather(*invited, return_exceptions=True)
    assert [type(one) for one in done if isinstance(one, BaseException)] == [LastAdministrator]
    assert await roles(database) == {"ada": ("viewer", True), "bob": ("admin", False), "cem": ("admin", True)}


async def test_of_two_owners_who_are_deactivated_at_once_by_commands_one_stays(database: Database) -> None:
    actor = await actor_on(database, VAULT, 0)
    staff = await database.fetch(
        OPERATOR,
        "INSERT INTO staff (email, email_key, name, role) SELECT key, key, key, 'owner'"
        " FROM unnest(ARRAY['a@largesse.example', 'b@largesse.example']) AS one (key) RETURNING id",
    )
    ended = []
    async with database.transaction(OPERATOR) as connection:
        await connection.execute("SELECT FROM staff FOR UPDATE")
        for count, row in enumerate(staff, 1):
            ended.append(asyncio.create_task(deactivate(actor, row["id"])))
            await until(lambda count=count: database.fetch(OPERATOR, f"SELECT WHERE ({WAITING}) = {count}"))
    done = await asyncio.gather(*ended, return_exceptions=True)
    assert [type(one) for one in done if isinstance(one, BaseException)] == [LastOwner]


async def test_nobody_of_another_customer_or_removed_is_found(database: Database) -> None:
    customer_id, people = await ids(database)
    actor = await actor_on(database, VAULT, customer_id)
    _, others = await ids(database, "globex")
    for user_id in (others["cem"], people["bob"], 2**31 - 1):
        with pytest.raises(NotFound):
            await remove(actor, user_id, take_all_accounts)
        with pytest.raises(NotFound):
            await set_role(actor, user_id, "viewer")


@pytest.mark.skipif(IS_DISTRIBUTED, reason="a cluster has settings of its own for the coordinator's tables")
async def test_a_list_of_people_reads_its_customer_once(connection: asyncpg.Connection) -> None:
    """Among many customers with one person, a list of 5,000 looked the customer up for each, from the sixth on."""
    await connection.execute(
        """
        SET session_replication_role = replica;
        INSERT INTO customers (id, key, name, plan, funding) OVERRIDING SYSTEM VALUE
        SELECT 1000 + n, 'many-' || n, 'Many', 'pro', 'balance' FROM generate_series(1, 3000) AS n;
        INSERT INTO users (customer_id, email, name, role)
        SELECT CASE WHEN n > 3000 THEN 1001 ELSE 1000 + n END, n || '@many.example', 'P', 'member' FROM generate_series(1, 4000) AS n;
        ANALYZE customers, users
        """
    )
    so_far = "SELECT (seq_tup_read + idx_tup_fetch)::int FROM pg_stat_xact_user_tables WHERE relname = 'customers'"
    async with connection.transaction():  # between transactions PostgreSQL reports what was read, and counts anew
        before = await connection.fetchval(so_far)
        for _ in range(8):  # the last ones by the plan for any arguments
            assert len(await list_members(connection, 1001)) == 1001
        assert await connection.fetchval(so_far) - before == 8
    assert {one.customer for one in await list_members(connection)} >= {"many-1", "many-3000"}
