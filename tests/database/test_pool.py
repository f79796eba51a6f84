"""Addresses of PgBouncer. `make test-pgbouncer` tests the service behind a real one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from largesse.database import Database
from largesse.database.migrate import upgrade
from largesse.database.pool import without_pgbouncer
from largesse.errors import StartError


@pytest.mark.parametrize(
    ("url", "address", "pooled"),
    [
        ("postgresql://a:b%40@db:6432/x?pgbouncer=true", "postgresql://a:b%40@db:6432/x", True),
        ("postgresql://db/x?sslmode=require&pgbouncer=true", "postgresql://db/x?sslmode=require", True),
        ("postgresql://db/x?host=%2Ftmp%2Fs&port=5432", "postgresql://db/x?host=%2Ftmp%2Fs&port=5432", False),
        ("postgresql://db/x?pgbouncer=false", "postgresql://db/x?pgbouncer=false", False),
        ("postgresql://db/x", "postgresql://db/x", False),
    ],
)
def test_an_address_says_whether_it_is_pgbouncers(url: str, address: str, pooled: bool) -> None:
    assert without_pgbouncer(url) == (address, pooled)


@pytest.fixture
async def pooled_database(database_url: str) -> AsyncIterator[Database]:
    """The pool as it is behind PgBouncer, without one in between."""
    mark = "&" if "?" in database_url else "?"
    database = await Database.connect(f"{database_url}{mark}pgbouncer=true")
    yield database
    await database.close()


async def test_nothing_is_prepared_for_later_behind_pgbouncer(pooled_database: Database) -> None:
    async with pooled_database.connection() as connection:
        assert await connection.fetchval("SELECT $1::int + 1", 1) == 2
        assert await connection.fetchval("SELECT count(*) FROM pg_prepared_statements") == 0


async def test_migrating_through_pgbouncer_is_refused(database_url: str) -> None:
    mark = "&" if "?" in database_url else "?"
    with pytest.raises(StartError, match="not of PgBouncer"):
        await upgrade(f"{database_url}{mark}pgbouncer=true")
