"""Makes deliveries of events, one for each subscription, and leases the queues of waiting deliveries to workers.

A worker leases the queue of a subscription, not a delivery. So at most one worker at a time serves a
subscription, and the limit of attempts in flight needs no count across workers. Taking work changes one row,
however long the queue is.
"""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from largesse.base.confidential import Confidential
from largesse.db.pool import Connection, Row, commit_as_one, is_distributed
from largesse.db.shard_groups import Customers, list_shard_groups, read_by_shard_group
from largesse.db.sharding import arguments
from largesse.db.statements import plan_by_index
from largesse.events.store import begin_fan_out
from largesse.jobs.leases import Lease, Queue, Terms, held_columns
from largesse.webhooks import queue_store

# The index has only queues with pending deliveries, so `ready` must repeat its condition on `due_at`.
SUBSCRIPTION_QUEUES = Queue(
    "subscription_queues", "subscription_id", "uuid", ready="failing = $3 AND due_at < 'infinity'", order="due_at"
)

_TERMS = Terms()

# Jobs that are read at once, with their bodies, for all leased queues together.
_JOBS_AT_ONCE = 2_048
_LEAST_JOBS_EACH = 16


class Job(Confidential, frozen=True):
    """A delivery to attempt now."""

    id: int
    event: str
    order_id: int | None  # None for a sample
    body: bytes
    created_at: datetime
    attempts: int  # attempts made so far
    attempts_left: int


class SubscriptionQueue(Confidential, frozen=True):
    """A leased queue with the deliveries that are due in it."""

    lease: Lease
    failing: bool
    customer_id: int
    target_url: str
    sealed_secret: bytes
    previous_secret: bytes | None  # encrypted, too; None unless deliveries are signed with both
    jobs: list[Job]

    @property
    def subscription_id(self) -> UUID:
        """The subscription whose queue it is: the key of its lease."""
        key: UUID = self.lease.key
        return key


async def take_queues(
    connection: Connection, limit: int, jobs_each: int, *, failing: bool, terms: Terms = _TERMS
) -> list[SubscriptionQueue]:
    """Leases up to `limit` due queues, and returns them with their first due deliveries.

    If the events of a queue are on a node that is down, the queue is taken again when its lease has expired.
    """
    taken = await SUBSCRIPTION_QUEUES.take(connection, limit, failing, terms=terms)
    leases = {row["subscription_id"]: Lease(row["customer_id"], row["subscription_id"], row["fence"]) for row in taken}
    jobs_each = min(jobs_each, max(_JOBS_AT_ONCE // max(len(leases), 1), _LEAST_JOBS_EACH))
    arguments = [lease.customer_id for lease in leases.values()], list(leases), jobs_each
    away: set[int] = set()
    if is_distributed(connection):
        due = await connection.fetch(queue_store.DUE, *arguments)
        bodies, away = await _read_events(connection, due)
        rows = [
            (*row, *bodies.get(event_id, (None, sample)))
            for *row, customer_id, event_id, sample in due
            if customer_id not in away
        ]
    else:
        rows = [tuple(row) for row in await connection.fetch(queue_store.JOBS, *arguments)]
    queues: dict[UUID, SubscriptionQueue] = {}
    for subscription_id, target_url, secret, previous, id_, event, *tries, order_id, body in rows:
        if subscription_id not in queues:
            lease = leases[subscription_id]
            queues[subscription_id] = SubscriptionQueue(
                lease, failing, lease.customer_id, target_url, secret, previous, []
            )
        queues[subscription_id].jobs.append(Job(id_, event, order_id, body, *tries))
    left = [lease for key, lease in leases.items() if key not in queues and lease.customer_id not in away]
    await leave_queues(connection, left)
    return list(queues.values())


async def _read_events(connection: Connection, due: Sequence[Row]) -> tuple[dict[int, tuple[int, bytes]], set[int]]:
    """Returns the order and body of each event to deliver, and the customers whose node is down."""
    of_events = [row for row in due if row["event_id"] is not None]

    async def read(shard_group: Customers) -> list[Row]:
        return await connection.fetch(
            queue_store.EVENTS.of(shard_group),
            [row["customer_id"] for row in of_events],
            [row["event_id"] for row in of_events],
            *arguments(shard_group),
        )

    rows, away = await read_by_shard_group(connection, [row["customer_id"] for row in of_events], read)
    return {row["id"]: (row["order_id"], row["body"]) for row in rows}, away


async def leave_queues(connection: Connection, leases: Sequence[Lease]) -> None:
    """Releases queues. Each is due again when its next pending delivery is due.

    If that is already due, the queue goes behind the queues that wait for their turn.
    """
    if not leases:
        return
    held = await connection.fetch(queue_store.LOCK_LEASED, *held_columns(leases))
    # A separate statement sees what a fan-out committed during the wait for the locks.
    await connection.execute(
        queue_store.LEAVE, [row["customer_id"] for row in held], [row["subscription_id"] for row in held]
    )


async def wake_queue(connection: Connection, customer_id: int, subscription_id: UUID) -> None:
    """Makes a subscription's queue due now, for a delivery that was just added."""
    await connection.execute(queue_store.WAKE, customer_id, subscription_id)


# A subscription also gets events from up to this long before it was created: one event too many is better than one too few.
_LATE_SUBSCRIPTION_S = 60


async def fan_out(connection: Connection, limit: int, customers: Customers = None) -> tuple[int, int]:
    """Makes the deliveries of up to `limit` waiting events, of those customers if given. Returns the numbers of events and deliveries.

    Workers take turns. Locks the subscriptions against deletion, so that none gets a delivery after its pending ones were cancelled.
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
    """Does the same if events are on nodes. Reads the events from a node, makes the deliveries on the coordinator, and marks the events."""
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
