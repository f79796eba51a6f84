"""An optional limit on requests a minute and key, kept by each serving process for itself."""

from __future__ import annotations

import math
import time

from largesse.errors import TooManyRequests

_REMEMBERED_KEYS = 100_000
_WINDOW_S = 60.0


class RateLimit:
    """A bucket for each key that holds `per_minute` requests and refills steadily."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._buckets: dict[int, tuple[float, float]] = {}  # key id to requests left and when that was

    def count(self, key_id: int) -> None:
        """Takes one request off the key's bucket. Raises TooManyRequests when it is empty."""
        now = time.monotonic()
        left, at = self._buckets.get(key_id, (float(self._per_minute), now))
        left = min(self._per_minute, left + (now - at) * self._per_minute / _WINDOW_S)
        if left < 1:
            wait_s = math.ceil((1 - left) * _WINDOW_S / self._per_minute)
            raise TooManyRequests(
                f"This key may send {self._per_minute} requests a minute.",
                headers={"Retry-After": str(wait_s)},
            )
        if len(self._buckets) >= _REMEMBERED_KEYS:
            self._buckets.clear()
        self._buckets[key_id] = (left - 1, now)
