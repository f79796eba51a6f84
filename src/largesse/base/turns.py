"""Turns: a bounded number of pieces of work at once, in all and for each key, and whoever waits is let in by turns of keys.

For what may take long, or hold something that others need, such as a connection to the database: a key that does much of it
keeps only itself waiting.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from largesse.base.errors import Unavailable

Key = TypeVar("Key", bound=Hashable)


class Turns(Generic[Key]):
    """`at_once` turns at a time, `each` of them for one key; `max_waiting` may wait, of whom a key fills half at most."""

    def __init__(self, *, at_once: int, each: int, max_waiting: int) -> None:
        self._free = at_once
        self._each = each
        self._max_waiting = max_waiting
        self._busy: Counter[Key] = Counter()
        self._waiting: dict[Key, deque[asyncio.Future[None]]] = {}  # the key to be let in first, first
        self._waiting_count = 0

    @asynccontextmanager
    async def turn(self, key: Key) -> AsyncIterator[None]:
        """A turn for as long as the block lasts, once there is one. Raises Unavailable when too many wait already."""
        await self._begin(key)
        try:
            yield
        finally:
            self._end(key)

    async def _begin(self, key: Key) -> None:
        waiting = self._waiting.get(key, ())
        if self._free and self._busy[key] < self._each and not waiting:
            self._take(key)
            return
        if len(waiting) >= self._max_waiting - self._waiting_count:
            raise Unavailable("Too many requests are waiting.")
        let_in: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, deque()).append(let_in)
        self._waiting_count += 1
        try:
            await let_in
        except asyncio.CancelledError:
            if let_in.done() and not let_in.cancelled():
                self._end(key)
            raise

    def _take(self, key: Key) -> None:
        self._free -= 1
        self._busy[key] += 1

    def _end(self, key: Key) -> None:
        self._free += 1
        self._busy[key] -= 1
        if not self._busy[key]:
            del self._busy[key]
        self._let_in()

    def _let_in(self) -> None:
        """Lets in who may be: the keys in turn, and who went away is passed over."""
        for key in [key for key in self._waiting if self._busy[key] < self._each]:
            if not self._free:
                return
            waiting = self._waiting.pop(key)
            while waiting:
                self._waiting_count -= 1
                if not (let_in := waiting.popleft()).done():
                    self._take(key)
                    let_in.set_result(None)
                    break
            if waiting:
                self._waiting[key] = waiting
