"""The proof of the master key: a wrong one would take orders, seal their codes under itself, and open none of the others.

The database keeps a known text, sealed. A list of keys is right when one of them opens it. From then on it is sealed by the
first of the list, so that a key that was replaced may be dropped one day, and a list without the newest key is refused.
"""

from __future__ import annotations

import asyncpg

from largesse.base.errors import StartError
from largesse.base.vault import SealBroken, Vault
from largesse.database import Connection

_TEXT = b"largesse"
_CONTEXT = b"master-key-proof"
# A database sealed before there was a proof: whatever was sealed last tells.
_SEALED_LAST = (
    "SELECT sealed FROM lines ORDER BY order_id DESC, number DESC LIMIT 1",
    "SELECT sealed FROM vouchers ORDER BY id DESC LIMIT 1",
    "SELECT sealed_secret FROM webhook_subscriptions ORDER BY created_at DESC LIMIT 1",
)


async def prove_master_key(connection: Connection, vault: Vault, *, keep: bool) -> None:
    """Raises StartError when the vault's keys are not those of this database.

    With `keep` the proof is written where there is none, and sealed anew when a newer key has come; of several processes
    that do so at once, one wins, and the others are held against it. `connection` must not be in a transaction.
    """
    while True:
        sealed = await _read(connection)
        if sealed is None:
            last = await _sealed_last(connection)
            if last is not None and not vault.knows(last):
                raise _wrong_key()
        elif not _opens(vault, sealed):
            raise _wrong_key()
        if not keep or (sealed is not None and vault.proof.is_newest(sealed)):
            return
        try:
            await _write(connection, sealed, vault.proof.seal(_TEXT, _CONTEXT))
        except asyncpg.ReadOnlySQLTransactionError:  # a standby: its primary keeps the proof
            return


async def is_sealed(connection: Connection) -> bool:
    """Whether anything in the database was sealed by some master key."""
    return await _read(connection) is not None or await _sealed_last(connection) is not None


async def _read(connection: Connection) -> bytes | None:
    sealed: bytes | None = await connection.fetchval("SELECT sealed FROM master_key_proof")
    return sealed


async def _write(connection: Connection, before: bytes | None, sealed: bytes) -> None:
    """Puts a proof in the place of what was read, unless somebody else has done so."""
    if before is None:
        await connection.execute(
            "INSERT INTO master_key_proof (sealed) VALUES ($1) ON CONFLICT DO NOTHING", sealed
        )
    else:
        await connection.execute("UPDATE master_key_proof SET sealed = $2 WHERE sealed = $1", before, sealed)


async def _sealed_last(connection: Connection) -> bytes | None:
    for query in _SEALED_LAST:
        sealed: bytes | None = await connection.fetchval(query)
        if sealed is not None:
            return sealed
    return None


def _opens(vault: Vault, sealed: bytes) -> bool:
    try:
        return vault.proof.open(sealed, _CONTEXT) == _TEXT
    except SealBroken:
        return False


def _wrong_key() -> StartError:
    return StartError(
        "LARGESSE_MASTER_KEY is not the key that this database is sealed under: put that key back, into the list "
        "or, with an embedded database, into the file `master-key` of the data directory"
    )
