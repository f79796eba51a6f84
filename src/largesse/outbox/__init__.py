"""The outbox: what webhooks and mail share. Leases, schedules, the bell that wakes workers, and metrics."""

from largesse.outbox.leases import Leases
from largesse.outbox.leasing import LEASE_S, Lease, Queue, StillHeldError, Terms
from largesse.outbox.loop import Loop
from largesse.outbox.planning import plan_by_index
from largesse.outbox.recorder import Recorder
from largesse.outbox.schedule import Schedule
from largesse.outbox.waking import Bell, Waker, listen, ring

__all__ = [
    "LEASE_S",
    "Bell",
    "Lease",
    "Leases",
    "Loop",
    "Queue",
    "Recorder",
    "Schedule",
    "StillHeldError",
    "Terms",
    "Waker",
    "listen",
    "plan_by_index",
    "ring",
]
