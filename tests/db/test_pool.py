"""Addresses of PgBouncer. `make test-pgbouncer` tests the service behind a real one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from largesse.base.errors import OperatorError
from largesse.db.migrate import upgrade
from largesse.db.pool import Database
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


async def test_migrating_through_pgbouncer_is_refused(database_url: str) -> None:
    mark = "&" if "?" in database_url else "?"
    with pytest.raises(OperatorError, match="not of PgBouncer"):
        await upgrade(f"{database_url}{mark}pgbouncer=true")
