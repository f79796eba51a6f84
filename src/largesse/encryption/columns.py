"""Sealing the rows of a table anew, a few at a time, beside everybody who works with them.

Rows are gone through in the order of their keys, without a lock. Those sealed under an older key are locked, where nobody else has them
(who works with a row must not wait, and no circle can come of it), opened and sealed under the newest. What was locked is left for
another round. A row that is done is never done again, so that whoever is cut short begins anew and loses no work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import asyncpg

from largesse.db.pool import Database, Row, commit_as_one
from largesse.db.scope import OPERATOR
from largesse.db.sharding import DISTRIBUTED, read_shard_groups
from largesse.encryption.vault import Compartment, DecryptionFailed, Vault

SealKey = tuple[Any, ...]


class RotationStep(NamedTuple):
    """What became of a window of rows. `last` is the key it ends with, None when there was no row left."""

    last: SealKey | None
    read: int
    resealed: int = 0
    left: int = 0  # locked by somebody else, or changed meanwhile
    broken: int = 0  # no key of the list opens them


class SealedTable(NamedTuple):
    """A column with something sealed, and how its rows are brought under the newest key.

    `window` reads keys: `$1` is the id of the newest key, `$2` how many rows, and from `$3` on what each part of the last key was; a row is
    the parts of its key and whether it is sealed under an older one. `take` locks rows of those keys, of which `$2` and so on are
    arrays, as far as they are sealed under another key than `$1`. `renew` opens a row of it and gives what is written instead, first
    what is sealed. `put` writes that: arrays of the parts of the keys, and then of what `renew` gave. Of a table
    that may be distributed, both say of the customers in the array of them that they are those.
    """

    table: str
    column: str
    before_all: SealKey  # less than every key
    part: Callable[[Vault], Compartment]
    window: str
    take: str
    renew: Callable[[Vault, Row], tuple[Any, ...]]
    put: str
    put_too: tuple[str, ...] = ()  # what else is written, from the same

    async def reseal_next(self, database: Database, vault: Vault, after: SealKey, limit: int) -> RotationStep:
        """Seals the next `limit` rows after that key anew, as far as they are not."""
        newest = self.part(vault).newest_id
        rows = await database.fetch(OPERATOR, self.window, newest, limit, *after)
        if not rows:
            return RotationStep(None, 0)
        last = tuple(rows[-1])[:-1]
        old = [tuple(row)[:-1] for row in rows if row[-1]]
        if not old:
            return RotationStep(last, len(rows))
        try:
            resealed, broken = await self._reseal(database, vault, newest, old)
        except (asyncpg.DeadlockDetectedError, asyncpg.LockNotAvailableError):
            resealed = broken = 0  # somebody else goes first
        return RotationStep(last, len(rows), resealed, len(old) - resealed - broken, broken)

    async def _reseal(
        self, database: Database, vault: Vault, newest: bytes, keys: Sequence[SealKey]
    ) -> tuple[int, int]:
        resealed = broken = 0
        for group in await self._locked_together(database, keys):
            done = await self._reseal_together(database, vault, newest, group)
            resealed, broken = resealed + done[0], broken + done[1]
        return resealed, broken

    async def _locked_together(self, database: Database, keys: Sequence[SealKey]) -> list[Sequence[SealKey]]:
        """Rows that are locked together: all, but where customers are distributed those of one shard group."""
        if not database.is_distributed or self.table not in DISTRIBUTED:
            return [keys]
        async with database.connection(OPERATOR) as connection:
            found = await read_shard_groups(connection, sorted({key[0] for key in keys}))
        return [[key for key in keys if key[0] in one.customers] for one in found]

    async def _reseal_together(
        self, database: Database, vault: Vault, newest: bytes, keys: Sequence[SealKey]
    ) -> tuple[int, int]:
        async with database.transaction(OPERATOR) as connection:
            await commit_as_one(connection)
            rows = await connection.fetch(self.take, newest, *zip(*keys, strict=True))
            renewed = []
            for row in rows:
                try:
                    renewed.append((*tuple(row)[: len(self.before_all)], *self.renew(vault, row)))
                except DecryptionFailed:
                    continue
            if renewed:
                columns = list(zip(*renewed, strict=True))
                for statement in (self.put, *self.put_too):
                    await connection.execute(statement, *columns)
        return len(renewed), len(rows) - len(renewed)
