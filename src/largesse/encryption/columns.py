"""Encrypts a column again under the newest key, a few rows at a time, while the service works with them.

A step reads rows in the order of their keys, without a lock. It locks rows under an older key, but skips rows that others have locked. So no
service waits, and no deadlock is possible. A later pass takes the skipped rows. A finished row is not encrypted again, so an interrupted run
loses no work.

A package registers an encrypted column by a `SealedTable` in its `tasks.py`. `sealed_column` makes most of them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg

import largesse
from largesse.db.fragments import Fragment, compose, identifier, join, names, placeholder
from largesse.db.pool import Database, Row, commit_as_one
from largesse.db.scope import OPERATOR
from largesse.db.sharding import DISTRIBUTED, read_shard_groups
from largesse.encryption.vault import Compartment, DecryptionFailed, Vault

SealKey = tuple[Any, ...]


class RotationStep(NamedTuple):
    """The result of one step. `last` is the key of the last row that it read; None if no row was left."""

    last: SealKey | None
    read: int
    resealed: int = 0
    left: int = 0  # rows that another transaction has locked or changed
    broken: int = 0  # rows that no key of the list decrypts


class SealedTable(NamedTuple):
    """An encrypted column, and the statements that bring its rows under the newest key.

    `window` reads `$2` keys after the one whose parts are `$3` and following. The last column of each row says whether it is under another key
    than `$1`. `take` locks the rows with the keys in the arrays `$2` and following that are under another key than `$1`. `renew` decrypts such
    a row and returns the new values, the encrypted one first. `put` writes them: arrays of the parts of the keys, then of the values. For a
    distributed table, `take` and `put` name the customers, so that each runs on one node. `read` returns all rows, the parts of the key first,
    with what `renew` needs. It is empty for codes, which `verify` checks separately.
    """

    table: str
    column: str
    before_all: SealKey  # a key that is lower than all others
    part: Callable[[Vault], Compartment]
    window: str
    take: str
    renew: Callable[[Vault, Row], tuple[Any, ...]]
    put: str
    put_too: tuple[str, ...] = ()  # more statements with the same arguments
    read: str = ""

    async def reseal_next(self, database: Database, vault: Vault, after: SealKey, limit: int) -> RotationStep:
        """Reads the next `limit` rows after a key, and encrypts again those that are under an older key."""
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
            resealed = broken = 0  # another transaction has the locks
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
        """Returns the keys in groups that one transaction may lock: all, or those of each shard group."""
        if not database.is_distributed or self.table not in DISTRIBUTED:
            return [keys]
        found = await database.read(OPERATOR, read_shard_groups, sorted({key[0] for key in keys}))
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


def sealed_column(
    table: str,
    column: str,
    keys: Mapping[str, str],
    part: Callable[[Vault], Compartment],
    context: Callable[[Row], bytes],
    more: Sequence[str] = (),
) -> SealedTable:
    """Returns a column whose values are encrypted for the `context` of their row. `keys` has the names and types of the table's keys.

    `more` are columns that the context needs in addition to the keys.
    """

    def renew(vault: Vault, row: Row) -> tuple[bytes]:
        compartment, of_row = part(vault), context(row)
        return (compartment.seal(compartment.open(row[column], of_row), of_row),)

    named, of_table, of_column = names(keys), identifier(table), identifier(column)
    read = names([*keys, *more, column])
    same = [compose("{table}.{key} = new.{key}", table=of_table, key=identifier(key)) for key in keys]
    return SealedTable(
        table,
        column,
        before_all=tuple(UUID(int=0) if kind == "uuid" else -1 for kind in keys.values()),
        part=part,
        window=compose(
            """
            SELECT {keys}, substring({column} FROM 1 FOR 4) <> $1 AS is_old FROM {table}
            WHERE ({keys}) > ({last}) AND {column} IS NOT NULL ORDER BY {keys} LIMIT $2
            """,
            keys=named,
            last=join(Fragment(", "), [placeholder(f"${place}") for place, _ in enumerate(keys, 3)]),
            table=of_table,
            column=of_column,
        ),
        take=compose(
            """
            SELECT {read} FROM unnest({wanted}) AS wanted ({keys}) JOIN {table} USING ({keys})
            WHERE substring({column} FROM 1 FOR 4) <> $1 FOR NO KEY UPDATE OF {table} SKIP LOCKED
            """,
            read=read,
            wanted=_arrays(keys.values(), 2),
            keys=named,
            table=of_table,
            column=of_column,
        ),
        renew=renew,
        put=compose(
            "UPDATE {table} SET {column} = new.sealed FROM unnest({changed}) AS new ({keys}, sealed) WHERE {same}",
            changed=_arrays([*keys.values(), "bytea"], 1),
            keys=named,
            same=join(Fragment(" AND "), same),
            table=of_table,
            column=of_column,
        ),
        read=compose(
            "SELECT {all} FROM {table} WHERE {column} IS NOT NULL", all=read, table=of_table, column=of_column
        ),
    )


def _arrays(kinds: Iterable[str], first: int) -> Fragment:
    """Returns the placeholders of arrays of these types, beginning with `$first`."""
    arrays = [compose("${place}::{kind}[]", place=at, kind=identifier(kind)) for at, kind in enumerate(kinds, first)]
    return join(Fragment(", "), arrays)


def sealed_tables() -> list[SealedTable]:
    """Returns every encrypted column that a package registers in its `tasks.py`, by package and in the order of the file."""
    rooms = (f"largesse.{room.name}.tasks" for room in iter_modules(largesse.__path__) if room.ispkg)
    return [
        value
        for room in rooms
        if find_spec(room) is not None
        for value in vars(import_module(room)).values()
        if isinstance(value, SealedTable)
    ]
