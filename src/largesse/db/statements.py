"""Helpers for statements that several rooms need.

- `insert` writes rows by `INSERT … VALUES`. Citus plans that for one shard; it plans `INSERT … SELECT` for every shard, also one that is
  being moved. On one server, one JSON array a statement costs less.
- `fetch_together` runs statements as one where one server has all tables, which saves round trips, and one after the other on a cluster.
- `plan_by_index` and `planned_at_once` tell the planner what it cannot know: its figures are of the last ANALYZE, a table may have grown
  to a million rows since, and it knows nothing of how many rows a policy lets through.
- `Table` saves whole lists of rows, found by key and written only where different. A statement with nothing to do is not sent, since a
  trigger for each statement (`catalogue_changed`) fires even when no row is hit.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain
from typing import Any

from largesse.db.pool import Connection, Row, is_distributed

# Rows of a statement at most. Each count is a statement of its own, which a session keeps: so there are few, the powers of two.
_ROWS_AT_ONCE = 64


async def insert(connection: Connection, into: str, rows: Sequence[Sequence[object]], *, conflict: str = "") -> None:
    """Writes rows in their order, by INSERTs of 64, 32, 16 … 1 rows, so that few distinct statements are prepared.

    `into` is the beginning of the statement, up to its columns, and `conflict` its end, if it has one; each row has a value for each column. Where customers are distributed, rows of
    several customers are written by several nodes, and committed in two phases.
    """
    first = 0
    while left := len(rows) - first:
        count = min(1 << (left.bit_length() - 1), _ROWS_AT_ONCE)
        some = rows[first : first + count]
        await connection.execute(f"{into} {_values(count, len(some[0]))} {conflict}", *chain.from_iterable(some))
        first += count


@cache
def _values(rows: int, columns: int) -> str:
    numbers = iter(range(1, rows * columns + 1))
    row = ", ".join(["${}"] * columns)
    return "VALUES " + ", ".join([f"({row})"] * rows).format(*numbers)


class Part:
    """A statement with its arguments, `$1` being the first. It neither needs nor minds what the parts beside it write."""

    __slots__ = ("arguments", "sql")

    def __init__(self, sql: str, *arguments: Any) -> None:
        self.sql = sql
        self.arguments = arguments


async def fetch_together(connection: Connection, *parts: Part) -> list[Row]:
    """Runs all parts; the rows of the last."""
    *first, last = parts
    if not is_distributed(connection):
        sql = _one_statement(tuple((part.sql, len(part.arguments)) for part in parts))
        return await connection.fetch(sql, *(argument for part in parts for argument in part.arguments))
    for part in first:
        await connection.execute(part.sql, *part.arguments)
    return await connection.fetch(last.sql, *last.arguments)


@lru_cache(maxsize=64)
def _one_statement(parts: tuple[tuple[str, int], ...]) -> str:
    """The parts as one statement, their placeholders counted through."""
    counted, passed = [], 0
    for sql, arguments in parts:
        counted.append(_count_from(passed, sql))
        passed += arguments
    *first, last = counted
    beside = ", ".join(f"part_{at} AS ({sql})" for at, sql in enumerate(first, 1))
    return f"WITH {beside} {last}" if beside else last


def _count_from(passed: int, sql: str) -> str:
    return _PLACEHOLDER.sub(lambda found: f"${int(found[1]) + passed}", sql)


_PLACEHOLDER = re.compile(r"\$(\d+)")


# What is looked up for a batch is planned once a connection, and read in the order of an index.
OF_BATCH = "SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_sort = off;"
OF_BATCH_DISTRIBUTED = OF_BATCH.replace("force_generic_plan", "force_custom_plan")


async def plan_by_index(connection: Connection) -> None:
    """Has the rest of the transaction planned by indexes, in their order, and by keys, a few among millions; call it inside one.

    The planner takes a queue that has grown for a few rows, to be read whole and sorted, where the index has the first hundred at hand. A
    queue is never to be read whole, whatever the figures say: that much we know better.

    Nor is one table joined with another by reading all of either: what is taken is a few hundred rows, of which a plan made for any
    limit knows nothing, and takes a tenth of the queue for it.
    """
    await connection.execute(
        "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; "
        "SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off"
    )


@asynccontextmanager
async def planned_at_once(connection: Connection) -> AsyncIterator[None]:
    """Has sums of many rows planned so that each table is read once, and added up as it comes; call it inside a transaction.

    The planner takes what a policy lets through for few rows: it would look for those of one row after another, and sort them.
    """
    await connection.execute("SET LOCAL enable_nestloop = off; SET LOCAL enable_sort = off")
    yield
    await connection.execute("SET LOCAL enable_nestloop = on; SET LOCAL enable_sort = on")


Values = Mapping[str, Any]  # of a row, by column


@dataclass(frozen=True, slots=True)
class Saved:
    """The result of saving rows, in their order."""

    ids: list[int]
    created: list[bool]
    unchanged: list[bool]  # differ, and were left as they are


class FixedColumn(Exception):
    """The row at `place` among those wanted has another value in a column that is settled when a row is created."""

    def __init__(self, place: int, column: str, was: object) -> None:
        super().__init__(f"{column} cannot change")
        self.place = place
        self.column = column
        self.was = was


@dataclass(frozen=True, slots=True)
class Table:
    """A table, and which of its columns are wanted so or so; the room that owns the table names it.

    `columns` gives each its SQL type. A row is found by `match`, a condition on `saved` and `new`. Columns in
    `fixed` are settled when it is created: another value is refused. Those in `unwatched` are written with the
    row, but a difference in them alone is no reason to write it. Rows for which `kept`, a condition on `saved`, is true stay as they are.
    """

    name: str
    columns: Mapping[str, str]
    match: str
    fixed: tuple[str, ...] = ()
    unwatched: tuple[str, ...] = ()
    kept: str = "false"

    @property
    def find(self) -> str:
        """Each new row with the id of the one saved, if any, and whether that is different."""
        watched = [name for name in self.columns if name not in self.fixed and name not in self.unwatched]
        old, new = (", ".join(f"{row}.{name}" for name in watched) for row in ("saved", "new"))
        differs = f"ROW({old}) IS DISTINCT FROM ROW({new})" if watched else "false"
        fixed = "".join(f", saved.{name} AS {name}" for name in self.fixed)
        return (
            f"SELECT saved.id AS saved_id, {differs} AS differs, {self.kept} AS kept{fixed} "  # noqa: S608 - put together from constants
            f"FROM {self._new} LEFT JOIN {self.name} AS saved ON {self.match} ORDER BY new.n"
        )

    @property
    def insert(self) -> str:
        """Adds rows, with ids in the order wanted."""
        names = ", ".join(self.columns)
        return f"INSERT INTO {self.name} ({names}) SELECT {names} FROM {self._new} ORDER BY n"  # noqa: S608 - as above

    @property
    def update(self) -> str:
        """Overwrites rows by id."""
        values = ", ".join(f"{name} = new.{name}" for name in self.columns if name not in self.fixed)
        return f"UPDATE {self.name} AS saved SET {values} FROM {self._new} WHERE saved.id = new.saved_id"  # noqa: S608 - as above

    @property
    def _new(self) -> str:
        columns = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
        return f"jsonb_to_recordset($1::text::jsonb) AS new (n integer, saved_id integer, {columns})"

    async def save(self, connection: Connection, rows: Sequence[Values]) -> Saved:
        """Adds the rows that are missing and overwrites those that differ; never deletes. Raises FixedColumn."""
        if not rows:
            return Saved([], [], [])
        found = await connection.fetch(self.find, _json(rows))
        for place, (row, old) in enumerate(zip(rows, found, strict=True)):
            self._check_fixed(place, row, old)
        changed = [
            {**row, "saved_id": old["saved_id"]}
            for row, old in zip(rows, found, strict=True)
            if old["saved_id"] is not None and old["differs"] and not old["kept"]
        ]
        if changed:
            await connection.execute(self.update, _json(changed))
        ids: list[int | None] = [old["saved_id"] for old in found]
        missing = [number for number, saved_id in enumerate(ids) if saved_id is None]
        if missing:
            added = _json(rows[number] for number in missing)
            await connection.execute(self.insert, added)
            for number, new in zip(missing, await connection.fetch(self.find, added), strict=True):
                ids[number] = new["saved_id"]
        created = set(missing)
        return Saved(
            [saved_id for saved_id in ids if saved_id is not None],
            [n in created for n in range(len(ids))],
            [bool(old["saved_id"] and old["differs"] and old["kept"]) for old in found],
        )

    def _check_fixed(self, place: int, row: Values, old: Row) -> None:
        for name in self.fixed:
            if old["saved_id"] is not None and old[name] != row[name]:
                raise FixedColumn(place, name, old[name])


def _json(rows: Iterable[Values]) -> str:
    return json.dumps([{"n": n, **values} for n, values in enumerate(rows)])
