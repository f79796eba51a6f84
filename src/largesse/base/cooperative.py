"""Shares the processor and what is scarce fairly: slices of a long computation, and turns between keys.

`FairTurns` is for work that may take long, or that needs something scarce, such as a connection to the database: a key with much work delays
only itself.

A computation is a generator that yields wherever it may pause, and returns its result. It runs in slices of a millisecond, and leaves most
of the processor's time to other tasks. A thread is no alternative: it would hold the interpreter for five milliseconds at a time.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Generator, Hashable
from contextlib import asynccontextmanager
from typing import Generic, Self, TypeVar

from largesse.base import clock
from largesse.base.clock import passed_s
from largesse.base.errors import Unavailable

# If paced, a quarter of the waiting callers may begin in one turn of the event loop.
_SHARE = 4
Key = TypeVar("Key", bound=Hashable)


class FairTurns(Generic[Key]):
    """At most `at_once` turns at a time, and `each` for one key. `max_waiting` callers may wait, half of them for one key.

    With `alone_after_s`, a key may use all turns once no other key has asked for one for that many seconds: the bound for
    each key applies only while it helps others.

    With `is_paced`, one caller and a quarter of the waiting ones begin in each turn of the event loop. If many requests arrive
    together, the first ones then get answers from the database while the others are prepared.
    """

    def __init__(
        self, *, at_once: int, each: int, max_waiting: int, alone_after_s: float | None = None, is_paced: bool = False
    ) -> None:
        self._free = at_once
        self._each = each
        self._max_waiting = max_waiting
        self._alone_after_s = alone_after_s
        self._is_paced = is_paced
        self._room = 1  # how many callers may still begin in this turn of the event loop, if paced
        self._is_passing_on = False
        self._last_key: Key | None = None
        self._several_until = 0.0  # an instant of `passed_s`; 0 while only one key has asked
        self._busy: Counter[Key] = Counter()
        self._waiting: dict[Key, deque[asyncio.Future[None]]] = {}  # the callers of each key, the next key first
        self._waiting_count = 0

    def turn(self, key: Key) -> Turn[Key]:
        """Returns a turn, for an `async with` block that begins once a turn is free. Raises Unavailable if too many wait."""
        return Turn(self, key)

    def begins(self, key: Key) -> bool:
        """Begins a turn if one is free, and returns whether it did. The caller must `end` it. `turn` also waits, and ends it."""
        if self._alone_after_s is not None and key != self._last_key:
            self._several_until = 0.0 if self._last_key is None else passed_s() + self._alone_after_s
            self._last_key = key
        if self._free and key not in self._waiting and self._may(key) and self._room:
            self._take(key)
            return True
        return False

    async def wait(self, key: Key) -> None:
        """Waits for a turn that did not begin at once. Raises Unavailable if too many wait."""
        waiting = self._waiting.get(key, ())
        if len(waiting) >= self._max_waiting - self._waiting_count:
            raise Unavailable("Too many requests are waiting.")
        let_in: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, deque()).append(let_in)
        self._waiting_count += 1
        try:
            await let_in
        except asyncio.CancelledError:
            if let_in.done() and not let_in.cancelled():
                self.end(key)
            raise

    def end(self, key: Key) -> None:
        """Ends a turn of `key`, and admits the next callers."""
        self._free += 1
        self._busy[key] -= 1
        if not self._busy[key]:
            del self._busy[key]
        if self._waiting and self._room:
            self._let_in()

    def _may(self, key: Key) -> bool:
        """Returns whether the key may have one more turn."""
        return self._busy[key] < self._each or self._is_alone()

    def _is_alone(self) -> bool:
        if self._alone_after_s is None:
            return False
        return not self._several_until or passed_s() >= self._several_until

    def _take(self, key: Key) -> None:
        self._free -= 1
        self._busy[key] += 1
        if self._is_paced:
            self._room -= 1
            if not self._is_passing_on:
                self._is_passing_on = True
                asyncio.get_running_loop().call_soon(self._pass_on)

    def _pass_on(self) -> None:
        """Admits the next callers in the next turn of the event loop: more if many wait, as a turn may do much other work."""
        self._is_passing_on = False
        self._room = 1 + self._waiting_count // _SHARE
        waiting = 0
        while self._room and self._waiting_count != waiting:  # each pass admits one caller of each key
            waiting = self._waiting_count
            self._let_in()

    def _let_in(self) -> None:
        """Admits callers, the keys in turn, and skips callers that have gone."""
        for key in [key for key in self._waiting if self._may(key)]:
            if not (self._free and self._room):
                return
            waiting = self._waiting.pop(key)
            while waiting:
                self._waiting_count -= 1
                if not (let_in := waiting.popleft()).done():
                    self._take(key)
                    let_in.set_result(None)
                    if not (self._free and self._room and self._is_alone()):
                        break
            if waiting:
                self._waiting[key] = waiting


class Turn(Generic[Key]):
    """One turn. It may end before its block does, if the rest of the block needs nothing scarce."""

    __slots__ = ("_has_it", "_key", "_turns")

    def __init__(self, turns: FairTurns[Key], key: Key) -> None:
        self._turns = turns
        self._key = key
        self._has_it = False

    async def __aenter__(self) -> Self:
        if not self._turns.begins(self._key):
            await self._turns.wait(self._key)
        self._has_it = True
        return self

    async def __aexit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Ends the turn. A second call does nothing."""
        if self._has_it:
            self._has_it = False
            self._turns.end(self._key)


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
