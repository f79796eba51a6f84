"""CooperativeRunner: a long computation gives way every millisecond, and all of them together leave half of the processor's time.

A thread would not do: it holds the interpreter for five times as long whenever it may, and several of them hand it to each
other. A computation is a generator that yields wherever it may be left off and returns its result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Hashable
from typing import TypeVar

from largesse.base import clock
from largesse.base.fair_turns import FairTurns

Result = TypeVar("Result")
Steps = Generator[None, None, Result]

_SLICE_S = 0.001
# What a computation may take before it leaves half of the time to others: most are over by then.
_BRISK_S = 0.02


def first_slice(steps: Steps[Result]) -> Result | None:
    """What `steps` come to if they need no more than a slice; otherwise None, and `CooperativeRunner.finish` goes on with them."""
    until = clock.passed_s() + _SLICE_S
    try:
        while True:
            next(steps)
            if clock.passed_s() >= until:
                return None
    except StopIteration as end:
        result: Result = end.value
        return result


class CooperativeRunner:
    """Finishes long computations, one at a time for each key; further ones of it wait."""

    def __init__(self, *, at_once: int = 8, max_waiting: int = 200) -> None:
        self._turns: FairTurns[Hashable] = FairTurns(at_once=at_once, each=1, max_waiting=max_waiting)
        self._slice = asyncio.Lock()

    async def finish(self, key: Hashable, steps: Steps[Result]) -> Result:
        """What `steps` come to; raises what they raise, or Unavailable when too many wait."""
        spent_s = 0.0
        async with self._turns.turn(key):
            while True:
                async with self._slice:
                    began = clock.passed_s()
                    result = first_slice(steps)
                    if result is not None:
                        return result
                    taken_s = clock.passed_s() - began
                    spent_s += taken_s
                    await asyncio.sleep(taken_s if spent_s > _BRISK_S else 0)
