"""How many bytes of bodies a process holds at once: for each sender, and in all.

A sender who begins many large bodies and ends none would fill the memory otherwise. What the server reads ahead of a connection in any case
is free, so that small forms and orders are read however many large bodies there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from types import TracebackType
from typing import Self

from largesse.base.errors import TooManyRequests, Unavailable

FREE_BYTES = 64 * 1024
BYTES_EACH = 32 * 1024 * 1024
BYTES_IN_ALL = 128 * 1024 * 1024
_RETRY_AFTER_S = 5.0


class TooManyBodies(TooManyRequests):
    """A sender has as many bytes on their way as one may have."""


class BodyMemory:
    """The bytes of bodies that are held now."""

    def __init__(self, *, each: int = BYTES_EACH, in_all: int = BYTES_IN_ALL) -> None:
        self._each = each
        self._in_all = in_all
        self._held: Counter[Hashable] = Counter()

    @property
    def held_bytes(self) -> int:
        """The bytes that are held for all senders."""
        return self._held.total()

    def share(self, sender: Hashable) -> BodyShare:
        """What one body of that sender takes, for a `with` block that ends when the body is no longer needed."""
        return BodyShare(self, sender)

    def take(self, sender: Hashable, count: int) -> None:
        """Counts bytes for a sender. Raises TooManyBodies or Unavailable, and then counts nothing."""
        if self._held[sender] + count > self._each:
            raise TooManyBodies(
                f"At most {self._each} bytes of your requests are read at once.", retry_after_s=_RETRY_AFTER_S
            )
        if self.held_bytes + count > self._in_all:
            raise Unavailable("Too many large requests are being read.", retry_after_s=_RETRY_AFTER_S)
        self._held[sender] += count

    def give_back(self, sender: Hashable, count: int) -> None:
        """Forgets bytes that were taken."""
        self._held[sender] -= count
        if not self._held[sender]:
            del self._held[sender]


class BodyShare:
    """The memory that one body takes."""

    def __init__(self, memory: BodyMemory, sender: Hashable) -> None:
        self._memory = memory
        self._sender = sender
        self._size = self._taken = 0

    def add(self, count: int) -> None:
        """Counts so many bytes more. Raises TooManyBodies or Unavailable."""
        self._size += count
        more = max(0, self._size - FREE_BYTES) - self._taken
        if more:
            self._memory.take(self._sender, more)
            self._taken += more

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._taken:
            self._memory.give_back(self._sender, self._taken)
            self._taken = 0
