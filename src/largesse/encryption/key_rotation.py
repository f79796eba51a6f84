"""Sealing everything anew under the newest master key, beside a running service, until the older keys can go.

A list of all that is sealed, gone through round after round until a round finds nothing older. Between two windows it rests for as long as
the last one took, so that it takes half of one connection and of one processor at most.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import msgspec

from largesse.base import clock
from largesse.base.errors import OperatorError
from largesse.customers.tasks import SECOND_STEPS
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.encryption.chain_keys import KEYS as CHAIN_KEYS
from largesse.encryption.columns import RotationStep, SealedTable
from largesse.encryption.master_keys import IDLE, KeyRecord, list_master_keys, retire, sealing_elsewhere
from largesse.encryption.vault import Vault
from largesse.fulfilment.tasks import ADDRESSES, EMAILS, VOUCHERS
from largesse.lines.tasks import CODES
from largesse.mail.tasks import CAPTURED
from largesse.webhooks.tasks import SECRETS

# Everything that is sealed in the database, but for the keys themselves (tests/resealing holds the columns against this list).
SEALED: tuple[SealedTable, ...] = (CODES, EMAILS, VOUCHERS, ADDRESSES, SECRETS, CAPTURED, CHAIN_KEYS, SECOND_STEPS)

_AT_ONCE = 1_000
_LOOK_AGAIN_S = 0.5
_MAX_ROUNDS = 1_000

# What is being sealed anew, and how many rows of it were looked at and sealed.
OnProgress = Callable[[str, int, int], None]


class Resealed(msgspec.Struct):
    """What a run came to: rows sealed anew by table, rows that no key of the list opens, and which keys it retired."""

    newest: str
    rows: dict[str, int]
    broken: dict[str, int]
    retired: list[str]
    dispensable: list[str]  # those that can be left out of the list: all that were ever retired
    seconds: float


async def reseal(
    database: Database,
    vault: Vault,
    *,
    on_progress: OnProgress = lambda _table, _read, _resealed: None,
    idle: timedelta = IDLE,
    rest: float = 1.0,
    at_once: int = _AT_ONCE,
) -> Resealed:
    """Seals everything anew under the newest key of the vault and retires the others. May be cut short and begun again.

    `rest` is how long it rests, as a multiple of how long it works. Raises OperatorError while some process seals under another key.
    """
    began_s = clock.passed_s()
    await _wait_for_others(database, vault, idle)
    rows: dict[str, int] = {}
    broken: dict[str, int] = {}
    for table in SEALED:
        done = _Round(database, vault, table, rest, at_once, on_progress)
        rows[table.table], broken[table.table] = await done.repeat()
    async with database.transaction(OPERATOR) as connection:
        retired = await retire(connection, vault, idle)
        known = await list_master_keys(connection)
    return Resealed(
        newest=vault.key_ids[0].hex(),
        rows=rows,
        broken=broken,
        retired=_names(retired),
        dispensable=_names([key for key in known if not key.is_needed]),
        seconds=clock.passed_s() - began_s,
    )


class _Round:
    """Goes through a table, again and again, until nothing older is left in it."""

    def __init__(
        self, database: Database, vault: Vault, table: SealedTable, rest: float, at_once: int, on_progress: OnProgress
    ) -> None:
        self._database = database
        self._vault = vault
        self._table = table
        self._rest = rest
        self._at_once = at_once
        self._on_progress = on_progress

    async def repeat(self) -> tuple[int, int]:
        """How many rows it sealed anew, and how many no key of the list opens."""
        resealed = 0
        for _ in range(_MAX_ROUNDS):
            found, left, broken = await self._once()
            resealed += found
            if not left:
                return resealed, broken
            await asyncio.sleep(_LOOK_AGAIN_S)
        raise OperatorError(f"rows of {self._table.table} stay locked by somebody else: run this again later")

    async def _once(self) -> tuple[int, int, int]:
        after = self._table.before_all
        read = resealed = left = broken = 0
        while True:
            began_s = clock.passed_s()
            step: RotationStep = await self._table.reseal_next(self._database, self._vault, after, self._at_once)
            read += step.read
            resealed += step.resealed
            left += step.left
            broken += step.broken
            self._on_progress(self._table.table, read, resealed)
            if step.last is None:
                return resealed, left, broken
            after = step.last
            await asyncio.sleep((clock.passed_s() - began_s) * self._rest if step.resealed else 0)


async def _wait_for_others(database: Database, vault: Vault, idle: timedelta) -> None:
    """Waits until those who sealed under another key were not heard of for `idle`. Raises OperatorError for who goes on."""
    first: dict[bytes, KeyRecord] = {}
    while True:
        async with database.connection(OPERATOR) as connection:
            elsewhere = await sealing_elsewhere(connection, vault, idle)
        if not elsewhere:
            return
        for key in elsewhere:
            known = first.setdefault(key.id, key)
            if key.sealing_at != known.sealing_at:
                raise OperatorError(
                    f"a process still seals under the key {key.name}: restart every process, serving and working, with the "
                    f"same list and {vault.key_ids[0].hex()} in front, and run this again"
                )
        await asyncio.sleep(_LOOK_AGAIN_S)


def _names(keys: list[KeyRecord]) -> list[str]:
    return [key.name for key in keys]
