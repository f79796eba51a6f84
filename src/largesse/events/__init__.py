"""Events: what the service tells subscribers of, and the table in which each waits for the worker.

    kind.py           what makes a type of event: name, payload, sample
    order_created.py  a file for each type, with the shape of its payload
    registry.py       all types; whatever speaks of them all reads `EVENTS`: which may be subscribed to, samples,
                      the document and the reference page, `verify`
    outbox.py         the table `events`, which nobody else writes: recording, fanning out, what is old

A type more is a file, its line in the registry, and the place that records it; CONTRIBUTING.md goes through it.
"""

from largesse.events.kind import EventType, Sampled
from largesse.events.order_created import ORDER_CREATED, OrderRecord
from largesse.events.outbox import OLD, WAITING, marked_cte, record_event, recorded_cte, waiting_cte
from largesse.events.registry import EVENTS

__all__ = [
    "EVENTS",
    "OLD",
    "ORDER_CREATED",
    "WAITING",
    "EventType",
    "OrderRecord",
    "Sampled",
    "marked_cte",
    "record_event",
    "recorded_cte",
    "waiting_cte",
]
