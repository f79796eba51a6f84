"""Sessions that a placer keeps between batches."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import asyncpg
from tests.closing import closing
from tests.waiting import until

from largesse.db.kept_sessions import KeptSessions
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR

_PID = "SELECT pg_backend_pid()"


async def _use(database: Database, kept: KeptSessions) -> Any:
    async with database.session(OPERATOR, kept) as session:
        return await session.fetchval(_PID)


async def test_a_session_is_used_again_and_then_returned(database_url: str) -> None:
    async with closing(Database.connect(database_url, max_connections=1)) as database:
        kept = KeptSessions(database.give_back)
        first = await _use(database, kept)
        assert database.usage().used == 1, "it is kept"
        assert await _use(database, kept) == first
        await until(lambda: database.usage().idle == 1)
        assert await database.fetchval(OPERATOR, _PID) == first


async def test_a_caller_that_waits_gets_the_session(database_url: str) -> None:
    async with closing(Database.connect(database_url, max_connections=1)) as database:
        kept = KeptSessions(database.give_back)
        async with database.session(OPERATOR, kept) as session:
            pid = await session.fetchval(_PID)
            waiting = asyncio.create_task(database.fetchval(OPERATOR, _PID))
            await until(lambda: database.usage().waiting == 1)
        assert kept.take() is None
        assert await waiting == pid


async def test_without_later_use_a_waiting_caller_gets_it_too(database_url: str) -> None:
    async with closing(Database.connect(database_url, max_connections=1)) as database:
        kept = KeptSessions(database.give_back)
        pid = await _use(database, kept)
        assert await database.fetchval(OPERATOR, _PID) == pid


async def test_a_transaction_that_was_left_open_is_rolled_back(database_url: str) -> None:
    async with closing(Database.connect(database_url, max_connections=1)) as database:
        kept = KeptSessions(database.give_back)
        async with database.session(OPERATOR, kept) as session:
            await session.execute("BEGIN")
        assert kept.take() is None
        async with database.session(OPERATOR) as session:
            assert not session.is_in_transaction()


async def test_a_lost_session_is_not_used_again(database_url: str, beside: asyncpg.Connection) -> None:
    async with closing(Database.connect(database_url)) as database:
        kept = KeptSessions(database.give_back)
        lost = await _use(database, kept)
        await beside.fetchval("SELECT pg_terminate_backend($1, 5000)", lost)
        await until(lambda: database.usage().used == 0)
        assert await _use(database, kept) != lost


async def test_closing_returns_what_is_kept(database_url: str) -> None:
    async with closing(Database.connect(database_url)) as database:
        kept = KeptSessions(database.give_back)
        async with AsyncExitStack() as sessions:
            for _ in range(3):
                await sessions.enter_async_context(database.session(OPERATOR, kept))
        assert database.usage().used == 3
        await kept.close()
        assert database.usage().used == 0
