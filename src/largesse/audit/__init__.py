"""The audit log: who did what to what, kept in the transaction of the act and never changed.

`acting` says who acts and keeps what they do: `Acting.record`, which takes one line wherever something is done. `acts` lists what is kept.
`listing` reads it for people. What an order is and who placed it stands in `orders`; what a recipient does is no act of the log.
"""

from largesse.audit.acting import INSTALLATION, Acting, Who, by_command, by_key, by_person, by_worker
from largesse.audit.acts import ACTS
from largesse.audit.listing import AuditEvent, list_events, newest_events

__all__ = [
    "ACTS",
    "INSTALLATION",
    "Acting",
    "AuditEvent",
    "Who",
    "by_command",
    "by_key",
    "by_person",
    "by_worker",
    "list_events",
    "newest_events",
]
