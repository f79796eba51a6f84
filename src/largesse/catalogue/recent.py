"""A bounded memory of what was asked for last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sized
from typing import Generic, TypeVar

Kept = TypeVar("Kept", bound=Sized)


class Recent(Generic[Kept]):
    """Keeps the most recently used values: `max_entries` at most, whose lengths add up to at most `max_total`."""

    def __init__(self, *, max_total: int, max_entries: int) -> None:
        self._max_total = max_total
        self._max_entries = max_entries
        self._total = 0
        self._kept: OrderedDict[Hashable, Kept] = OrderedDict()

    def get(self, key: Hashable) -> Kept | None:
        """What is kept under the key, now the most recent; None where nothing is."""
        kept = self._kept.get(key)
        if kept is not None:
            self._kept.move_to_end(key)
        return kept

    def put(self, key: Hashable, value: Kept) -> None:
        """Keeps `value` under a new key, dropping the longest unused; one longer than all room is not kept."""
        if len(value) > self._max_total:
            return
        self._kept[key] = value
        self._total += len(value)
        while self._total > self._max_total or len(self._kept) > self._max_entries:
            _, dropped = self._kept.popitem(last=False)
            self._total -= len(dropped)
