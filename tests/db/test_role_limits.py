"""Limits of the roles: on the sessions of a login, and on how long each runs, waits and holds locks."""

from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import asyncpg
import pytest

from largesse.db import migrate
from largesse.db.embedded import EmbeddedServer
from largesse.db.role_limits import LIMITS
from largesse.db.roles import Role

pytestmark = pytest.mark.embedded


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    folder: Path = tmp_path_factory.mktemp("limits")
    with EmbeddedServer(folder / "data", extra_settings={"fsync": "off"}) as server:
        yield server


@pytest.mark.long
async def test_a_login_takes_so_many_sessions_and_leaves_room_for_others(server: EmbeddedServer) -> None:
    admin = await asyncpg.connect(server.url())
    await admin.execute(f"ALTER ROLE {Role.READ} CONNECTION LIMIT 4")
    await migrate.upgrade(server.url())
    await admin.execute(f"CREATE ROLE delivers LOGIN IN ROLE {Role.WORKER}")
    assert (await migrate.upgrade(server.url())).refused == []
    limits = dict(
        await admin.fetch("SELECT rolname, rolconnlimit FROM pg_roles WHERE rolname ~ '^(largesse|delivers)'")
    )
    assert limits == {
        "largesse": -1,  # a superuser, whom no limit holds
        Role.OWNER: -1,
        Role.APP: 70,
        Role.WORKER: 40,
        Role.OFFICE: 15,
        Role.OPERATOR: 20,
        Role.READ: 4,  # an administrator's own
        "delivers": 40,
    }
    async with AsyncExitStack() as stack:
        for _ in range(4):
            session = await asyncpg.connect(server.url(role=Role.READ))
            stack.push_async_callback(session.close)
        with pytest.raises(asyncpg.TooManyConnectionsError, match=Role.READ):
            await asyncpg.connect(server.url(role=Role.READ))
        session = await asyncpg.connect(server.url(role=Role.OPERATOR))
        await session.close()
    await admin.close()


@pytest.mark.parametrize("role", list(LIMITS))
async def test_a_login_has_time_limits_without_asking_for_any(server: EmbeddedServer, role: Role) -> None:
    await migrate.upgrade(server.url())
    session = await asyncpg.connect(server.url(role=role))
    wanted = LIMITS[role].settings
    said = {
        name: await session.fetchval("SELECT setting::int FROM pg_settings WHERE name = $1", name) for name in wanted
    }
    await session.close()
    assert said == {name: int(value.removesuffix("s")) * 1000 for name, value in wanted.items()}
    assert ("transaction_timeout" in wanted) == (role in {Role.APP, Role.WORKER, Role.OFFICE})
    assert all(said.values())
