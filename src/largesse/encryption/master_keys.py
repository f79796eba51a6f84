"""Checks the master keys of a process. With a wrong key it would accept orders, but could not decrypt the codes of earlier ones.

For each key that a process has used, the database stores a known text, encrypted under that key. A list of keys is right if it decrypts every
text whose key is still needed. A key is needed until `largesse reseal` has retired it.

A key can be retired when nothing is encrypted under it, and no process encrypts under it.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

import asyncpg
import msgspec
import structlog

from largesse.base.errors import OperatorError
from largesse.db.pool import DATABASE_FAILED, Connection, Database
from largesse.db.scope import OPERATOR
from largesse.db.statements import read_now
from largesse.encryption.vault import DecryptionFailed, Vault

_LOCK = "SELECT pg_advisory_xact_lock(hashtext('largesse/master_keys'))"
_LIST = "SELECT id, sealed, since, sealing_at, retired_at, sealed_rest FROM master_keys ORDER BY since, id"
_NOTE_SEALING = "SELECT note_sealing($1)"
_CREDENTIALS_HASHES = "SELECT id, credentials_hash FROM master_keys"
_KEEP = """
    INSERT INTO master_keys (id, sealed, since, credentials_hash)
    SELECT id, sealed, clock_now(), hash FROM unnest($1::bytea[], $2::bytea[], $3::bytea[]) AS new (id, sealed, hash)
    ON CONFLICT (id) DO UPDATE SET credentials_hash = excluded.credentials_hash
"""
_KEEP_SEALING = "UPDATE master_keys SET sealing_at = clock_now(), retired_at = NULL, sealed_rest = NULL WHERE id = $1"
_LAST_SEALED = "SELECT last_sealed()"
_RENEW_REST = "UPDATE master_keys SET sealed_rest = $2 WHERE id = $1 AND sealed_rest = $3"
_RETIRE = """
    UPDATE master_keys SET retired_at = clock_now(), sealed_rest = $2
    WHERE id = $1 AND retired_at IS NULL AND (sealing_at IS NULL OR sealing_at < clock_now() - $3::interval)
    RETURNING true
"""

_TEXT = b"largesse"
_CONTEXT = b"master-key-proof"
_TELL_EVERY_S = 10.0

_log = structlog.get_logger(__name__)


class KeyRecord(msgspec.Struct, frozen=True):
    """A master key in the database. `sealed` is its known text. `sealed_rest` is the part of a retired key that is still needed."""

    id: bytes
    sealed: bytes
    since: datetime
    sealing_at: datetime | None  # when a process last reported that it encrypts under it
    retired_at: datetime | None  # when it was found that nothing is encrypted under it
    sealed_rest: bytes | None

    @property
    def name(self) -> str:
        """The name that operators see. It reveals nothing about the key."""
        return self.id.hex()

    @property
    def is_needed(self) -> bool:
        """Whether something may be encrypted under it."""
        return self.retired_at is None


async def prove_master_key(connection: Connection, vault: Vault, *, keep: bool) -> None:
    """Raises OperatorError if the vault's keys are not those of this database, or lack one that is still needed.

    With `keep`, stores new keys, and records that the newest one encrypts. Lets the vault open claim links of retired keys. `connection` must
    not be in a transaction.
    """
    try:
        async with connection.transaction():
            if keep:  # if several processes start for the first time together, one decides
                await connection.execute(_LOCK)
            known = await list_master_keys(connection)
            await _require_all(connection, vault, known)
            _keep_rests(vault, known)
            if keep:
                await _keep(connection, vault)
    except asyncpg.ReadOnlySQLTransactionError:  # a standby: its primary stores the known texts
        return


async def is_sealed(connection: Connection) -> bool:
    """Returns whether anything in the database is encrypted under a master key."""
    return bool(await list_master_keys(connection)) or await _sealed_last(connection) is not None


async def list_master_keys(connection: Connection) -> list[KeyRecord]:
    """Returns every key that was ever in the list of a process, the oldest first."""
    rows = await connection.fetch(_LIST)
    return [KeyRecord(**row) for row in rows]


async def note_sealing(connection: Connection, vault: Vault) -> bool:
    """Records that a process encrypts under the newest key of the vault now.

    Returns whether the database has every key of the vault, and the newest is not retired.
    """
    try:
        is_needed: bool = await connection.fetchval(_NOTE_SEALING, vault.key_ids[0])
    except asyncpg.ReadOnlySQLTransactionError:  # a standby: its primary stores the keys
        return True
    rows = await connection.fetch(_CREDENTIALS_HASHES)
    known = {(row["id"], row["credentials_hash"]) for row in rows}
    return is_needed and known.issuperset(zip(vault.key_ids, vault.credentials_hashes, strict=True))


async def tell_sealing_for_ever(database: Database, vault: Vault) -> None:
    """Repeats `note_sealing` until cancelled."""
    while True:
        await asyncio.sleep(_TELL_EVERY_S)
        try:
            async with database.connection(OPERATOR) as connection:
                await note_sealing(connection, vault)
        except DATABASE_FAILED as error:
            _log.warning("sealing_not_told", error=type(error).__name__)


async def _require_all(connection: Connection, vault: Vault, known: Sequence[KeyRecord]) -> None:
    """Raises OperatorError unless the vault decrypts the known text of every key that is needed."""
    if not known:
        last = await _sealed_last(connection)
        if last is not None and not vault.knows(last):
            raise _wrong_key()
        return
    missing = [key for key in known if key.is_needed and not _opens(vault, key.sealed)]
    if len(missing) == len([key for key in known if key.is_needed]):
        raise _wrong_key()
    if missing:
        names = " and ".join(f"{key.name} (in use since {key.since:%Y-%m-%d})" for key in missing)
        raise OperatorError(
            f"LARGESSE_MASTER_KEY lacks a key that other processes have, {names}: data is encrypted under it, or may be at any moment. "
            "Add it to the list, after the first key; `largesse reseal` says when you can remove a key"
        )


def _keep_rests(vault: Vault, known: Sequence[KeyRecord]) -> None:
    for key in known:
        if key.sealed_rest is None:
            continue
        try:
            vault.keep_rest(key.id, key.sealed_rest)
        except DecryptionFailed:
            _log.error("links_of_key_lost", key=key.name)


async def _keep(connection: Connection, vault: Vault) -> None:
    """Stores the keys of the vault. The newest key encrypts from now on, so it is needed even if it was retired before."""
    await connection.execute(
        _KEEP,
        vault.key_ids,
        [vault.prove(key_id, _TEXT, _CONTEXT) for key_id in vault.key_ids],
        vault.credentials_hashes,
    )
    await connection.execute(_KEEP_SEALING, vault.key_ids[0])


async def _sealed_last(connection: Connection) -> bytes | None:
    """Returns the last encrypted value. It shows the key of a database that is older than these checks."""
    sealed: bytes | None = await connection.fetchval(_LAST_SEALED)
    return sealed


def _opens(vault: Vault, sealed: bytes) -> bool:
    try:
        return vault.proof.open(sealed, _CONTEXT) == _TEXT
    except DecryptionFailed:
        return False


def _wrong_key() -> OperatorError:
    return OperatorError(
        "LARGESSE_MASTER_KEY is not the key that this database is encrypted under: put that key back, into the list "
        "or, with an embedded database, into the file `master-key` of the data directory"
    )


# Every few seconds, a process reports the key that it encrypts under.
# A process that was silent for this long no longer runs, and neither do its transactions.
IDLE = timedelta(seconds=60)


async def sealing_elsewhere(connection: Connection, vault: Vault, idle: timedelta = IDLE) -> list[KeyRecord]:
    """Returns the keys other than the newest under which a process encrypted within `idle`."""
    now = await read_now(connection)
    return [
        key
        for key in await list_master_keys(connection)
        if key.id != vault.key_ids[0] and key.sealing_at is not None and key.sealing_at > now - idle
    ]


async def retire(connection: Connection, vault: Vault, idle: timedelta = IDLE) -> list[KeyRecord]:
    """Retires every key except the newest. Returns those that it retired.

    Call it when nothing is encrypted under them. Skips a key under which a process encrypts again. Encrypts the needed parts of keys that were
    retired before under the newest key.
    """
    retired = []
    for key in await list_master_keys(connection):
        if key.sealed_rest is not None and not vault.rests.is_newest(key.sealed_rest):
            await connection.execute(_RENEW_REST, key.id, vault.reseal_rest(key.id, key.sealed_rest), key.sealed_rest)
        if not key.is_needed or key.id == vault.key_ids[0]:
            continue
        if await connection.fetchval(_RETIRE, key.id, vault.rest_of(key.id), idle):
            retired.append(key)
    return retired
