"""Making deliveries: one for each subscription that hears of an event. The read models hear of it too."""

from __future__ import annotations

from largesse.database import Connection
from largesse.delivery.queue import plan_by_index
from largesse.events import changed_cte, marked_cte, waiting_cte

# An event waits for its subscribers this long after the fact: clocks differ, and a late subscriber is better served
# with one event too many than one too few.
_LATE_SUBSCRIPTION_S = 60


async def fan_out(connection: Connection, limit: int) -> tuple[int, int]:
    """Makes the deliveries of up to `limit` waiting events; returns how many of each.

    Several workers may do so at once: each takes other events. The subscriptions are locked against deletion, so
    that none gets a delivery after its pending ones were cancelled.
    """
    async with connection.transaction():
        await plan_by_index(connection)
        row = await connection.fetchrow(
            f"""
            WITH {waiting_cte("$1")}, subscribed AS MATERIALIZED (
                -- Once for all events of a customer, whichever of its indexes the planner takes.
                SELECT subscriptions.id AS subscription_id, customer_id, environment, event, created_at
                FROM (SELECT DISTINCT customer_id, environment, event FROM waiting) AS told
                JOIN webhook_subscriptions AS subscriptions USING (customer_id, environment, event)
                ORDER BY subscriptions.id FOR KEY SHARE OF subscriptions
            ), heard AS (
                SELECT customer_id, subscription_id, waiting.id AS event_id, event
                FROM waiting JOIN subscribed USING (customer_id, environment, event)
                WHERE subscribed.created_at <= waiting.created_at + $2 * interval '1 second'
            ), made AS (
                INSERT INTO deliveries (customer_id, subscription_id, event_id, event, due_at, created_at)
                SELECT customer_id, subscription_id, event_id, event, clock_now, clock_now
                FROM heard, (SELECT clock_now()) AS clock (clock_now) ORDER BY event_id, subscription_id
                RETURNING customer_id, subscription_id
            ), woken AS (
                INSERT INTO subscription_queues (customer_id, subscription_id, due_at)
                SELECT customer_id, subscription_id, (SELECT clock_now()) FROM made
                GROUP BY customer_id, subscription_id ORDER BY subscription_id
                ON CONFLICT (customer_id, subscription_id) DO UPDATE SET due_at = least(subscription_queues.due_at, excluded.due_at)
            ), {marked_cte()}, {changed_cte("SELECT customer_id, order_id FROM waiting")}
            SELECT (SELECT count(*) FROM marked) AS events, (SELECT count(*) FROM made) AS deliveries
            """,  # noqa: S608 - made of constants
            limit,
            _LATE_SUBSCRIPTION_S,
        )
    assert row is not None
    return row["events"], row["deliveries"]
