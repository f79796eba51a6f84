from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.faults.proxy import Proxy

from largesse.database import Database, Limits
from largesse.delivery.queue import Bell, Loop, Schedule, Waker, listen, metrics, ring

A_WHILE_S = 10.0


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    database = await Database.connect(database_url)
    yield database
    await database.close()


@pytest.fixture
async def heard(database: Database) -> AsyncIterator[Waker]:
    """A waker that hears the bell."""
    waker = Waker()
    listening = asyncio.create_task(listen(database, waker.wake))
    async with asyncio.timeout(A_WHILE_S):
        while not waker.rings:  # until it listens, nothing is heard
            async with database.connection() as connection:
                await ring(connection)
            await asyncio.sleep(0.01)
    yield waker
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)


async def test_a_ring_before_the_wait_is_not_missed() -> None:
    waker = Waker()
    before = waker.rings
    waker.wake()
    async with asyncio.timeout(A_WHILE_S):
        await waker.wait(before, longest_s=1000)


async def test_a_wait_ends_by_itself() -> None:
    waker = Waker()
    async with asyncio.timeout(A_WHILE_S):
        await waker.wait(waker.rings, longest_s=0.01)


async def test_the_bell_is_heard_and_many_pulls_make_few_rings(database: Database, heard: Waker) -> None:
    bell = Bell(database)
    before = heard.rings
    for _ in range(1000):
        bell.pull()
    async with asyncio.timeout(A_WHILE_S):
        await heard.wait(before, longest_s=A_WHILE_S)
    await bell.close()
    assert 1 <= heard.rings - before <= 3


async def test_a_ring_in_a_transaction_is_heard_when_it_commits(database: Database, heard: Waker) -> None:
    before = heard.rings
    async with database.transaction() as connection:
        await ring(connection)
        await database.fetchval("SELECT 1")
        assert heard.rings == before
    async with asyncio.timeout(A_WHILE_S):
        await heard.wait(before, longest_s=A_WHILE_S)
    assert heard.rings > before


async def test_a_lost_connection_is_replaced(
    database: Database, heard: Waker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("largesse.delivery.queue.waking._RECONNECT_S", 0.01)
    await database.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND pid <> pg_backend_pid()"
    )
    before = heard.rings
    async with asyncio.timeout(A_WHILE_S):
        while heard.rings == before:
            async with database.connection() as connection:
                await ring(connection)
            await asyncio.sleep(0.01)


async def test_a_connection_that_went_silent_is_replaced(
    database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("largesse.delivery.queue.waking._RECONNECT_S", 0.01)
    monkeypatch.setattr("largesse.delivery.queue.waking._HEARTBEAT_S", 0.05)
    limits = Limits(statement_s=1, lock_s=1, idle_in_transaction_s=1)
    proxy = Proxy(database_url)
    await proxy.restore()
    behind = await Database.connect(proxy.url, limits=limits)
    waker = Waker()
    listening = asyncio.create_task(listen(behind, waker.wake))
    try:
        for _ in range(2):
            before = waker.rings
            async with asyncio.timeout(A_WHILE_S):
                while waker.rings == before:
                    async with database.connection() as connection:
                        await ring(connection)
                    await asyncio.sleep(0.01)
            proxy.swallow()
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        await behind.close()
        await proxy.cut()


async def test_a_loop_goes_on_after_a_failure_and_while_there_is_work() -> None:
    leaked = asyncio.CancelledError("of something that was waited for")
    outcomes: list[bool | BaseException] = [True, OSError("away"), ValueError("a bug"), leaked, True, False]
    restarts = metrics.LOOP_RESTARTS.labels("test")._value
    before = restarts.get()
    done = asyncio.Event()

    async def step() -> bool:
        if not outcomes:
            done.set()
            return False
        outcome = outcomes.pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    loop = Loop("test", step, every_s=0.001, pause=Schedule(0.001, 1.0, 0.001))
    running = asyncio.create_task(loop.run())
    async with asyncio.timeout(A_WHILE_S):
        await done.wait()
        loop.stop()
        await running
    assert restarts.get() - before == 3


async def test_a_loop_that_rests_after_a_failure_stops_at_once() -> None:
    failed = asyncio.Event()

    async def step() -> bool:
        failed.set()
        raise ValueError("a bug")

    loop = Loop("test", step, pause=Schedule(600, 1.0, 600))
    running = asyncio.create_task(loop.run())
    async with asyncio.timeout(A_WHILE_S):
        await failed.wait()
        loop.stop()
        await running


async def test_a_cancelled_loop_ends() -> None:
    loop = Loop("test", asyncio.Event().wait)  # type: ignore[arg-type]
    running = asyncio.create_task(loop.run())
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
