"""What is forged on purpose, as whoever has all of the database could, but not the master key; and where `verify` must see it."""

from __future__ import annotations

from tests.verify.corruption import Corruption


def _f(check: str, ids: tuple[str, ...], sql: str, *too: str) -> Corruption:
    return Corruption(sql, check, ids, frozenset(too))


# The log of acme has the events 1 to 5.
FORGERIES = (
    _f("audit-events-are-chained", ("acme event 2",), "UPDATE audit_events SET after = '{}' WHERE id = 2"),
    _f(
        "audit-events-are-chained",
        ("acme event 3",),
        "UPDATE audit_events SET actor_name = 'eve' WHERE id = 3",
    ),
    _f(
        "audit-events-are-chained",
        ("acme event 1",),
        "UPDATE audit_events SET at = at - interval '1 microsecond' WHERE id = 1",
    ),
    _f("audit-events-are-chained", ("acme event 3",), "DELETE FROM audit_events WHERE id = 2"),
    _f(
        "audit-events-are-chained",
        ("acme event 2", "acme event 3", "acme event 4"),
        """UPDATE audit_events SET id = 9 WHERE id = 2; UPDATE audit_events SET id = 2 WHERE id = 3;
           UPDATE audit_events SET id = 3 WHERE id = 9""",
    ),
    # One made of another, with its mark.
    _f(
        "audit-events-are-chained",
        ("acme event 9",),
        """INSERT INTO audit_events (id, customer_id, at, actor, actor_name, act, subject, after, mac)
           SELECT 9, customer_id, at, actor, actor_name, act, subject, after, mac FROM audit_events WHERE id = 4""",
        "audit-log-is-whole",
    ),
    # From one customer's log to another's.
    _f(
        "audit-events-are-chained",
        ("acme event 4", "globex event 3"),
        "UPDATE audit_events SET customer_id = 2 WHERE id = 3",
        "audit-log-is-whole",
    ),
    _f("audit-log-is-whole", ("acme",), "DELETE FROM audit_events WHERE id = 5"),
    _f("audit-log-is-whole", ("acme",), "DELETE FROM audit_events WHERE id IN (4, 5)"),
    _f("audit-log-is-whole", ("acme",), "DELETE FROM audit_events"),
    _f(
        "audit-log-is-whole",
        ("acme",),
        "UPDATE audit_heads SET head = (SELECT mac FROM audit_events WHERE id = 5)",
    ),
    _f("audit-log-is-whole", ("acme",), "DELETE FROM audit_heads"),
)
