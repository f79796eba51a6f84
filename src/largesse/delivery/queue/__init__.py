"""What webhooks and mail share: leases, schedules, the notifier that wakes workers, and metrics.

leasing.py      a lease of a row, and the statements that take, renew and give it back
leases.py       the leases that a process holds, and until when they are certain
loop.py         a worker's loop: again and again, whatever happens
notifier.py     NOTIFY and LISTEN, with polling behind them
recorder.py     outcomes written in batches, until they are written
schedule.py     when to try again
maintenance.py  what is old goes, what waits is measured; metrics.py the figures
"""

from largesse.delivery.queue.leases import Leases
from largesse.delivery.queue.leasing import LEASE_S, Lease, Queue, StillHeldError, Terms, held_columns
from largesse.delivery.queue.loop import Loop
from largesse.delivery.queue.notifier import Notifier, Waker, listen, notify
from largesse.delivery.queue.recorder import Recorder
from largesse.delivery.queue.schedule import Schedule

__all__ = [
    "LEASE_S",
    "Lease",
    "Leases",
    "Loop",
    "Notifier",
    "Queue",
    "Recorder",
    "Schedule",
    "StillHeldError",
    "Terms",
    "Waker",
    "held_columns",
    "listen",
    "notify",
]
