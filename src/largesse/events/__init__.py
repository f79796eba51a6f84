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
