"""Makes deliveries: one for each subscription to an event. Also tells the read models about changed orders."""

from __future__ import annotations

from largesse.db.pool import Connection, commit_as_one, is_distributed
from largesse.db.shard_groups import Customers, list_shard_groups
from largesse.db.sharding import arguments
from largesse.db.statements import plan_by_index
from largesse.events.store import begin_fan_out
from largesse.webhooks import queue_store

# A subscription also gets events from up to this long before it was created: for a new subscriber, one event too many is
# better than one too few.
_LATE_SUBSCRIPTION_S = 60


async def fan_out(connection: Connection, limit: int, customers: Customers = None) -> tuple[int, int]:
    """Makes the deliveries of up to `limit` waiting events, of those customers if given. Returns the numbers of events and deliveries.

    Workers take turns. Locks the subscriptions against deletion, so that
    none gets a delivery after its pending ones were cancelled.
    """
    events = deliveries = 0
    for shard_group in await list_shard_groups(connection, customers):
        async with connection.transaction():
            await begin_fan_out(connection, shard_group)
            await plan_by_index(connection)
            if is_distributed(connection):
                made = await _fan_out_from_node(connection, limit - events, shard_group)
            else:
                row = await connection.fetchrow(queue_store.FAN_OUT, _LATE_SUBSCRIPTION_S, limit)
                assert row is not None
                made = row["events"], row["deliveries"]
        events, deliveries = events + made[0], deliveries + made[1]
    return events, deliveries


async def _fan_out_from_node(connection: Connection, limit: int, shard_group: Customers) -> tuple[int, int]:
    """Does the same if events are on nodes but deliveries are not. Reads events from the node, makes deliveries here, and marks the events there."""
    await commit_as_one(connection)
    taken = await connection.fetch(queue_store.TAKE_EVENTS.of(shard_group), limit, *arguments(shard_group))
    if not taken:
        return 0, 0
    columns = [list(column) for column in zip(*taken, strict=True)]
    row = await connection.fetchrow(queue_store.FAN_OUT_TAKEN, _LATE_SUBSCRIPTION_S, *columns)
    assert row is not None
    await connection.execute(
        queue_store.MARK_EVENTS.of(shard_group), columns[0], columns[2], row["positions"], *arguments(shard_group)
    )
    return len(taken), row["deliveries"]
