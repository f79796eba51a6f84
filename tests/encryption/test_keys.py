"""The keys of chains: made once, sealed, kept through a change of the master key, and missed when they are gone."""

import asyncio

import asyncpg
import pytest

from largesse.audit.service import Acting, by_command
from largesse.base.errors import OperatorError
from largesse.encryption.chain import START
from largesse.encryption.chain_keys import Chains, open_chains
from largesse.encryption.vault import Vault

OLD, NEW = b"o" * 32, b"n" * 32
ROW = b"row"


async def opened(connection: asyncpg.Connection, *keys: bytes, keep: bool = True) -> Chains:
    return await open_chains(connection, Vault(keys), keep=keep)


async def test_the_first_who_comes_makes_the_key_and_all_others_have_it(database_url: str) -> None:
    connections = [await asyncpg.connect(database_url) for _ in range(5)]
    try:
        chains = await asyncio.gather(*(opened(connection, OLD) for connection in connections))
    finally:
        for connection in connections:
            await connection.close()
    mac, _ = chains[0].entries.add(START, ROW)
    assert all(one.entries.fits(START, ROW, mac) for one in chains)
    assert not any(one.audit.fits(START, ROW, mac) for one in chains)


async def test_two_installations_have_different_keys(connection: asyncpg.Connection, clone_database: object) -> None:
    other = await asyncpg.connect(clone_database())  # type: ignore[operator]
    try:
        mac, _ = (await opened(connection, OLD)).entries.add(START, ROW)
        assert not (await opened(other, OLD)).entries.fits(START, ROW, mac)
    finally:
        await other.close()


async def test_an_audit_makes_none(connection: asyncpg.Connection) -> None:
    chains = await opened(connection, OLD, keep=False)
    assert await connection.fetchval("SELECT count(*) FROM chain_keys") == 0
    with pytest.raises(KeyError):
        chains.entries.add(START, ROW)


async def test_a_new_master_key_brings_a_new_key_and_the_old_one_can_go(connection: asyncpg.Connection) -> None:
    before, _ = (await opened(connection, OLD)).entries.add(START, ROW)
    both = await opened(connection, NEW, OLD)
    after, _ = both.entries.add(START, ROW)
    assert both.entries.fits(START, ROW, before)
    assert before[0] != after[0]
    alone = await opened(connection, NEW)
    assert alone.entries.fits(START, ROW, before)
    assert alone.entries.fits(START, ROW, after)
    assert await connection.fetchval("SELECT count(*) FROM chain_keys") == 2
    with pytest.raises(OperatorError, match="does not decrypt the keys"):
        await opened(connection, OLD)


async def test_keys_that_are_gone_are_not_made_anew(connection: asyncpg.Connection) -> None:
    acting = Acting(by_command("test"), await opened(connection, OLD))
    async with connection.transaction():
        await acting.record(connection, "world.loaded", "a file")
    await connection.execute("DELETE FROM chain_keys")
    with pytest.raises(OperatorError, match="are missing from the table `chain_keys`"):
        await opened(connection, OLD)
