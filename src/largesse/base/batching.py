"""Batches items without a timer: items that wait are handled together.

An idle batcher handles a single item at once. While its tasks are busy, items gather, and the next free task takes all of them,
up to a bound. So batches grow with the load, and the cost of an item falls.

Items may belong to groups. One task at a time handles the items of a group, in order: items that would wait for the same lock
share a batch instead. While a batch of one group is handled, other tasks handle the other groups. While a batch of several groups is
handled, all later items wait, as a batch for each group would cost more than it saves. Groups take turns at going first, so that a
busy group does not delay the others. One group may use half of the waiting capacity, two groups a third each, and so on, so that
there is always some left for another.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, Protocol, TypeVar

from largesse.base.errors import Unavailable

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")
Outcome_contra = TypeVar("Outcome_contra", contravariant=True)


class Receiver(Protocol[Outcome_contra]):
    """Gets an outcome. It is a future, or an object that handles the outcome at once and needs no task."""

    def done(self) -> bool:
        """Returns whether it no longer needs an outcome."""

    def set_result(self, result: Outcome_contra, /) -> None:
        """Gets the outcome."""

    def set_exception(self, exception: Exception, /) -> None:
        """Gets an error instead."""


MAX_REST_S = 0.01
_REST = 0.75  # the rest after a batch, as a share of the time it took
_FEW = 3  # after a batch of at most so many items there is no rest

_Waiting = tuple[Item, Receiver[Outcome]]


class Batcher(Generic[Item, Outcome]):
    """Passes items to `handle` in batches, and each outcome to the caller of its item.

    `handle` gets at most `max_items` items, whose weights add up to at most `max_weight`; a heavier item is handled alone. It returns one
    outcome for each item, in order. An exception among them is raised to that item's caller alone. An exception that `handle`
    raises goes to every caller of the batch.

    A batch has items of at most `max_groups` groups, by default of any number.

    `max_waiting` bounds the number of items that wait, or with `room_by_weight` their weight.

    With `rests`, the groups of a batch of more than a few items rest after it, so that more items gather. A rest lasts three quarters
    of the time that the batch took, at most MAX_REST_S.
    """

    def __init__(  # noqa: PLR0913 - bounds, each by its name
        self,
        handle: Callable[[list[Item]], Awaitable[Sequence[Outcome | Exception]]],
        *,
        tasks: int,
        max_items: int,
        max_waiting: int,
        max_weight: int = 0,
        weigh: Callable[[Item], int] = lambda _: 0,
        room_by_weight: bool = False,
        group: Callable[[Item], Hashable] | None = None,
        max_groups: int | None = None,
        rests: bool = False,
    ) -> None:
        self._handle = handle
        self._max_items = max_items
        self._max_waiting = max_waiting
        self._max_weight = max_weight
        self._weigh = weigh
        self._room_by_weight = room_by_weight
        self._group = group
        self._max_groups = max_groups
        self._rests = rests
        # Items by group, in the order of their turns. Without groups, all items are in one group, which all tasks handle at the same time.
        self._waiting: dict[Hashable, deque[_Waiting[Item, Outcome]]] = {}
        self._room_taken = 0
        self._handled: set[Hashable] = set()  # groups that a task handles now
        self._is_shared = False  # a task handles a batch of several groups now
        self._idle: deque[asyncio.Future[None]] = deque()
        self._closing = False
        self._loop = asyncio.get_running_loop()
        self._tasks = [asyncio.create_task(self._work()) for _ in range(tasks)]

    async def submit(self, item: Item) -> Outcome:
        """Returns the outcome of `item`. Raises Unavailable if too many items wait or the batcher is closed."""
        future: asyncio.Future[Outcome] = self._loop.create_future()
        self.submit_for(future, item)
        return await future

    def submit_for(self, receiver: Receiver[Outcome], item: Item) -> None:
        """Gives the outcome of `item` to `receiver`, which must not raise. Raises Unavailable as `submit` does."""
        if self._closing:
            raise Unavailable("The service is stopping.")
        room = self._max_waiting - self._room_taken
        group = None if self._group is None else self._group(item)
        waiting = self._waiting.get(group)
        if room <= 0 or (waiting and self._group is not None and self._room_of(waiting) >= room):
            raise Unavailable("Too many requests are waiting.")
        if waiting is None:
            waiting = self._waiting[group] = deque()
        waiting.append((item, receiver))
        self._room_taken += self._weigh(item) if self._room_by_weight else 1
        if not self._is_shared and group not in self._handled:
            self._wake()

    async def close(self) -> None:
        """Handles the waiting items, then ends."""
        self._closing = True
        while self._idle:
            self._wake()
        await asyncio.gather(*self._tasks)

    def _room_of(self, waiting: deque[_Waiting[Item, Outcome]]) -> int:
        """Returns how much of the waiting capacity a group's items use."""
        return sum(self._weigh(item) for item, _ in waiting) if self._room_by_weight else len(waiting)

    def _wake(self) -> None:
        while self._idle:
            idle = self._idle.popleft()
            if not idle.done():
                idle.set_result(None)
                return

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            batch, groups = self._take()
            if batch:
                is_shared = len(groups) > 1
                self._handled |= groups
                self._is_shared |= is_shared
                if self._waiting:
                    self._wake()
                began_s = loop.time()
                try:
                    await self._handle_batch(batch)
                    if self._rests and len(batch) > _FEW and not self._closing:
                        await asyncio.sleep(min((loop.time() - began_s) * _REST, MAX_REST_S))
                finally:
                    self._handled -= groups
                    self._is_shared &= not is_shared
            elif self._closing:
                # If items still wait, a task that is busy now will take them.
                return
            else:
                idle = loop.create_future()
                self._idle.append(idle)
                await idle

    def _take(self) -> tuple[list[_Waiting[Item, Outcome]], set[Hashable]]:
        """Returns the next batch and its groups. Items of these groups that still wait go last the next time."""
        batch: list[_Waiting[Item, Outcome]] = []
        groups: set[Hashable] = set()
        weight = 0
        if self._is_shared:
            return batch, groups
        for group in [group for group in self._waiting if group not in self._handled]:
            if len(batch) == self._max_items or len(groups) == self._max_groups:
                break
            waiting = self._waiting[group]
            before = len(batch)
            while waiting and len(batch) < self._max_items:
                item, receiver = waiting[0]
                if not receiver.done():  # the caller still waits
                    weight += self._weigh(item)
                    if batch and weight > self._max_weight:
                        break
                    batch.append((item, receiver))
                waiting.popleft()
                self._room_taken -= self._weigh(item) if self._room_by_weight else 1
            if len(batch) == before and waiting:
                break
            if self._group is not None and len(batch) > before:
                groups.add(group)
            del self._waiting[group]
            if waiting:
                self._waiting[group] = waiting
                break
        return batch, groups

    async def _handle_batch(self, batch: list[_Waiting[Item, Outcome]]) -> None:
        """Gives every caller of the batch its outcome, whatever happens: after an exception here, all callers would wait for ever."""
        outcomes: Sequence[Outcome | Exception]
        try:
            outcomes = await self._handle([item for item, _ in batch])
        except asyncio.CancelledError:
            _deliver(batch, [Unavailable("The request was broken off.")] * len(batch))
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return  # something that this task waited for was cancelled, not the task
        except Exception as error:  # noqa: BLE001 - every error goes to the callers of this batch
            outcomes = [error] * len(batch)
        if len(outcomes) != len(batch):
            outcomes = [RuntimeError(f"{len(outcomes)} outcomes for {len(batch)} items")] * len(batch)
        _deliver(batch, outcomes)


def _deliver(batch: Sequence[_Waiting[Item, Outcome]], outcomes: Sequence[Outcome | Exception]) -> None:
    for (_, receiver), outcome in zip(batch, outcomes, strict=True):
        if receiver.done():  # its caller went away
            continue
        if isinstance(outcome, Exception):
            receiver.set_exception(outcome)
        else:
            receiver.set_result(outcome)
