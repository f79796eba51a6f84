"""When to try again: exponential backoff with a cap and jitter."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Schedule:
    """Waits `first_s`, then `factor` times as long each time, at most `cap_s`, each ± `jitter` of itself."""

    first_s: float
    factor: float
    cap_s: float
    jitter: float = 0.2

    def delay_s(
        self,
        failures: int,
        *,
        at_least_s: float = 0.0,
        draw: Callable[[float, float], float] = random.uniform,
    ) -> float:
        """Seconds to wait after the `failures`-th failure in a row, never more than the cap.

        `at_least_s` is what the other side asked for (Retry-After), honoured up to the cap.
        """
        middle_s = self.cap_s
        if failures < 64:  # a longer row would overflow, and is at the cap by far
            middle_s = min(self.first_s * self.factor ** (failures - 1), self.cap_s)
        drawn_s = draw(middle_s * (1 - self.jitter), min(middle_s * (1 + self.jitter), self.cap_s))
        return max(drawn_s, min(at_least_s, self.cap_s))
