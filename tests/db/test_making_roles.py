"""Roles on a server that has none yet: made by several databases at once, by who may make roles, and not by who may not."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from largesse.db import migrate
from largesse.db.embedded import EmbeddedServer
from largesse.db.grants import as_script, differences, is_advice, prepare_roles
from largesse.db.policies import TABLES as HELD_APART
from largesse.db.pool import Database
from largesse.db.roles import Role
from largesse.db.scope import OPERATOR
from largesse.verify.rights import RIGHTS, check_policies, check_rights

pytestmark = pytest.mark.embedded

DATABASES = 6


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    folder: Path = tmp_path_factory.mktemp("roles")
    with EmbeddedServer(folder / "data", extra_settings={"fsync": "off"}) as server:
        yield server


@pytest.fixture
async def admin(server: EmbeddedServer) -> Any:
    """A connection as the superuser; no role is there, and no database but the server's own."""
    connection = await asyncpg.connect(server.url("postgres"))
    for (name,) in await connection.fetch("SELECT datname FROM pg_database WHERE datname LIKE 'many%'"):
        await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    for role in Role:
        await connection.execute(f"DROP ROLE IF EXISTS {role}")
    for (name,) in await connection.fetch("SELECT rolname FROM pg_roles WHERE rolname LIKE 'many%'"):
        await connection.execute(f"DROP ROLE {name}")
    yield connection
    await connection.close()


async def test_databases_that_migrate_at_once_make_the_roles_together(
    admin: asyncpg.Connection, server: EmbeddedServer
) -> None:
    names = [f"many_{number}" for number in range(DATABASES)]
    for name in names:
        await admin.execute(f"CREATE DATABASE {name} STRATEGY FILE_COPY")
    sessions = [await asyncpg.connect(server.url(name)) for name in names]
    refused = await asyncio.gather(*(prepare_roles(session) for session in sessions))
    assert refused == [[]] * DATABASES
    assert {await session.fetchval("SELECT current_user") for session in sessions} == {Role.OWNER}
    again = await asyncio.gather(*(prepare_roles(session) for session in sessions))
    assert again == refused
    for session in sessions:
        await session.close()
    members = await admin.fetch(
        "SELECT roleid::regrole::text FROM pg_auth_members WHERE member::regrole::text = $1", Role.OWNER
    )
    assert sorted(role for (role,) in members) == sorted(set(Role) - {Role.OWNER})


async def test_an_administrator_hands_over_the_schema_beside_a_service_that_works(
    admin: asyncpg.Connection, server: EmbeddedServer
) -> None:
    """A transaction that the hand-over waits for takes a lock that it has asked for before, and goes on: there is no circle."""
    await admin.execute("CREATE ROLE many_login LOGIN PASSWORD 'x'")
    await admin.execute("CREATE DATABASE many_login OWNER many_login STRATEGY FILE_COPY")
    host = server.url().rpartition("?")[2]
    url = f"postgresql://many_login:x@/many_login?{host}"
    refused = (await migrate.upgrade(url)).refused
    assert "ALTER TABLE orders OWNER TO largesse_owner" in refused
    service, there = await asyncpg.connect(url), await asyncpg.connect(server.url("many_login"))
    async with service.transaction():
        await service.execute("UPDATE orders SET message = NULL WHERE false")
        running = asyncio.create_task(run_as_psql_1(server.url("many_login"), as_script(refused)))
        waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'orders'::regclass)"
        while not await there.fetchval(waits):
            assert not running.done()
            await asyncio.sleep(0.01)
        # Of tables before and after it in the script, which one transaction would all hold by now or ask for.
        for table in ("accounts", "entries", "lines", "users"):
            await service.execute(f"SELECT FROM {table} FOR KEY SHARE")
    await running
    assert (await migrate.upgrade(url)).refused == []
    owners = await there.fetch(
        "SELECT DISTINCT relowner::regrole::text FROM pg_class WHERE relname IN ('orders', 'users')"
    )
    assert owners == [(Role.OWNER,)]
    for session in (service, there):
        await session.close()


async def test_a_service_that_works_is_waited_for(admin: asyncpg.Connection, server: EmbeddedServer) -> None:
    """The same by who may hand over: `migrate` asks again and again, and the service never waits for long."""
    await admin.execute("CREATE ROLE many_before LOGIN PASSWORD 'x'")
    await admin.execute("CREATE DATABASE many_before OWNER many_before STRATEGY FILE_COPY")
    await migrate.upgrade(f"postgresql://many_before:x@/many_before?{server.url().rpartition('?')[2]}")
    service, there = [await asyncpg.connect(server.url("many_before")) for _ in range(2)]
    async with service.transaction():
        await service.execute("UPDATE users SET name = name WHERE false")
        running = asyncio.create_task(migrate.upgrade(server.url("many_before")))
        handed = "SELECT relowner::regrole::text FROM pg_class WHERE relname = 'templates'"
        while await there.fetchval(handed) != Role.OWNER:  # one of those before it
            assert not running.done()
            await asyncio.sleep(0.01)
        for table in ("accounts", "entries", "lines", "orders"):
            await service.execute(f"SELECT FROM {table} FOR KEY SHARE")
    assert (await running).refused == []
    for session in (service, there):
        await session.close()


@pytest.mark.parametrize("may_make", [True, False])
async def test_a_login_that_is_no_superuser_migrates(
    admin: asyncpg.Connection, server: EmbeddedServer, may_make: bool
) -> None:
    name = f"many_{may_make}".lower()
    await admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{name}' {'CREATEROLE' if may_make else ''}")
    await admin.execute(f"CREATE DATABASE {name} OWNER {name} STRATEGY FILE_COPY")
    host = server.url().rpartition("?")[2]
    url = f"postgresql://{name}:{name}@/{name}?{host}"

    done = await migrate.upgrade(url)

    # Who has not BYPASSRLS gives it to nobody; who may make no roles leaves all of it.
    assert done.revision == migrate.head_revision()
    assert all(is_advice(statement) for statement in done.refused) == may_make
    assert (f"ALTER ROLE {Role.OWNER} BYPASSRLS" in done.refused) is True
    database = await Database.connect(url, role=Role.APP)
    async with database.connection(OPERATOR) as connection:
        assert await connection.fetchval("SELECT current_user::text") == (Role.APP if may_make else name)
        assert await check_rights(connection) == []
        assert bool((await differences(connection)).missing) != may_make
        # Row-level security comes with the roles: without them it would show nobody anything.
        assert await check_policies(connection) == []
        secured = "SELECT count(*) FILTER (WHERE relforcerowsecurity) FROM pg_class WHERE relname = ANY($1::text[])"
        assert await connection.fetchval(secured, list(HELD_APART)) == (len(HELD_APART) if may_make else 0)
        for check in RIGHTS:
            assert await connection.fetch(check.sql) == [], check.name
    await database.close()


async def run_as_psql_1(url: str, script: str) -> None:
    """Runs a script as `psql -1` does, the hardest way: each line a statement, all between BEGIN and COMMIT."""
    session = await asyncpg.connect(url)
    for statement in ["BEGIN", *script.splitlines(), "COMMIT"]:
        await session.execute(statement)
    await session.close()
