"""FairTurns: a bounded number of pieces of work at once, in all and for each key, and those who wait are let in by turns of keys.

For what may take long, or hold something that others need, such as a connection to the database: a key that does much of it
keeps only itself waiting.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Hashable
from types import TracebackType
from typing import Generic, Self, TypeVar

from largesse.base.clock import passed_s
from largesse.base.errors import Unavailable

# If paced, a quarter of those that wait may begin in one turn of the event loop.
_SHARE = 4
Key = TypeVar("Key", bound=Hashable)


class FairTurns(Generic[Key]):
    """`at_once` turns at a time, `each` of them for one key; `max_waiting` may wait, of which a key fills half at most.

    With `alone_after_s` a key may have them all once no other has asked for a turn for so long: how many there are of one key
    is bounded where others would notice, and only there.

    With `is_paced`, one and a quarter of those that wait begin in each turn of the event loop. So an answer of the database is not
    read behind all requests that arrived together: the database works again while they are prepared.
    """

    def __init__(
        self, *, at_once: int, each: int, max_waiting: int, alone_after_s: float | None = None, is_paced: bool = False
    ) -> None:
        self._free = at_once
        self._each = each
        self._max_waiting = max_waiting
        self._alone_after_s = alone_after_s
        self._is_paced = is_paced
        self._room = 1  # how many may still begin in this turn of the event loop, if they are paced
        self._is_passing_on = False
        self._last_key: Key | None = None
        self._several_until = 0.0  # by `passed_s`; 0: never yet
        self._busy: Counter[Key] = Counter()
        self._waiting: dict[Key, deque[asyncio.Future[None]]] = {}  # the key to be let in first, first
        self._waiting_count = 0

    def turn(self, key: Key) -> Turn[Key]:
        """Returns a turn, for an `async with` block that begins once there is one. Raises Unavailable when too many wait already."""
        return Turn(self, key)

    def begins(self, key: Key) -> bool:
        """Begins a turn, which `end` ends, if there is one at once; `turn` waits for it, and ends it, too."""
        if self._alone_after_s is not None and key != self._last_key:
            self._several_until = 0.0 if self._last_key is None else passed_s() + self._alone_after_s
            self._last_key = key
        if self._free and key not in self._waiting and self._may(key) and self._room:
            self._take(key)
            return True
        return False

    async def wait(self, key: Key) -> None:
        """Waits for a turn that did not begin at once. Raises Unavailable when too many wait already."""
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
        """Ends a turn of `key`, and lets in who may be now."""
        self._free += 1
        self._busy[key] -= 1
        if not self._busy[key]:
            del self._busy[key]
        if self._waiting and self._room:
            self._let_in()

    def _may(self, key: Key) -> bool:
        """Returns whether there may be one more of the key."""
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
        """Admits the next callers in the next turn of the event loop: more when many wait, since each turn may have much else to do."""
        self._is_passing_on = False
        self._room = 1 + self._waiting_count // _SHARE
        waiting = 0
        while self._room and self._waiting_count != waiting:  # each time lets in one of a key
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
    """One turn. It may be ended before its block is: where what follows keeps nobody waiting."""

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

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """Ends the turn; the second time does nothing."""
        if self._has_it:
            self._has_it = False
            self._turns.end(self._key)
