"""Events: what the service tells subscribers of, and the table in which each waits for the worker.

    kind.py           what makes a type of event: name, payload, sample
    order_created.py  a file for each type, with the shape of its payload
    registry.py       all types; whatever speaks of them all reads `EVENTS`: which may be subscribed to, samples,
                      the document and the reference page, `verify`
    outbox.py         the table `events`, which nobody else writes: recording, fanning out, what is old
    changes.py        the table `order_changes`: which orders the read models (largesse.reports) have yet to look at
    rewriting.py      where somebody's data has to go from an event

A type more is a file, its line in the registry, and the place that records it; CONTRIBUTING.md goes through it.
"""

from largesse.events.changes import (
    CHANGES,
    CUSTOMERS_CHANGED,
    Change,
    change_all_orders,
    changed,
    changed_cte,
    count_changes,
    read_changes,
    record_changes,
    remove_changes,
)
from largesse.events.kind import EventType, Sampled
from largesse.events.order_created import ORDER_CREATED, OrderRecord
from largesse.events.outbox import (
    CUSTOMERS_WAITING,
    NEXT_EVENT_ID,
    OLD,
    WAITING,
    EventColumns,
    insert_events,
    marked_events,
    new_events,
    record_event,
    waiting_events,
)
from largesse.events.registry import EVENTS
from largesse.events.rewriting import rewrite_event

__all__ = [
    "CHANGES",
    "CUSTOMERS_CHANGED",
    "CUSTOMERS_WAITING",
    "EVENTS",
    "NEXT_EVENT_ID",
    "OLD",
    "ORDER_CREATED",
    "WAITING",
    "Change",
    "EventColumns",
    "EventType",
    "OrderRecord",
    "Sampled",
    "change_all_orders",
    "changed",
    "changed_cte",
    "count_changes",
    "insert_events",
    "marked_events",
    "new_events",
    "read_changes",
    "record_changes",
    "record_event",
    "remove_changes",
    "rewrite_event",
    "waiting_events",
]
