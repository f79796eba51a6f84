"""The keys of chains: random, numbered, and sealed in the database under the master key.

They are no part of the master key, so that an old one can go while every mark that was made under it can still be checked. A new
master key brings a new key, for whoever had the old one may know the others; marks made before keep theirs, and stand by those that follow
them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import asyncpg

from largesse.base.errors import StartError
from largesse.base.vault import SealBroken, Vault
from largesse.chains.chain import Chain
from largesse.database import Connection

_KEY_BYTES = 32
_MOST_KEYS = 255
_ONE_AT_A_TIME = "LOCK TABLE chain_keys IN SHARE ROW EXCLUSIVE MODE"


@dataclass(frozen=True, slots=True)
class Chains:
    """The chains of an installation: those of its ledger's accounts and those of its audit log."""

    entries: Chain
    audit: Chain

    @classmethod
    def of(cls, keys: dict[int, bytes]) -> Chains:
        """All chains under these keys."""
        return cls(Chain("entries", keys), Chain("audit", keys))


async def open_chains(connection: Connection, vault: Vault, *, keep: bool) -> Chains:
    """The chains of this database. Raises StartError when the vault does not open their keys.

    With `keep` the first key is made where there is none, and a new one when the master key is a new one. Raises StartError
    where there is none and something is chained all the same: a new one would only hide that the key is gone.
    """
    sealed = await _read(connection)
    if keep and not sealed:
        return await _begin(connection, vault)
    if keep and not vault.chains.is_newest(sealed[max(sealed)]):
        sealed = await _renew(connection, vault, sealed)
    return Chains.of(_open_all(vault, sealed))


def reseal_key(vault: Vault, number: int, sealed: bytes) -> bytes:
    """The sealed key of that number under the newest master key. Raises SealBroken."""
    return vault.chains.seal(vault.chains.open(sealed, _context(number)), _context(number))


async def _begin(connection: Connection, vault: Vault) -> Chains:
    """Makes the first key, unless somebody else has made it, and opens the chains."""
    async with connection.transaction():
        await connection.execute(_ONE_AT_A_TIME)
        if not await _read(connection):
            if await connection.fetchval("SELECT has_audit_heads()"):
                raise StartError(
                    "the keys that the audit log is chained with are gone from the table `chain_keys`: bring it back "
                    "from a backup"
                )
            await _add(connection, vault, 1)
        return Chains.of(_open_all(vault, await _read(connection)))


async def _renew(connection: Connection, vault: Vault, sealed: dict[int, bytes]) -> dict[int, bytes]:
    """Brings the keys under the newest master key and makes one more; of several that do so at once, one wins."""
    opened = _open_all(vault, sealed)
    try:
        async with connection.transaction():
            await connection.execute(_ONE_AT_A_TIME)
            if vault.chains.is_newest((now := await _read(connection))[max(now)]):
                return now
            for number, key in opened.items():
                resealed = vault.chains.seal(key, _context(number))
                await connection.execute(
                    "UPDATE chain_keys SET sealed = $2 WHERE number = $1", number, resealed
                )
            if max(opened) < _MOST_KEYS:
                await _add(connection, vault, max(opened) + 1)
            return await _read(connection)
    except asyncpg.ReadOnlySQLTransactionError:  # a standby: its primary sees to it
        return sealed


async def _read(connection: Connection) -> dict[int, bytes]:
    rows = await connection.fetch("SELECT number, sealed FROM chain_keys ORDER BY number")
    return {row["number"]: row["sealed"] for row in rows}


async def _add(connection: Connection, vault: Vault, number: int) -> None:
    await connection.execute(
        "INSERT INTO chain_keys (number, sealed, made_at) SELECT $1, $2, clock_now()",
        number,
        vault.chains.seal(os.urandom(_KEY_BYTES), _context(number)),
    )


def _open_all(vault: Vault, sealed: dict[int, bytes]) -> dict[int, bytes]:
    try:
        return {number: vault.chains.open(key, _context(number)) for number, key in sealed.items()}
    except SealBroken:
        raise StartError(
            "LARGESSE_MASTER_KEY does not open the keys that the ledger and the audit log are chained with"
        ) from None


def _context(number: int) -> bytes:
    return b"chain-key/" + number.to_bytes()
