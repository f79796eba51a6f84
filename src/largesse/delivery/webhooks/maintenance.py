"""What is old, and what waits, in the tables of webhooks."""

from __future__ import annotations

from largesse.delivery.queue.maintenance import Old, Waiting

OLD = (
    Old("delivery_attempts", "started_at", 30),
    Old("deliveries", "created_at", 30, "state <> 'pending'"),
)

# Of each room, those that have waited longest for their turn.
_QUEUES_LOOKED_AT = 1_000
_DUE_QUEUES = f"""
    SELECT customer_id, subscription_id FROM subscription_queues
    WHERE {{room}} AND due_at < 'infinity' AND due_at <= (SELECT clock_now()) ORDER BY due_at LIMIT {_QUEUES_LOOKED_AT}
"""  # noqa: S608 - the names are constants

# Deliveries are sorted within their queues alone, so the oldest of all is among the first of each.
_OLDEST = f"""
    SELECT min(first.due_at)
    FROM (({_DUE_QUEUES.format(room="failing")}) UNION ALL ({_DUE_QUEUES.format(room="NOT failing")})) AS queues
    CROSS JOIN LATERAL (
        SELECT due_at FROM deliveries
        WHERE deliveries.customer_id = queues.customer_id AND deliveries.subscription_id = queues.subscription_id
          AND state = 'pending' ORDER BY due_at LIMIT 1) AS first
"""  # noqa: S608 - the names are constants

DELIVERIES = Waiting(
    "deliveries",
    "state = 'pending'",
    "deliveries_pending",
    "customer_id, subscription_id, due_at",
    oldest=_OLDEST,
)
FAILING = Waiting("subscription_queues", "failing", "subscription_queues_failing", "subscription_id")
