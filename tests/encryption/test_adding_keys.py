"""Who adds the keys of an installation: commands, and never a process that may only serve."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from dataclasses import replace
from urllib.parse import urlsplit

import asyncpg
import pytest
from tests.distributed import IS_DISTRIBUTED

from largesse.base.errors import OperatorError
from largesse.base.settings import Settings, load_settings
from largesse.db.roles import Role
from largesse.installation import chain_ledger, chains_of, open_database, open_vault

OLD, NEW = b"\x11" * 32, b"\x22" * 32
pytestmark = pytest.mark.skipif(IS_DISTRIBUTED, reason="a login would have to be made on each node")


@pytest.fixture
async def login(database_url: str) -> AsyncIterator[str]:
    """The address of a login that may serve and nothing else."""
    name = f"test_keys_{secrets.token_hex(4)}"
    admin = await asyncpg.connect(database_url)
    await admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{name}' IN ROLE {Role.APP}")
    parts = urlsplit(database_url)
    yield database_url.replace(f"//{parts.netloc}/", f"//{name}:{name}@{parts.netloc.rpartition('@')[2]}/", 1)
    await admin.execute(f"DROP ROLE {name}")
    await admin.close()


async def start(settings: Settings) -> None:
    """Opens what a serving process opens."""
    async with open_database(settings, role=Role.APP) as database:
        await chains_of(database, await open_vault(database, settings), settings)


async def test_a_login_that_only_serves_is_told_to_migrate_and_starts_then(database_url: str, login: str) -> None:
    serves = replace(load_settings({}), database_url=login, master_keys=(OLD,))
    with pytest.raises(OperatorError, match="run `largesse migrate` with it first"):
        await start(serves)
    owner = replace(serves, owner_database_url=database_url)
    assert await chain_ledger(owner) == 0
    await start(serves)
    # A new key is added by a command, too. Then processes with either list start, one after the other.
    with pytest.raises(OperatorError, match="run `largesse migrate` with it first"):
        await start(replace(serves, master_keys=(OLD, NEW)))
    await chain_ledger(replace(owner, master_keys=(OLD, NEW)))
    for keys in ((OLD, NEW), (NEW, OLD)):
        await start(replace(serves, master_keys=keys))
    with pytest.raises(OperatorError, match="lacks a key"):
        await start(replace(serves, master_keys=(NEW,)))


async def test_a_login_that_may_act_as_the_operator_adds_them_by_itself(database_url: str) -> None:
    settings = replace(load_settings({}), database_url=database_url, master_keys=(OLD,))
    await start(settings)
    admin = await asyncpg.connect(database_url)
    counts = "SELECT (SELECT count(*) FROM master_keys), (SELECT count(*) FROM chain_keys)"
    assert tuple(await admin.fetchrow(counts)) == (1, 1)
    await start(replace(settings, master_keys=(NEW, OLD)))
    assert tuple(await admin.fetchrow(counts)) == (2, 1)
    await admin.close()
