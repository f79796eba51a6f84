"""The outbox: what webhooks and mail share. Leases, schedules, the notifier that wakes workers, and metrics."""

from largesse.delivery.queue.leases import Leases
from largesse.delivery.queue.leasing import LEASE_S, Lease, Queue, StillHeldError, Terms
from largesse.delivery.queue.loop import Loop
from largesse.delivery.queue.notifier import Notifier, Waker, listen, notify
from largesse.delivery.queue.planning import plan_by_index
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
    "listen",
    "notify",
    "plan_by_index",
]
