import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from largesse.base.batching import Batcher
from largesse.base.timeouts import TimedOut, Timeouts

A_WHILE_S = 0.2
PATIENCE_S = 30.0


@pytest.fixture
async def patience() -> AsyncIterator[Timeouts]:
    patience = Timeouts(A_WHILE_S)
    yield patience
    await patience.close()


async def test_a_wait_that_lasts_too_long_is_given_up(patience: Timeouts) -> None:
    began = time.monotonic()
    with pytest.raises(TimedOut), patience.wait():
        await asyncio.sleep(PATIENCE_S)
    assert A_WHILE_S <= time.monotonic() - began < PATIENCE_S
    await asyncio.sleep(0)  # the task itself goes on as ever


async def test_one_wait_may_have_several_blocks_and_what_lies_between_does_not_count(patience: Timeouts) -> None:
    wait = patience.wait()
    with wait:
        await asyncio.sleep(0.6 * A_WHILE_S)
    await asyncio.sleep(2 * A_WHILE_S)
    with wait:
        pass
    began = time.monotonic()
    with pytest.raises(TimedOut), wait:
        await asyncio.sleep(PATIENCE_S)
    assert time.monotonic() - began < PATIENCE_S


async def test_a_queue_that_moves_is_waited_for(patience: Timeouts) -> None:
    async def move() -> None:
        for _ in range(40):
            patience.moved()
            await asyncio.sleep(A_WHILE_S / 10)

    moving = asyncio.create_task(move())
    with patience.wait():
        await moving
    with pytest.raises(TimedOut), patience.wait():
        await asyncio.sleep(PATIENCE_S)


async def test_a_cancellation_by_others_stays_one(patience: Timeouts) -> None:
    async def wait() -> None:
        with patience.wait():
            await asyncio.sleep(PATIENCE_S)

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_an_error_is_told_rather_than_the_giving_up_it_came_of(patience: Timeouts) -> None:
    async def clean_up() -> None:
        try:
            await asyncio.sleep(PATIENCE_S)
        finally:
            raise ValueError("on the way out")

    with pytest.raises(ValueError, match="on the way out"), patience.wait():
        await clean_up()
    await asyncio.sleep(0)


async def test_what_was_given_up_while_it_waited_in_a_queue_is_never_begun(patience: Timeouts) -> None:
    begun: list[int] = []
    gate = asyncio.Event()

    async def handle(items: list[int]) -> list[int]:
        begun.extend(items)
        await gate.wait()
        return items

    async def submit(item: int) -> int:
        with patience.wait():
            return await batcher.submit(item)

    batcher = Batcher(handle, tasks=1, max_items=2, max_waiting=10, group=lambda item: item % 2)
    submitted = [asyncio.create_task(submit(item)) for item in (1, 2, 3, 4)]
    assert [type(outcome) for outcome in await asyncio.gather(*submitted, return_exceptions=True)] == [TimedOut] * 4
    gate.set()
    assert await batcher.submit(5) == 5
    await batcher.close()
    assert begun in ([1, 3, 5], [1, 2, 5], [1, 5])


async def test_work_of_the_callers_own_does_not_count(patience: Timeouts) -> None:
    wait = patience.wait()
    with wait:
        with patience.suspended():
            await asyncio.sleep(3 * A_WHILE_S)
        with patience.suspended():
            pass
    with patience.suspended():  # outside of any wait
        pass
    began = time.monotonic()
    with pytest.raises(TimedOut), wait:
        await asyncio.sleep(PATIENCE_S)
    assert time.monotonic() - began < PATIENCE_S
