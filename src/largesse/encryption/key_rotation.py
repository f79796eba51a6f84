"""Key rotation: encrypts everything again under the newest master key while the service runs, until the older keys can be removed.

It repeats its passes over each registered column until one finds nothing under an older key. After each step it pauses as long as the step
took, so that it uses at most half of a connection and of a processor.
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta

import msgspec

from largesse.base import clock
from largesse.base.errors import OperatorError
from largesse.customers.actor import Actor
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.encryption.chain_keys import KEYS as CHAIN_KEYS
from largesse.encryption.columns import SealedTable, SealKey, sealed_tables
from largesse.encryption.master_keys import IDLE, KeyRecord, list_master_keys, retire, sealing_elsewhere
from largesse.encryption.vault import Vault

_AT_ONCE = 1_000
_LOOK_AGAIN_S = 0.5
_MAX_PASSES = 1_000

# Called with the table, and how many of its rows were read and encrypted.
OnProgress = Callable[[str, int, int], None]


class Resealed(msgspec.Struct):
    """The result of a run: encrypted rows by table, rows that no key of the list decrypts, and retired keys."""

    newest: str
    rows: dict[str, int]
    broken: dict[str, int]
    retired: list[str]
    dispensable: list[str]  # keys that can be removed from the list: all that were ever retired
    seconds: float


def encrypted_columns() -> list[SealedTable]:
    """Returns all encrypted columns of the database except those about master keys. A test compares them with the schema."""
    return [*sealed_tables(), CHAIN_KEYS]


async def rotate_keys(
    actor: Actor, database: Database, vault: Vault, *, on_progress: OnProgress, rest: float = 1.0
) -> Resealed:
    """Encrypts everything as `reseal` does, and records it in the audit log."""
    done = await reseal(database, vault, on_progress=on_progress, rest=rest)
    async with actor.transaction() as transaction:
        after = {"rows": sum(done.rows.values()), "retired": done.retired}
        await transaction.record("secrets.resealed", f"master key {done.newest}", after=after)
    return done


async def reseal(
    database: Database,
    vault: Vault,
    *,
    on_progress: OnProgress = lambda _table, _read, _resealed: None,
    idle: timedelta = IDLE,
    rest: float = 1.0,
    at_once: int = _AT_ONCE,
) -> Resealed:
    """Encrypts everything under the newest key of the vault and retires the others. It may be interrupted and started again.

    `rest` is the length of a pause, as a multiple of the step before it. Raises OperatorError while a process encrypts under another key.
    """
    began_s = clock.passed_s()
    await _wait_for_others(database, vault, idle)
    rows: dict[str, int] = {}
    broken: dict[str, int] = {}
    for table in encrypted_columns():
        renewed, unreadable = await _rotate(database, vault, table, rest=rest, at_once=at_once, on_progress=on_progress)
        rows[table.table] = rows.get(table.table, 0) + renewed  # a table may have two encrypted columns
        broken[table.table] = broken.get(table.table, 0) + unreadable
    async with database.transaction(OPERATOR) as connection:
        retired = await retire(connection, vault, idle)
        known = await list_master_keys(connection)
    return Resealed(
        newest=vault.key_ids[0].hex(),
        rows=rows,
        broken=broken,
        retired=[key.name for key in retired],
        dispensable=[key.name for key in known if not key.is_needed],
        seconds=clock.passed_s() - began_s,
    )


async def _rotate(
    database: Database, vault: Vault, table: SealedTable, *, rest: float, at_once: int, on_progress: OnProgress
) -> tuple[int, int]:
    """Encrypts a table until nothing is under an older key. Returns how many rows it encrypted, and how many no key of the list decrypts."""
    total = 0
    for _ in range(_MAX_PASSES):
        after: SealKey | None = table.before_all
        read = resealed = left = broken = 0
        while after is not None:
            began_s = clock.passed_s()
            step = await table.reseal_next(database, vault, after, at_once)
            after = step.last
            read += step.read
            resealed += step.resealed
            left += step.left
            broken += step.broken
            on_progress(table.table, read, resealed)
            if after is not None:
                await asyncio.sleep((clock.passed_s() - began_s) * rest if step.resealed else 0)
        total += resealed
        if not left:
            return total, broken
        await asyncio.sleep(_LOOK_AGAIN_S)
    raise OperatorError(f"rows of {table.table} stay locked by other transactions: run this again later")


async def _wait_for_others(database: Database, vault: Vault, idle: timedelta) -> None:
    """Waits until no process has reported another key for `idle`. Raises OperatorError if a process continues to report one."""
    first: dict[bytes, KeyRecord] = {}
    while True:
        elsewhere = await database.read(OPERATOR, sealing_elsewhere, vault, idle)
        if not elsewhere:
            return
        for key in elsewhere:
            known = first.setdefault(key.id, key)
            if key.sealing_at != known.sealing_at:
                raise OperatorError(
                    f"a process still encrypts under the key {key.name}: restart every process, serving and working, with the "
                    f"same list and {vault.key_ids[0].hex()} in front, and run this again"
                )
        await asyncio.sleep(_LOOK_AGAIN_S)
