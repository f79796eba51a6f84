"""Making deliveries: one for each subscription that hears of an event. The read models hear of it too."""

from __future__ import annotations

from largesse.db.pool import Connection, commit_as_one, is_distributed
from largesse.db.shard_groups import Customers, list_shard_groups
from largesse.db.sharding import arguments, within
from largesse.db.statements import plan_by_index
from largesse.events.order_changes import changed_cte
from largesse.events.store import marked_events, waiting_events

# An event waits for its subscribers this long after the fact: clocks differ, and a late subscriber is better served
# with one event too many than one too few.
_LATE_SUBSCRIPTION_S = 60


async def fan_out(connection: Connection, limit: int, customers: Customers = None) -> tuple[int, int]:
    """Makes the deliveries of up to `limit` waiting events of those customers, else of all; returns how many of each.

    Several workers may do so at once: each takes other events. The subscriptions are locked against deletion, so
    that none gets a delivery after its pending ones were cancelled.
    """
    events = deliveries = 0
    for shard_group in await list_shard_groups(connection, customers):
        async with connection.transaction():
            await plan_by_index(connection)
            if is_distributed(connection):
                made = await _fan_out_from_node(connection, limit - events, shard_group)
            else:
                row = await connection.fetchrow(_FAN_OUT, _LATE_SUBSCRIPTION_S, limit)
                assert row is not None
                made = row["events"], row["deliveries"]
        events, deliveries = events + made[0], deliveries + made[1]
    return events, deliveries


async def _fan_out_from_node(connection: Connection, limit: int, shard_group: Customers) -> tuple[int, int]:
    """The same where events lie on nodes, and what follows from them does not: taken there, delivered here, and marked there."""
    await commit_as_one(connection)
    taken = await connection.fetch(
        waiting_events("$1", within("customer_id", "$2", shard_group)), limit, *arguments(shard_group)
    )
    if not taken:
        return 0, 0
    columns = [list(column) for column in zip(*taken, strict=True)]
    row = await connection.fetchrow(_TELL_OF_TAKEN, _LATE_SUBSCRIPTION_S, *columns)
    assert row is not None
    await connection.execute(
        marked_events(
            "unnest($1::bigint[], $2::int[]) AS waiting (id, customer_id)",
            within("events.customer_id", "$3", shard_group),
        ),
        columns[0],
        columns[2],
        *arguments(shard_group),
    )
    return len(taken), row["deliveries"]


# Tells of the events in `waiting`.
_TOLD = f"""
    subscribed AS MATERIALIZED (
        -- Once for all events of a customer, whichever of its indexes the planner takes.
        SELECT subscriptions.id AS subscription_id, customer_id, environment, event, created_at
        FROM (SELECT DISTINCT customer_id, environment, event FROM waiting) AS told
        JOIN webhook_subscriptions AS subscriptions USING (customer_id, environment, event)
        ORDER BY subscriptions.id FOR KEY SHARE OF subscriptions
    ), heard AS (
        SELECT customer_id, subscription_id, waiting.id AS event_id, event
        FROM waiting JOIN subscribed USING (customer_id, environment, event)
        WHERE subscribed.created_at <= waiting.created_at + $1 * interval '1 second'
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
    ), {changed_cte("SELECT customer_id, order_id FROM waiting")}
"""  # noqa: S608 - made of constants
_FAN_OUT = f"""
    WITH waiting AS ({waiting_events("$2")}), {_TOLD}, marked AS ({marked_events("waiting")})
    SELECT (SELECT count(*) FROM marked) AS events, (SELECT count(*) FROM made) AS deliveries
"""  # noqa: S608 - made of constants
_TELL_OF_TAKEN = f"""
    WITH waiting AS (
        SELECT * FROM unnest($2::bigint[], $3::int[], $4::int[], $5::text[], $6::text[], $7::timestamptz[])
            AS waiting (id, order_id, customer_id, environment, event, created_at)), {_TOLD}
    SELECT count(*) AS deliveries FROM made
"""  # noqa: S608 - made of constants
