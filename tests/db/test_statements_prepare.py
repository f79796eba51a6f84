"""Each named statement is prepared on the current schema, so that none names a table, column or function that is not there.

It reads the texts that modules name, and what rooms declare: checks, encrypted columns, retention and queues.
The tests of the rooms run statements that are put together at run time. A text that is part of a statement is named in `_PARTS`.
"""

import pkgutil
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from types import ModuleType

import asyncpg
import pytest

import largesse
from largesse.db.sharding import DISTRIBUTED
from largesse.encryption.key_rotation import encrypted_columns
from largesse.housekeeping import DUE_TIMES, RETENTION, ROOMS
from largesse.orders.order import ALL_COLUMNS
from largesse.verify.audit import CHECKS

_STATEMENT = re.compile(r"\s*\(*(SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH)\s")
# Parts of statements, texts with places, and statements for a cluster.
_PARTS = {
    "GIFTS",
    "GIFTS_BY_NAME",
    "GIFTS_OF_FEW",
    "LONG_AGO",
    "WRITE_ON_COORDINATOR",
    "_ADD_MESSAGES",
    "_ADD_ORDERS",
    "_ADD_PEOPLE",
    "_ADD_PERIODS",
    "_ADD_UP",
    "_ADD_WATCHERS",
    "_ASSIGN",
    "_BY_ADDRESS",
    "_BY_CODE",
    "_BY_DAY",
    "_BY_EXTERNAL_REFERENCE",
    "_BY_EXTERNAL_REFERENCE_OF_EACH",
    "_BY_MEMBER",
    "_BY_NAME",
    "_BY_REFERENCE",
    "_BY_TRACKING_NUMBER",
    "_CANDIDATES",
    "_COUNT_NEXT",
    "_COUNT_WAITS",
    "_CUSTOMERS_BY_CODE",
    "_DECIDED",
    "_DRAWN_ID",
    "_DRAWN_ID_OF_ENTRY",
    "_DUE_AGAIN",
    "_EACH_DAY",
    "_FIRST_GIFT",
    "_GIFTS_OF_SOME",
    "_INTO",
    "_INTO_OF_LINES",
    "_KINDS",
    "_LEVELS",
    "_MARK_METADATA",
    "_MEMBER",
    "_NEW_EVENTS",
    "_NEW_JOBS",
    "_NODES",
    "_NODES_OF",
    "_NOT_ERASED",
    "_OF_DAYS",
    "_OF_GROUPS",
    "_OF_ROWS",
    "_OF_WORD",
    "_OTHER_VERSIONS",
    "_SHARD_GROUPS",
    "_SUMS_OF_PART",
    "_EVENTS_OF_WRITTEN",
}


def _modules() -> Iterator[ModuleType]:
    for module in pkgutil.walk_packages(largesse.__path__, "largesse."):
        if not module.name.endswith(("__main__", ".launch")):
            yield import_module(module.name)


def _named() -> Iterator[tuple[str, str]]:
    for module in _modules():
        for name, value in vars(module).items():
            for form in _forms(value):
                if _STATEMENT.match(form) and name not in _PARTS:
                    yield f"{module.__name__}.{name}", form


def _forms(value: object) -> Iterator[str]:
    """The texts of a constant: itself, or those of a `Grouped`, a tuple or a mapping, such as a statement's form for a node."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (text for text in value.values() if isinstance(text, str))
    elif isinstance(value, tuple):
        yield from (text for text in value if isinstance(text, str))


def _declared() -> Iterator[tuple[str, str]]:
    yield from ((check.name, check.sql) for check in CHECKS)
    for column in encrypted_columns():
        for statement in (column.window, column.take, column.put, *column.put_too):
            yield f"encrypted {column.table}.{column.column}", statement
    for old in RETENTION:
        yield f"old {old.table}", old.statement()
        if old.table in DISTRIBUTED:
            yield f"old {old.table} of a shard group", old.statement([1])
    for due in DUE_TIMES:
        yield f"bringing forward {due.table}", due.bringing_forward
        yield f"next due of {due.table}", due.next
    for queue in (queue for room in ROOMS for queue in (*room.queues, *(waiting for _, waiting in room.gauges))):
        yield f"counting {queue.table}", queue.counting
        yield f"ageing {queue.table}", queue.ageing


async def _refused(connection: asyncpg.Connection, statements: Iterator[tuple[str, str]]) -> tuple[int, list[str]]:
    prepared, refused = 0, []
    for name, sql in statements:
        try:
            await connection.prepare(sql)
        except asyncpg.PostgresError as error:
            refused.append(f"{name}: {error}")
        else:
            prepared += 1
    return prepared, refused


async def test_every_named_statement_fits_the_schema(beside: asyncpg.Connection) -> None:
    prepared, refused = await _refused(beside, _named())
    assert not refused, "\n".join(refused)
    assert prepared > 80


async def test_every_declared_statement_fits_the_schema(beside: asyncpg.Connection) -> None:
    prepared, refused = await _refused(beside, _declared())
    assert not refused, "\n".join(refused)
    assert prepared > 80


@pytest.mark.parametrize(
    "sql", ["SELECT nothing FROM orders", "UPDATE lines SET nowhere = 1", "SELECT no_such_function(1)"]
)
async def test_one_that_does_not_fit_is_refused(beside: asyncpg.Connection, sql: str) -> None:
    assert (await _refused(beside, iter([("made up", sql)])))[1]


async def _results(connection: asyncpg.Connection) -> dict[str, list[str]]:
    """The columns that each statement returns."""
    found = {}
    for name, sql in (*_named(), *_declared()):
        found[name, sql] = [column.name for column in (await connection.prepare(sql)).get_attributes()]
    return found


async def test_a_column_of_the_next_release_changes_no_result(database_url: str) -> None:
    """PostgreSQL refuses a prepared statement whose result has changed: a request would fail while a release is rolled out."""
    connection = await asyncpg.connect(database_url)
    before = await _results(connection)
    for (table,) in await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'"):
        await connection.execute(f'ALTER TABLE "{table}" ADD COLUMN of_next_release text')
    after = await _results(connection)
    assert not {name for name, columns in before.items() if after[name] != columns}
    (every,) = await connection.fetch(
        "SELECT array_agg(attname::text) AS names FROM pg_attribute WHERE attrelid = 'orders'::regclass AND attnum > 0"
    )
    assert {*every["names"]} - {"of_next_release"} == {*ALL_COLUMNS.split(", ")}
    await connection.close()
