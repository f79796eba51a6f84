"""Helpers for statements that several packages need.

- `insert` writes rows by `INSERT … VALUES`, which Citus plans for one shard. It plans `INSERT … SELECT` for every shard, also for one that
  is being moved. On one server, one JSON array for each statement costs less.
- `run_together` and `commit_with` run statements in one round trip.
- `fetch_together` runs statements as one on a single server, which saves round trips. On a cluster, it runs them one after another.
- `plan_by_index` and `planned_at_once` help the planner. Its statistics may be old: a table may have grown to a million rows since the last
  ANALYZE. And it cannot estimate how many rows a policy allows.
- `Table` saves whole lists of rows, found by key and written only if different. A statement with nothing to do is not sent, since a
  trigger for each statement (`catalogue_changed`) fires even if no row is changed.
"""

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import datetime
from functools import cache, lru_cache
from itertools import chain
from typing import Any, cast

import msgspec
from msgspec.structs import asdict

from largesse.db.fragments import NOTHING, Fragment, compose, declared, identifier, join, placeholder
from largesse.db.pipeline import Statement, Unanswered
from largesse.db.pool import DATABASE_FAILED, Connection, Row, is_distributed
from largesse.db.scope import Planning
from largesse.db.session import Session

# The most rows of a statement. A session prepares a statement for each number of rows, so only powers of two are used.
_ROWS_AT_ONCE = 64
_SPACE, _COMMA = Fragment(" "), Fragment(", ")
_NOW = "SELECT clock_now()"


async def insert(
    connection: Connection, into: Fragment, rows: Sequence[Sequence[object]], *, conflict: Fragment = NOTHING
) -> None:
    """Writes rows in their order, by INSERTs of 64, 32, 16 … 1 rows, so that few distinct statements are prepared.

    `into` is the beginning of the statement, up to its columns. `conflict` is its end, if any. Each row has a value for each column.
    If customers are distributed, several nodes write the rows of several customers, and commit in two phases.
    """
    first = 0
    while left := len(rows) - first:
        count = min(1 << (left.bit_length() - 1), _ROWS_AT_ONCE)
        some = rows[first : first + count]
        sql = join(_SPACE, (into, _values(count, len(some[0])), conflict))
        await connection.execute(sql, *chain.from_iterable(some))
        first += count


@cache
def _values(rows: int, columns: int) -> Fragment:
    """Returns the VALUES of that many rows and columns, each value a placeholder."""
    values = [placeholder(f"${number}") for number in range(1, rows * columns + 1)]
    of_rows = (join(_COMMA, values[first : first + columns]) for first in range(0, rows * columns, columns))
    return compose("VALUES {rows}", rows=join(_COMMA, (compose("({row})", row=row) for row in of_rows)))


async def count_changed(connection: Connection, query: str, *args: object) -> int:
    """Runs a statement that writes rows, and returns how many it wrote."""
    return int((await connection.execute(query, *args)).split()[-1])


async def read_now(connection: Connection) -> datetime:
    """Returns the time of the database, which all processes use."""
    now: datetime = await connection.fetchval(_NOW)
    return now


def members_of(kind: type[msgspec.Struct], given: Row | msgspec.Struct) -> dict[str, Any]:
    """Returns the members of a record that a row, or another record, has, by their names."""
    known = asdict(given) if isinstance(given, msgspec.Struct) else given
    return {name: known[name] for name in kind.__struct_fields__ if name in known}


class Part:
    """A statement with its arguments, the first one being `$1`. It must not depend on what the other parts write.

    `apart` does the same on a cluster, which would refuse the statement.
    """

    __slots__ = ("apart", "arguments", "sql")

    def __init__(
        self, sql: str, *arguments: Any, apart: Callable[[Connection], Awaitable[object]] | None = None
    ) -> None:
        self.sql = sql
        self.arguments = arguments
        self.apart = apart


async def run_part(connection: Connection, part: Part) -> None:
    """Runs a part by itself."""
    if part.apart is not None and is_distributed(connection):
        await part.apart(connection)
    else:
        await connection.execute(part.sql, *part.arguments)


async def fetch_together(connection: Connection, *parts: Part) -> list[Row]:
    """Runs all parts, and returns the rows of the last one."""
    *first, last = parts
    if not is_distributed(connection):
        sql = _one_statement(tuple((part.sql, len(part.arguments)) for part in parts))
        return await connection.fetch(sql, *(argument for part in parts for argument in part.arguments))
    for part in first:
        await run_part(connection, part)
    return await connection.fetch(last.sql, *last.arguments)


@lru_cache(maxsize=64)
def _one_statement(parts: tuple[tuple[str, int], ...]) -> str:
    """Returns the parts as one statement, with their placeholders renumbered."""
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


class CommitFailed(Exception):
    """A COMMIT failed with `error`, or got no answer. Without an answer, it may have happened."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


async def run_together(connection: Connection, *statements: Statement) -> list[str | None]:
    """Runs statements in one round trip if the session can. Returns the first value of each, as text. Raises the first error."""
    # Tests use plain connections of the driver, which cannot do this.
    if not getattr(connection, "can_send_together", False):
        return [await _run(connection, statement) for statement in statements]
    answers: list[str | None] = []
    for answer in await cast("Session", connection).send_together(*statements):
        if isinstance(answer, Unanswered):
            raise answer.why
        if isinstance(answer, Exception):
            raise answer
        answers.append(answer)
    return answers


async def commit_with(connection: Connection, statement: Statement | None) -> None:
    """Runs the last statement of a transaction, if any, and COMMIT, in one round trip if the session can.

    Raises the statement's error, after which nothing is committed, or CommitFailed.
    """
    commit = Statement("COMMIT")
    # If the driver ran a statement in the transaction, it must also run the COMMIT. Otherwise it would reset the session.
    is_known = connection.is_in_transaction()
    if statement is None or is_known or not getattr(connection, "can_send_together", False):
        if statement is not None:
            await _run(connection, statement)
        try:
            await connection.execute(commit.sql)
        except DATABASE_FAILED as error:
            raise CommitFailed(error) from error
        return
    written, committed = await cast("Session", connection).send_together(statement, commit)
    if isinstance(written, Exception) and not isinstance(written, Unanswered):
        raise written
    if isinstance(committed, Unanswered):
        raise CommitFailed(committed.why)
    if committed != commit.sql:
        raise CommitFailed(committed if isinstance(committed, Exception) else RuntimeError(f"COMMIT: {committed}"))


async def _run(connection: Connection, statement: Statement) -> str | None:
    if not statement.arguments:
        return await connection.execute(statement.sql)
    value: str | None = await connection.fetchval(statement.sql, *statement.arguments)
    return value


# Look-ups for a batch are planned once for each connection, and read in the order of an index.
OF_BATCH = "SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_sort = off;"
OF_BATCH_DISTRIBUTED = OF_BATCH.replace("force_generic_plan", "force_custom_plan")


async def plan_by_index(connection: Connection) -> None:
    """Makes the planner use indexes, in their order, for the rest of the transaction. Call it inside a transaction.

    With old statistics, the planner expects a long queue to be short. It reads and sorts all of it, although the index has the first hundred
    rows in order. A queue must never be read whole.

    Joins that read a whole table are off too: a statement takes a few hundred rows, but the planner does not know the limit and expects a
    tenth of the queue.
    """
    await connection.execute(
        "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; "
        "SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off"
    )


async def plan_in_order(connection: Connection) -> None:
    """Makes the planner read rows in the order of an index, for the rest of the transaction. Call it inside a transaction.

    The planner expects a policy to allow few rows. It would read and sort all of them for a page of fifty.
    """
    await connection.execute(Planning.IN_ORDER.value)


async def plan_for_values(connection: Connection) -> None:
    """Makes the planner plan each statement for its arguments, for the rest of the transaction. Call it inside a transaction.

    From the sixth time on, a statement may have a plan for any arguments. It expects a customer to have few rows, and reads all rows of a large one.
    """
    await connection.execute(Planning.FOR_VALUES.value)


@asynccontextmanager
async def planned_at_once(connection: Connection) -> AsyncIterator[None]:
    """Plans sums of many rows so that each table is read once and added up without sorting. Call it inside a transaction.

    The planner expects a policy to allow few rows. It would look up one row after another, and sort them. A block takes two round
    trips. Blocks inside another on the same connection take none, so put one around several sums.
    """
    if _planned_at_once.get() is connection:
        yield
        return
    await connection.execute("SET LOCAL enable_nestloop = off; SET LOCAL enable_sort = off")
    is_planned = _planned_at_once.set(connection)
    try:
        yield
    finally:
        _planned_at_once.reset(is_planned)
    await connection.execute("SET LOCAL enable_nestloop = on; SET LOCAL enable_sort = on")


_planned_at_once: ContextVar[Connection | None] = ContextVar("_planned_at_once", default=None)


Values = Mapping[str, Any]  # the values of a row, by column
_ROWS = (Fragment("saved"), Fragment("new"))


class Saved(msgspec.Struct, frozen=True):
    """The result of saving rows, in their order."""

    ids: list[int]
    created: list[bool]
    unchanged: list[bool]  # protected rows that differ from the list
    protected: list[bool]  # rows that existed and may not be changed


class FixedColumn(Exception):
    """The row at `place` in the list has another value in a column that cannot change once a row exists."""

    def __init__(self, place: int, column: str, was: object) -> None:
        super().__init__(f"{column} cannot change")
        self.place = place
        self.column = column
        self.was = was


class Table(msgspec.Struct, frozen=True):
    """A table whose rows are saved from a list. The package that owns the table declares it.

    `columns` maps each column to its SQL type. `match`, a condition on `saved` and `new`, finds the row. Columns in `fixed` cannot change
    once a row exists: another value is refused. Columns in `unwatched` are written with the row, but a difference only in them is no reason
    to write it. `protected` is a condition on `saved`: rows for which it is true are never changed.
    """

    name: str
    columns: Mapping[str, str]
    match: str
    fixed: tuple[str, ...] = ()
    unwatched: tuple[str, ...] = ()
    protected: str = "false"

    @property
    def find(self) -> Fragment:
        """The statement that finds each new row's saved id, if any, and whether the saved row differs."""
        watched = [name for name in self._names if name not in self.fixed and name not in self.unwatched]
        differs = Fragment("false")
        if watched:
            old, new = (
                join(_COMMA, [compose("{row}.{name}", row=row, name=name) for name in watched]) for row in _ROWS
            )
            differs = compose("ROW({old}) IS DISTINCT FROM ROW({new})", old=old, new=new)
        fixed = [compose(", saved.{name} AS {name}", name=identifier(name)) for name in self.fixed]
        return compose(
            "SELECT saved.id AS saved_id, {differs} AS differs, {protected} AS protected{fixed} "
            "FROM {new} LEFT JOIN {table} AS saved ON {match} ORDER BY new.n",
            differs=differs,
            protected=declared(self.protected),
            fixed=join(NOTHING, fixed),
            new=self._new,
            table=identifier(self.name),
            match=declared(self.match),
        )

    @property
    def insert(self) -> Fragment:
        """The statement that adds rows, with ids in the order of the list."""
        return compose(
            "INSERT INTO {table} ({names}) SELECT {names} FROM {new} ORDER BY n",
            table=identifier(self.name),
            names=join(_COMMA, self._names),
            new=self._new,
        )

    @property
    def update(self) -> Fragment:
        """The statement that overwrites rows by id."""
        values = [compose("{name} = new.{name}", name=name) for name in self._names if name not in self.fixed]
        return compose(
            "UPDATE {table} AS saved SET {values} FROM {new} WHERE saved.id = new.saved_id",
            table=identifier(self.name),
            values=join(_COMMA, values),
            new=self._new,
        )

    @property
    def _names(self) -> list[Fragment]:
        return [identifier(name) for name in self.columns]

    @property
    def _new(self) -> Fragment:
        columns = [
            compose("{name} {kind}", name=identifier(name), kind=declared(self.columns[name])) for name in self.columns
        ]
        return compose(
            "jsonb_to_recordset($1::text::jsonb) AS new (n integer, saved_id integer, {columns})",
            columns=join(_COMMA, columns),
        )

    async def save(self, connection: Connection, rows: Sequence[Values]) -> Saved:
        """Adds missing rows and overwrites rows that differ. Never deletes. Raises FixedColumn."""
        if not rows:
            return Saved([], [], [], [])
        found = await connection.fetch(self.find, _json(rows))
        for place, (row, old) in enumerate(zip(rows, found, strict=True)):
            self._check_fixed(place, row, old)
        changed = [
            {**row, "saved_id": old["saved_id"]}
            for row, old in zip(rows, found, strict=True)
            if old["saved_id"] is not None and old["differs"] and not old["protected"]
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
            [bool(old["saved_id"] and old["differs"] and old["protected"]) for old in found],
            [bool(old["saved_id"] and old["protected"]) for old in found],
        )

    def _check_fixed(self, place: int, row: Values, old: Row) -> None:
        for name in self.fixed:
            if old["saved_id"] is not None and not old["protected"] and old[name] != row[name]:
                raise FixedColumn(place, name, old[name])


def _json(rows: Iterable[Values]) -> str:
    return json.dumps([{"n": n, **values} for n, values in enumerate(rows)])
