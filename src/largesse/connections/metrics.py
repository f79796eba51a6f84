"""Metrics of connections. Requests do not update them, only connections do."""

from __future__ import annotations

from prometheus_client import Counter, Gauge

OPEN = Gauge("largesse_connections_open", "Connections of callers that are open now.")
LIMIT = Gauge("largesse_connections_limit", "How many connections this process may hold at most.")
REFUSED = Counter(
    "largesse_connections_refused", "Connections answered 503 at once, because the process held as many as it may."
)
CLOSED = Counter("largesse_connections_closed", "Connections the service closed, by reason.", ["reason"])

IDLE = CLOSED.labels("idle")
LATE = CLOSED.labels("late")
UNREAD = CLOSED.labels("unread")
MALFORMED = CLOSED.labels("malformed")
ROOM = CLOSED.labels("room")
