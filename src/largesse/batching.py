"""Natural batching: whatever waits is handled together, and nothing waits for a timer.

An idle batcher handles a lone item at once. While its tasks are busy, items gather, and the next free task
takes all of them, up to a bound. Under load the batches grow by themselves and the cost per item falls.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from largesse.errors import Unavailable

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class Batcher(Generic[Item, Outcome]):
    """Hands items to `handle` in batches and gives each caller the outcome of its own item.

    `handle` gets a list of at most `max_items` items whose weights add up to at most `max_weight` (a single
    heavier item goes alone) and returns one outcome per item, in order; an exception among them is raised to
    that item's caller alone. An exception raised by `handle` itself goes to every caller of the batch.
    """

    def __init__(
        self,
        handle: Callable[[list[Item]], Awaitable[Sequence[Outcome | Exception]]],
        *,
        tasks: int,
        max_items: int,
        max_waiting: int,
        max_weight: int = 0,
        weigh: Callable[[Item], int] | None = None,
    ) -> None:
        self._handle = handle
        self._max_items = max_items
        self._max_waiting = max_waiting
        self._max_weight = max_weight
        self._weigh = weigh
        self._waiting: deque[tuple[Item, asyncio.Future[Outcome]]] = deque()
        self._idle: deque[asyncio.Future[None]] = deque()
        self._closing = False
        self._tasks = [asyncio.create_task(self._work()) for _ in range(tasks)]

    async def submit(self, item: Item) -> Outcome:
        """The outcome of `item`. Raises Unavailable when too many wait already or the batcher has closed."""
        if self._closing:
            raise Unavailable("The service is stopping.")
        if len(self._waiting) >= self._max_waiting:
            raise Unavailable("Too many requests are waiting.")
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        self._wake()
        return await future

    async def close(self) -> None:
        """Handles what waits, then ends."""
        self._closing = True
        while self._idle:
            self._wake()
        await asyncio.gather(*self._tasks)

    def _wake(self) -> None:
        while self._idle:
            idle = self._idle.popleft()
            if not idle.done():
                idle.set_result(None)
                return

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if not self._waiting:
                if self._closing:
                    return
                idle = loop.create_future()
                self._idle.append(idle)
                await idle
                continue
            await self._handle_batch(self._take())

    def _take(self) -> list[tuple[Item, asyncio.Future[Outcome]]]:
        if self._weigh is None:
            return [self._waiting.popleft() for _ in range(min(len(self._waiting), self._max_items))]
        batch: list[tuple[Item, asyncio.Future[Outcome]]] = []
        weight = 0
        while self._waiting and len(batch) < self._max_items:
            weight += self._weigh(self._waiting[0][0])
            if batch and weight > self._max_weight:
                break
            batch.append(self._waiting.popleft())
        return batch

    async def _handle_batch(self, batch: list[tuple[Item, asyncio.Future[Outcome]]]) -> None:
        """Gives every caller of the batch its outcome, whatever happens: a task that died would leave all waiting."""
        outcomes: Sequence[Outcome | Exception]
        try:
            outcomes = await self._handle([item for item, _ in batch])
        except asyncio.CancelledError:
            _deliver(batch, [Unavailable("The request was broken off.")] * len(batch))
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return  # not this task was cancelled, but something it waited for
        except Exception as error:  # noqa: BLE001 - whatever went wrong belongs to the callers of this batch
            outcomes = [error] * len(batch)
        if len(outcomes) != len(batch):
            outcomes = [RuntimeError(f"{len(outcomes)} outcomes for {len(batch)} items")] * len(batch)
        _deliver(batch, outcomes)


def _deliver(
    batch: Sequence[tuple[Item, asyncio.Future[Outcome]]], outcomes: Sequence[Outcome | Exception]
) -> None:
    for (_, future), outcome in zip(batch, outcomes, strict=True):
        if future.done():  # its caller went away
            continue
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
