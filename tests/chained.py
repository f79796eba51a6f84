"""Chains for tests that write entries themselves."""

from __future__ import annotations

import asyncpg
from tests.spread import execute_each

from largesse.audit import Acting, by_command
from largesse.base.vault import Vault
from largesse.chains import Chain, open_chains
from largesse.database import OPERATOR, Database

# Under a key of nobody's: for tests that do not ask `verify`.
CHAIN = Chain("entries", {1: bytes(32)})


async def chain_of(connection: asyncpg.Connection, master_key: bytes) -> Chain:
    """The chain of the ledger of an installation with that master key."""
    return (await open_chains(connection, Vault((master_key,)), keep=True)).entries


async def forge(database: Database, forgery: str) -> None:
    """What whoever owns the tables can do: statements that no trigger refuses."""
    async with database.transaction(OPERATOR) as connection:
        await connection.execute("SET LOCAL session_replication_role = replica")
        await execute_each(connection, forgery)


async def acting_on(database: Database, vault: Vault) -> Acting:
    """An operator, for what a command keeps in the audit log."""
    async with database.connection(OPERATOR) as connection:
        return Acting(by_command("a test"), await open_chains(connection, vault, keep=True))
