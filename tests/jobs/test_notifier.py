"""Notifications and the loops that they wake, which rest longer after each failure."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from tests.faults.proxy import Proxy

from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.db.session import Limits
from largesse.jobs import metrics
from largesse.jobs.job_loop import Loop, Schedule
from largesse.jobs.notifier import News, Notifier, Waker, listen, notify

A_WHILE_S = 10.0


@pytest.fixture
async def heard(database: Database) -> AsyncIterator[Waker]:
    """A waker that hears notifications."""
    waker = Waker()
    listening = asyncio.create_task(listen(database, lambda _: waker.wake()))
    async with asyncio.timeout(A_WHILE_S):
        while not waker.calls:  # until it listens, nothing is heard
            async with database.connection(OPERATOR) as connection:
                await notify(connection)
            await asyncio.sleep(0.01)
    yield waker
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)


async def test_a_call_before_the_wait_is_not_missed() -> None:
    waker = Waker()
    before = waker.calls
    waker.wake()
    async with asyncio.timeout(A_WHILE_S):
        await waker.wait(before, longest_s=1000)


async def test_a_wait_ends_by_itself() -> None:
    waker = Waker()
    async with asyncio.timeout(A_WHILE_S):
        await waker.wait(waker.calls, longest_s=0.01)


async def test_everything_runs_when_listening_begins(database: Database) -> None:
    """A notification that came before was not heard, and a periodic task may rest for hours."""
    calls: asyncio.Queue[News] = asyncio.Queue()
    listening = asyncio.create_task(listen(database, calls.put_nowait))
    try:
        async with asyncio.timeout(A_WHILE_S):
            assert await calls.get() is News.EVERYTHING
            for news in News:
                async with database.connection(OPERATOR) as connection:
                    await notify(connection, news)
                assert await calls.get() is news
            await database.execute(OPERATOR, "NOTIFY largesse_outbox, 'of another release'")
            assert await calls.get() is News.OUTBOX
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)


async def test_the_notifier_is_heard_and_many_calls_make_few_notifications(database: Database, heard: Waker) -> None:
    notifier = Notifier(database)
    before = heard.calls
    for _ in range(1000):
        notifier.notify_soon()
    async with asyncio.timeout(A_WHILE_S):
        await heard.wait(before, longest_s=A_WHILE_S)
    await notifier.close()
    assert 1 <= heard.calls - before <= 3


async def test_the_notifier_tells_of_orders(database: Database) -> None:
    calls: asyncio.Queue[News] = asyncio.Queue()
    listening = asyncio.create_task(listen(database, calls.put_nowait))
    notifier = Notifier(database)
    try:
        async with asyncio.timeout(A_WHILE_S):
            assert await calls.get() is News.EVERYTHING
            notifier.notify_soon()
            assert await calls.get() is News.ORDERS
    finally:
        listening.cancel()
        await asyncio.gather(listening, notifier.close(), return_exceptions=True)


async def test_a_notification_in_a_transaction_is_heard_when_it_commits(database: Database, heard: Waker) -> None:
    before = heard.calls
    async with database.transaction(OPERATOR) as connection:
        await notify(connection)
        await database.fetchval(OPERATOR, "SELECT 1")
        assert heard.calls == before
    async with asyncio.timeout(A_WHILE_S):
        await heard.wait(before, longest_s=A_WHILE_S)
    assert heard.calls > before


async def test_a_lost_connection_is_replaced(database: Database, heard: Waker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("largesse.jobs.notifier._RECONNECT_S", 0.01)
    await database.execute(
        OPERATOR,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND query LIKE 'LISTEN%' AND pid <> pg_backend_pid()",
    )
    before = heard.calls
    async with asyncio.timeout(A_WHILE_S):
        while heard.calls == before:
            async with database.connection(OPERATOR) as connection:
                await notify(connection)
            await asyncio.sleep(0.01)


@pytest.mark.slow
async def test_a_connection_that_went_silent_is_replaced(
    database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("largesse.jobs.notifier._RECONNECT_S", 0.01)
    monkeypatch.setattr("largesse.jobs.notifier._HEARTBEAT_S", 0.05)
    limits = Limits(statement_s=1, lock_s=1, idle_in_transaction_s=1)
    proxy = Proxy(database_url)
    await proxy.restore()
    behind = await Database.connect(proxy.url, limits=limits)
    waker = Waker()
    listening = asyncio.create_task(listen(behind, lambda _: waker.wake()))
    try:
        for _ in range(2):
            before = waker.calls
            async with asyncio.timeout(A_WHILE_S):
                while waker.calls == before:
                    async with database.connection(OPERATOR) as connection:
                        await notify(connection)
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


async def test_a_loop_whose_step_fails_as_it_is_cancelled_ends_without_a_warning() -> None:
    async def step() -> bool:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise asyncpg.InterfaceError("the rollback failed") from None
        return False

    loop = Loop("test", step)
    running = asyncio.create_task(loop.run())
    await asyncio.sleep(0)
    running.cancel()
    with structlog.testing.capture_logs() as logged, pytest.raises(asyncio.CancelledError):
        await running
    assert logged == []


SCHEDULE = Schedule(first_s=4, factor=4, cap_s=21_600)
MIDDLES = [4, 16, 64, 256, 1024, 4096, 16_384, 21_600, 21_600]


@given(st.integers(min_value=1, max_value=1000))
def test_a_delay_is_within_20_percent_of_its_middle_and_never_over_the_cap(failures: int) -> None:
    middle = MIDDLES[min(failures, len(MIDDLES)) - 1]
    assert 0.8 * middle <= SCHEDULE.delay_s(failures) <= min(1.2 * middle, 21_600)


def test_the_jitter_reaches_both_ends() -> None:
    assert SCHEDULE.delay_s(2, draw=min) == 0.8 * 16
    assert SCHEDULE.delay_s(2, draw=max) == 1.2 * 16
    assert SCHEDULE.delay_s(12, draw=min) == 0.8 * 21_600
    assert SCHEDULE.delay_s(12, draw=max) == 21_600


@given(st.integers(min_value=1, max_value=12), st.floats(min_value=0, max_value=1e12))
def test_what_the_other_side_asks_for_is_honoured_up_to_the_cap(failures: int, asked_s: float) -> None:
    delay_s = SCHEDULE.delay_s(failures, at_least_s=asked_s)
    assert min(asked_s, 21_600) <= delay_s <= 21_600
