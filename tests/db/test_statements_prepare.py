"""Each named statement is prepared on the current schema, so that none names a table, column or function that is not there.

It reads the texts that modules name, and what rooms declare: checks, encrypted columns, retention and queues.
The tests of the rooms run statements that are put together at run time. A text that is part of a statement is named in `_PARTS`.
"""

import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

import asyncpg
import pytest

import largesse
from largesse.db.sharding import DISTRIBUTED
from largesse.encryption.key_rotation import encrypted_columns
from largesse.jobs.housekeeping import RETENTION, ROOMS
from largesse.verify.audit import CHECKS

_STATEMENT = re.compile(r"\s*\(*(SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH)\s")
# Parts of statements, and statements for a cluster.
_PARTS = {
    "LONG_AGO",
    "WRITE_ON_COORDINATOR",
    "_DRAWN_ID",
    "_DUE_QUEUES",
    "_INTO",
    "_KINDS",
    "_NEW_JOBS",
    "_NOT_ERASED",
    "_SUMS_OF_PART",
}


def _modules() -> Iterator[ModuleType]:
    for module in pkgutil.walk_packages(largesse.__path__, "largesse."):
        if not module.name.endswith(("__main__", ".launch")):
            yield import_module(module.name)


def _named() -> Iterator[tuple[str, str]]:
    for module in _modules():
        for name, value in vars(module).items():
            if isinstance(value, str) and _STATEMENT.match(value) and name not in _PARTS:
                yield f"{module.__name__}.{name}", value


def _declared() -> Iterator[tuple[str, str]]:
    yield from ((check.name, check.sql) for check in CHECKS)
    for column in encrypted_columns():
        for statement in (column.window, column.take, column.put, *column.put_too):
            yield f"encrypted {column.table}.{column.column}", statement
    for old in RETENTION:
        yield f"old {old.table}", old.statement()
        if old.table in DISTRIBUTED:
            yield f"old {old.table} of a shard group", old.statement([1])
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
