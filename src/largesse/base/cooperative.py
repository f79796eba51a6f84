"""Runs a long computation in slices of a millisecond, and leaves most of the processor's time to other tasks.

A computation is a generator that yields wherever it may pause, and returns its result. A thread is no alternative: it would hold the
interpreter for five milliseconds at a time.
"""

import asyncio
from collections.abc import AsyncIterator, Generator, Hashable
from contextlib import asynccontextmanager
from typing import TypeVar

from largesse.base import clock
from largesse.base.fair_turns import FairTurns

Result = TypeVar("Result")
Steps = Generator[None, None, Result]

_SLICE_S = 0.001
# Seconds that a computation may take before it pauses between slices. Most end sooner.
_BRISK_S = 0.02
# A pause is this many times as long as the slice before it. With shorter pauses, an order takes six times as long as on an idle
# service, as it waits for many slices.
_PAUSE_FACTOR = 3


def first_slice(steps: Steps[Result]) -> Result | None:
    """Runs `steps` for one slice. Returns their result, or None if they are not done. `CooperativeRunner.finish` continues them."""
    until = clock.passed_s() + _SLICE_S
    try:
        while True:
            next(steps)
            if clock.passed_s() >= until:
                return None
    except StopIteration as end:
        result: Result = end.value
        return result


async def finish_soon(steps: Steps[Result]) -> Result:
    """Returns the result of `steps` soon, as all requests wait for it: other tasks run between slices, but there are no further pauses."""
    while True:
        result = first_slice(steps)
        if result is not None:
            return result
        await asyncio.sleep(0)


class CooperativeRunner:
    """Finishes long computations, one at a time for each key. Others of that key wait."""

    def __init__(self, *, at_once: int = 8, max_waiting: int = 200) -> None:
        self._turns: FairTurns[Hashable] = FairTurns(at_once=at_once, each=1, max_waiting=max_waiting)
        self._slice = asyncio.Lock()

    async def finish(self, key: Hashable, steps: Steps[Result], *, is_part: bool = False) -> Result:
        """Returns the result of `steps`. Raises what they raise, or Unavailable if too many wait.

        A part of a longer computation pauses after its first slice, and after its last one too.
        """
        spent_s = _BRISK_S if is_part else 0.0
        async with self._turns.turn(key):
            while True:
                async with self._slice:
                    began = clock.passed_s()
                    result = first_slice(steps)
                    taken_s = clock.passed_s() - began
                    spent_s += taken_s
                    if result is None or is_part:
                        await asyncio.sleep(_PAUSE_FACTOR * taken_s if spent_s > _BRISK_S else 0)
                    if result is not None:
                        return result

    @asynccontextmanager
    async def turn(self, key: Hashable) -> AsyncIterator[None]:
        """Runs a block, such as a transaction that keeps the database busy, when it is the turn of `key`. Pauses after a long block.

        Raises Unavailable if too many wait. The block must not wait for another turn of `key`.
        """
        async with self._turns.turn(key):
            began = clock.passed_s()
            try:
                yield
            finally:
                taken_s = clock.passed_s() - began
                if taken_s > _BRISK_S:
                    await asyncio.sleep(_PAUSE_FACTOR * taken_s)
