"""A transaction whose COMMIT got no answer is said to be unknown, and one that the server refused is not."""

from collections.abc import AsyncIterator

import asyncpg
import pytest
from tests.closing import closing
from tests.faults.proxy import AtCommit, Proxy

from largesse.db.pool import CommitLost, Database
from largesse.db.scope import OPERATOR


@pytest.fixture
async def database(proxy: Proxy) -> AsyncIterator[Database]:
    async with closing(Database.connect(proxy.url)) as database:
        yield database


@pytest.mark.parametrize(("at_commit", "written"), [("before", 0), ("after", 1)])
async def test_a_commit_without_an_answer_is_said_to_be_unknown(
    proxy: Proxy, database: Database, beside: asyncpg.Connection, at_commit: AtCommit, written: int
) -> None:
    await beside.execute("CREATE TABLE noted (id int)")
    proxy.at_commit = at_commit
    with pytest.raises(CommitLost):
        async with database.transaction(OPERATOR) as connection:
            await connection.execute("INSERT INTO noted VALUES (1)")
    assert await beside.fetchval("SELECT count(*) FROM noted") == written


async def test_a_commit_that_the_server_refuses_is_not_unknown(database: Database, beside: asyncpg.Connection) -> None:
    await beside.execute("CREATE TABLE noted (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
    with pytest.raises(asyncpg.UniqueViolationError):
        async with database.transaction(OPERATOR) as connection:
            await connection.execute("INSERT INTO noted VALUES (1), (1)")
