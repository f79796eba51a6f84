"""The clocks of the machine. No other module reads them.

Every stored instant, and every instant compared with one, comes from the database: `clock_now()` in SQL. So all processes use the same
time, even if the clocks of their machines differ. Tests and the demo move it in the table `clock`. The clocks of this module:

    now()        date and time that others read: the date of a letter, the time in a signature
    passed_s()   seconds within this process: time-outs, turns, allowances, durations
    running_s()  seconds that also pass while the process or the machine is stopped: leases, which end meanwhile

Code that compares times of several calls takes the clock as an argument, so that tests can pass their own.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime

Seconds = Callable[[], float]

_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", None)  # on Linux only


def now() -> datetime:
    """Returns this machine's date and time in UTC. It may be set back."""
    return datetime.now(UTC)


# Seconds since an arbitrary moment, never set back. Use differences only. It is an alias, because a wrapper would slow each request.
passed_s: Seconds = time.monotonic


def running_s() -> float:
    """Returns the same as `passed_s`, but also counts the time while the process is stopped and, if possible, while the machine sleeps."""
    return time.monotonic() if _BOOTTIME is None else time.clock_gettime(_BOOTTIME)
