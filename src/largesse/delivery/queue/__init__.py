"""The outbox: what webhooks and mail share. Leases, schedules, the bell that wakes workers, and metrics."""

from largesse.delivery.queue.leases import Leases
from largesse.delivery.queue.leasing import LEASE_S, Lease, Queue, StillHeldError, Terms
from largesse.delivery.queue.loop import Loop
from largesse.delivery.queue.planning import plan_by_index
from largesse.delivery.queue.recorder import Recorder
from largesse.delivery.queue.schedule import Schedule
from largesse.delivery.queue.waking import Bell, Waker, listen, ring

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
