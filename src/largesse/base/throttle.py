"""Throttling: how often a caller may do something. Each process counts for itself, in memory.

A `Throttle` refuses a caller whose allowance is used up. `Waits` stores how long callers must wait. A `Pacer` makes callers wait for
a turn. Counts that must survive a restart, such as wrong PINs, are in the database, and use the same `Rate`.
"""

import asyncio
import ipaddress
from collections.abc import Hashable
from functools import lru_cache
from typing import Generic, TypeVar

import msgspec

from largesse.base import clock
from largesse.base.errors import TooManyRequests

Key = TypeVar("Key", bound=Hashable)

_REMEMBERED = 100_000
_LONGEST_WAIT_S = 30.0


class Rate(msgspec.Struct, frozen=True):
    """An allowance of `most` that refills steadily, from empty to full in `refill_s` seconds."""

    most: float
    refill_s: float

    def left_after(self, left: float, passed_s: float) -> float:
        """Returns what is left of the allowance now, if `left` was left `passed_s` seconds ago."""
        return min(self.most, left + max(0.0, passed_s) * self.most / self.refill_s)

    def wait_s(self, left: float) -> float:
        """Returns the seconds until one may be taken if `left` is left. 0 if it may be taken now."""
        return max(0.0, 1 - left) * self.refill_s / self.most


class Throttle(Generic[Key]):
    """An allowance for each key: a customer, an API key, a network address.

    At most `remembered` keys are stored, so that memory is bounded. Beyond that, the keys unused for longest are dropped,
    and their allowance is full again.
    """

    def __init__(self, rate: Rate, *, remembered: int = _REMEMBERED, now_s: clock.Seconds = clock.passed_s) -> None:
        self._rate = rate
        self._remembered = remembered
        self._now_s = now_s
        self._left: dict[Key, tuple[float, float]] = {}  # what was left, and when; the last changed key is last

    def __len__(self) -> int:
        return len(self._left)

    def take(self, key: Key) -> float:
        """Takes one off the allowance and returns 0. If none is left, returns the seconds until there is one."""
        now_s = self._now_s()
        left = self._left_of(key, now_s)
        if left < 1:
            return self._rate.wait_s(left)
        self._left.pop(key, None)
        self._left[key] = (left - 1, now_s)
        if len(self._left) > self._remembered:
            del self._left[next(iter(self._left))]
        return 0.0

    def spend(self, key: Key, refusal: str) -> None:
        """Takes one off the allowance. Raises TooManyRequests with the text `refusal` if none is left."""
        if wait_s := self.take(key):
            raise TooManyRequests(refusal, retry_after_s=wait_s)

    def quota(self, key: Key) -> tuple[int, float]:
        """Returns how many may be taken now, and the seconds until there is one more. Takes nothing."""
        left = self._left_of(key, self._now_s())
        return int(left), self._rate.wait_s(left - int(left))

    def wait_s(self, key: Key) -> float:
        """Returns what `take` would return. Takes nothing."""
        if not self._left:
            return 0.0
        return self._rate.wait_s(self._left_of(key, self._now_s()))

    def _left_of(self, key: Key, now_s: float) -> float:
        left, at_s = self._left.get(key, (self._rate.most, now_s))
        return self._rate.left_after(left, now_s - at_s)


class Waits(Generic[Key]):
    """Callers that must wait, and for how long, so that refusing them again costs nothing.

    At most `remembered` callers are stored. Beyond that, the oldest are dropped.
    """

    def __init__(self, *, remembered: int = _REMEMBERED, now_s: clock.Seconds = clock.passed_s) -> None:
        self._remembered = remembered
        self._now_s = now_s
        self._until_s: dict[Key, float] = {}  # the last changed key is last

    def __len__(self) -> int:
        return len(self._until_s)

    def tell(self, key: Key, wait_s: float) -> None:
        """Makes a caller wait for `wait_s` seconds from now."""
        self._until_s.pop(key, None)
        self._until_s[key] = self._now_s() + wait_s
        if len(self._until_s) > self._remembered:
            del self._until_s[next(iter(self._until_s))]

    def left_s(self, key: Key) -> float:
        """Returns the seconds that a caller must still wait, or 0."""
        until_s = self._until_s.get(key)
        if until_s is None:
            return 0.0
        left_s = until_s - self._now_s()
        if left_s > 0:
            return left_s
        del self._until_s[key]
        return 0.0


class Pacer:
    """Admits `per_s` callers a second, one after another, so that they cannot use up the process.

    A single caller is admitted at once. If many come, all wait in the same way.
    """

    def __init__(self, per_s: float) -> None:
        self._every_s = 1 / per_s
        self._next_s = 0.0

    async def turn(self) -> None:
        """Waits for the next turn."""
        now_s = clock.passed_s()
        at_s = min(max(now_s, self._next_s), now_s + _LONGEST_WAIT_S)
        self._next_s = at_s + self._every_s
        if at_s > now_s:
            await asyncio.sleep(at_s - now_s)


@lru_cache(1_000)
def network_of(host: str) -> bytes:
    """Returns the part of an address that counts as one network: all of an IPv4 address, the /64 of an IPv6 one, or any other text."""
    try:
        address = ipaddress.ip_address(host.split("%", 1)[0])
    except ValueError:
        return host.encode()
    mapped = getattr(address, "ipv4_mapped", None)
    if mapped is not None:
        address = mapped
    return address.packed[:8] if address.version == 6 else address.packed
