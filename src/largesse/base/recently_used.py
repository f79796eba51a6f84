"""RecentlyUsed: a bounded cache that drops the least recently used values."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class RecentlyUsed(Generic[Key, Value]):
    """A cache of at most `max_entries` values, whose weights add up to at most `max_total`. Without `weigh`, values weigh 0."""

    def __init__(self, *, max_entries: int, max_total: int = 0, weigh: Callable[[Value], int] = lambda _: 0) -> None:
        self._max_entries = max_entries
        self._max_total = max_total
        self._weigh = weigh
        self._total = 0
        self._entries: OrderedDict[Key, Value] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> Value | None:
        """Returns the value of the key and marks it as used now, or returns None if there is none."""
        value = self._entries.get(key)
        if value is not None:
            self._entries.move_to_end(key)
        return value

    def drop(self, key: Key) -> None:
        """Drops the key, if it is there."""
        value = self._entries.pop(key, None)
        if value is not None:
            self._total -= self._weigh(value)

    def put(self, key: Key, value: Value) -> None:
        """Sets the value of a key, and drops the least recently used ones. Does not store a value heavier than `max_total`."""
        former = self._entries.pop(key, None)
        if former is not None:
            self._total -= self._weigh(former)
        weight = self._weigh(value)
        if weight > self._max_total:
            return
        self._entries[key] = value
        self._total += weight
        while self._total > self._max_total or len(self._entries) > self._max_entries:
            _, dropped = self._entries.popitem(last=False)
            self._total -= self._weigh(dropped)
