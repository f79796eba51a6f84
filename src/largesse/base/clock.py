"""The clocks, asked nowhere else, and which of them is for what.

Every instant that is stored, or compared with one that is, comes from the database: `clock_now()` in SQL. All processes agree on it,
whatever their machines' clocks say. Tests, and the demo for its history, move it in the table `clock`. The clocks of this module are the machine's own:

    now()        date and time, for the world to read: the date of a letter, the instant in a signature, how late something was
    passed_s()   seconds for what begins and ends here: time-outs, turns, allowances, how long something took
    running_s()  seconds that also go on while the process or the machine stands still: leases, which run out meanwhile

What decides by a clock over more than one call takes it as an argument, so that tests hand in one of their own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

Seconds = Callable[[], float]

_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", None)  # Linux has it


def now() -> datetime:
    """Returns this machine's date and time in UTC. It may be set back."""
    return datetime.now(UTC)


# Seconds since some moment, never set back; only differences mean anything. It is no function of ours: requests ask it often.
passed_s: Seconds = time.monotonic


def running_s() -> float:
    """Returns the same as `passed_s`, but goes on while the process is stopped and, where possible, while the machine sleeps."""
    return time.monotonic() if _BOOTTIME is None else time.clock_gettime(_BOOTTIME)
