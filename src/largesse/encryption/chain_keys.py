"""The keys of chains: random, numbered, and encrypted in the database under the master key.

They are not derived from the master key, so that an old master key can be retired while marks are still checked. With a new master key, a new
chain key is made, as somebody with the old master key may know the older ones. Earlier marks stay, and later ones secure them.

A key is encrypted together with the format of its marks. So a key of the current format proves that the installation is chained, and nobody
can make one with only the database. From then on, rows without marks are never accepted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import asyncpg
import msgspec

from largesse.base.errors import OperatorError
from largesse.db.pool import Connection
from largesse.encryption.chain import Chain
from largesse.encryption.columns import sealed_column
from largesse.encryption.vault import DecryptionFailed, Vault

_IS_LEDGER_CHAINED = "SELECT is_ledger_chained()"
_HAS_MARKS = "SELECT has_marks()"
_RENEW = "UPDATE chain_keys SET sealed = $2 WHERE number = $1"
_READ = "SELECT number, sealed FROM chain_keys ORDER BY number"
_ADD = "INSERT INTO chain_keys (number, sealed, made_at) SELECT $1, $2, clock_now()"

_KEY_BYTES = 32
_MOST_KEYS = 255
# The format of marks. 1: as in the first release, encrypted without this number. 2: an entry's mark also covers its account's details.
_FORMAT = 2
_SEALED_EARLY_BYTES = 64  # the id of the master key, nonce, key and tag
_ONE_AT_A_TIME = "LOCK TABLE chain_keys IN SHARE ROW EXCLUSIVE MODE"
RUN_MIGRATE = (
    "the ledger is not chained yet, or as an earlier release did it: run `largesse migrate` with the "
    "LARGESSE_MASTER_KEY of the installation"
)


class Chains(msgspec.Struct, frozen=True):
    """The chains of an installation: of its ledger accounts, of its audit log, and of line events."""

    entries: Chain
    audit: Chain
    moves: Chain

    @classmethod
    def of(cls, keys: Mapping[int, bytes], early: int = 0) -> Chains:
        """Returns all chains under these keys. Keys up to the number `early` have earlier formats."""
        return cls(Chain("entries", keys, early), Chain("audit", keys), Chain("moves", keys))


async def open_chains(connection: Connection, vault: Vault, *, keep: bool) -> Chains:
    """Opens the chains of this database. Raises OperatorError if the vault cannot decrypt their keys.

    With `keep`, makes the first key if there is none, and a new key for a new master key. Raises OperatorError if
    `migrate` must run first, and if there is no key although rows are chained: a new key would hide that the old one was lost.
    """
    sealed = await _read(connection)
    if keep and not sealed:
        return await _begin(connection, vault)
    if keep and not vault.chains.is_newest(sealed[max(sealed)]):
        sealed = await _renew(connection, vault, sealed)
    opened = _open_all(vault, sealed)
    if keep and opened[max(opened)].format < _FORMAT:
        raise OperatorError(RUN_MIGRATE)
    return _chains(opened)


async def is_chained(connection: Connection) -> bool:
    """Returns whether the chains have the current format, as far as is visible without the master key."""
    sealed = await _read(connection)
    return bool(sealed) and len(sealed[max(sealed)]) > _SEALED_EARLY_BYTES


async def bring_up_to_date(connection: Connection, vault: Vault) -> Chains | None:
    """Begins the chains, or continues them under a key of the current format. Returns None if that was done before.

    Call it in the transaction that marks the rows without a mark of this format. Others wait for it. Raises OperatorError if
    keys are missing.
    """
    await connection.execute(_ONE_AT_A_TIME)
    opened = _open_all(vault, await _read(connection))
    if opened and opened[max(opened)].format == _FORMAT:
        return None
    if not opened:
        await _refuse_marks(connection)
    await _add(connection, vault, max(opened, default=0) + 1)
    return _chains(_open_all(vault, await _read(connection)))


def reseal_key(vault: Vault, number: int, sealed: bytes) -> bytes:
    """Returns the sealed key with that number under the newest master key. Raises DecryptionFailed."""
    return vault.chains.seal(vault.chains.open(sealed, _context(number)), _context(number))


class _Key(msgspec.Struct, frozen=True):
    key: bytes
    format: int

    @classmethod
    def of(cls, opened: bytes) -> _Key:
        return cls(opened[:_KEY_BYTES], opened[_KEY_BYTES] if len(opened) > _KEY_BYTES else 1)


def _chains(opened: Mapping[int, _Key]) -> Chains:
    early = max((number for number, key in opened.items() if key.format < _FORMAT), default=0)
    return Chains.of({number: key.key for number, key in opened.items()}, early)


async def _begin(connection: Connection, vault: Vault) -> Chains:
    """Makes the first key of a new installation, unless another process has made it, and opens the chains."""
    async with connection.transaction():
        await connection.execute(_ONE_AT_A_TIME)
        if not await _read(connection):
            await _refuse_marks(connection)
            if not await connection.fetchval(_IS_LEDGER_CHAINED):
                raise OperatorError(RUN_MIGRATE)
            await _add(connection, vault, 1)
        return _chains(_open_all(vault, await _read(connection)))


async def _refuse_marks(connection: Connection) -> None:
    if await connection.fetchval(_HAS_MARKS):
        raise OperatorError(
            "the keys of the chains of ledger and audit log are missing from the table `chain_keys`: restore it from a backup"
        )


async def _renew(connection: Connection, vault: Vault, sealed: dict[int, bytes]) -> dict[int, bytes]:
    """Encrypts the keys under the newest master key and adds one. If several processes do this at once, one succeeds."""
    opened = _open_all(vault, sealed)
    if opened[max(opened)].format < _FORMAT:
        return sealed  # `migrate` must run first
    try:
        async with connection.transaction():
            await connection.execute(_ONE_AT_A_TIME)
            if vault.chains.is_newest((now := await _read(connection))[max(now)]):
                return now
            for number in opened:
                resealed = reseal_key(vault, number, now[number])
                await connection.execute(_RENEW, number, resealed)
            if max(opened) < _MOST_KEYS:
                await _add(connection, vault, max(opened) + 1)
            return await _read(connection)
    except asyncpg.ReadOnlySQLTransactionError:  # this is a standby: its primary does it
        return sealed


async def _read(connection: Connection) -> dict[int, bytes]:
    rows = await connection.fetch(_READ)
    return {row["number"]: row["sealed"] for row in rows}


async def _add(connection: Connection, vault: Vault, number: int) -> None:
    """Makes a key of the current format. Raises OperatorError if all numbers are used."""
    if number > _MOST_KEYS:
        raise OperatorError(f"there are already {_MOST_KEYS} keys of chains, and there may be no more")
    await connection.execute(
        _ADD, number, vault.chains.seal(os.urandom(_KEY_BYTES) + _FORMAT.to_bytes(), _context(number))
    )


def _open_all(vault: Vault, sealed: Mapping[int, bytes]) -> dict[int, _Key]:
    try:
        return {number: _Key.of(vault.chains.open(key, _context(number))) for number, key in sealed.items()}
    except DecryptionFailed:
        raise OperatorError(
            "LARGESSE_MASTER_KEY does not decrypt the keys of the chains of ledger and audit log"
        ) from None


def _context(number: int) -> bytes:
    return b"chain-key/" + number.to_bytes()


KEYS = sealed_column(
    "chain_keys", "sealed", {"number": "smallint"}, lambda vault: vault.chains, lambda row: _context(row["number"])
)
