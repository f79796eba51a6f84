"""Addresses of PgBouncer. `make test-pgbouncer` tests the service behind a real one."""

from collections.abc import AsyncIterator

import asyncpg.connection
import pytest

from largesse.base.errors import OperatorError
from largesse.db.migrate import upgrade
from largesse.db.pool import Database, read_in_parts
from largesse.db.scope import OPERATOR


@pytest.fixture
async def pooled_database(database_url: str) -> AsyncIterator[Database]:
    """The pool as it is behind PgBouncer, without one in between."""
    mark = "&" if "?" in database_url else "?"
    database = await Database.connect(f"{database_url}{mark}pgbouncer=true")
    yield database
    await database.close()


async def test_nothing_is_prepared_for_later_behind_pgbouncer(pooled_database: Database) -> None:
    async with pooled_database.connection(OPERATOR) as connection:
        assert await connection.fetchval("SELECT $1::int + 1", 1) == 2
        assert await connection.fetchval("SELECT count(*) FROM pg_prepared_statements") == 0


async def test_a_cursor_works_where_another_process_left_its_statement(pooled_database: Database) -> None:
    async with pooled_database.transaction(OPERATOR) as connection:
        drawn = int(asyncpg.connection._uid)  # type: ignore[attr-defined]  # the driver of every process counts from 0
        for number in range(drawn + 1, drawn + 20):
            await connection.execute(f'PREPARE "__asyncpg_stmt_{number:x}__" AS SELECT 1')
        parts = [part async for part in read_in_parts(connection, "SELECT * FROM generate_series(1, 5)", 2)]
        assert [[row[0] for row in part] for part in parts] == [[1, 2], [3, 4], [5]]
        assert await connection.fetchval("SELECT count(*) FROM pg_prepared_statements WHERE NOT from_sql") == 0


async def test_migrating_through_pgbouncer_is_refused(database_url: str) -> None:
    mark = "&" if "?" in database_url else "?"
    with pytest.raises(OperatorError, match="not of PgBouncer"):
        await upgrade(f"{database_url}{mark}pgbouncer=true")
