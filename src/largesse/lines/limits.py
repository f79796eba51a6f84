"""How often one may guess: rules as plain functions.

Five wrong PINs in a row pause a code, each time for twice as long. A network address has an allowance of wrong
answers that refills with time, which bounds what it can try over many codes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from largesse.base.throttle import Rate

FAILURES_TO_PAUSE = 5
FIRST_PAUSE = timedelta(minutes=15)
LONGEST_PAUSE = timedelta(days=1)
_DOUBLINGS = 7  # 15 minutes doubled seven times is more than a day

# Enough for the typing errors of an office behind one address, and of no use to a guesser.
ADDRESS_ALLOWANCE = 100.0
ADDRESS_REFILL = timedelta(minutes=15)  # from nothing to all of it
_ADDRESS_RATE = Rate(ADDRESS_ALLOWANCE, ADDRESS_REFILL.total_seconds())

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Failures:
    """Wrong PINs of one code since the last right one: in a row, how many pauses they led to, and until when."""

    in_a_row: int = 0
    pauses: int = 0
    paused_until: datetime = LONG_AGO

    def is_paused(self, now: datetime) -> bool:
        """Whether no PIN is looked at just now, right or wrong."""
        return now < self.paused_until

    def with_one_more(self, now: datetime) -> Failures:
        """These after another wrong PIN, which may pause the code."""
        if self.in_a_row + 1 < FAILURES_TO_PAUSE:
            return Failures(self.in_a_row + 1, self.pauses, self.paused_until)
        pause = min(FIRST_PAUSE * 2 ** min(self.pauses, _DOUBLINGS), LONGEST_PAUSE)
        return Failures(0, min(self.pauses + 1, _DOUBLINGS), now + pause)


@dataclass(frozen=True, slots=True)
class Allowance:
    """How many wrong answers an address had left at an instant."""

    left: float = ADDRESS_ALLOWANCE
    at: datetime = LONG_AGO

    def now_left(self, now: datetime) -> float:
        """How many wrong answers are left at `now`, after what has been refilled since."""
        return _ADDRESS_RATE.left_after(self.left, (now - self.at).total_seconds())

    def wait(self, now: datetime) -> timedelta:
        """How long until the next attempt is allowed; zero when it is now."""
        return timedelta(seconds=_ADDRESS_RATE.wait_s(self.now_left(now)))
