"""Makes deliveries of events, one for each subscription, and leases the queues of waiting deliveries to workers. Has the SQL of attempts, too.

A worker leases the queue of a subscription, not a delivery. So at most one worker at a time serves a
subscription, and the limit of attempts in flight needs no count across workers. Taking work changes one row,
however long the queue is.
"""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from largesse.base.confidential import Confidential
from largesse.db.fragments import NOTHING, Fragment, Grouped, compose, grouped, identifier
from largesse.db.pool import Connection, Row, commit_as_one, is_distributed
from largesse.db.shard_groups import Customers, list_shard_groups, read_by_shard_group
from largesse.db.sharding import arguments, within
from largesse.db.statements import plan_by_index
from largesse.events.kinds import ORDER_CREATED
from largesse.events.store import NEXT_POSITION, begin_fan_out, changed_cte, marked_events, waiting_events
from largesse.jobs.leases import Lease, Queue, Terms, held_columns

EVENTS = grouped(
    """
    SELECT events.id, events.order_id, events.body
    FROM unnest($1::int[], $2::bigint[]) AS wanted (customer_id, id) JOIN events USING (customer_id, id)
    WHERE true {within events.customer_id}
""",
    "$3",
)
LOCK_LEASED = """
    SELECT customer_id, subscription_id FROM subscription_queues
    JOIN unnest($1::int[], $2::uuid[], $3::bigint[]) AS held (held_by, held_key, held_fence)
        ON customer_id = held_by AND subscription_id = held_key AND fence = held_fence
    ORDER BY subscription_id FOR UPDATE OF subscription_queues
"""
LEAVE = """
    UPDATE subscription_queues SET leased_until = '-infinity', due_at = greatest((SELECT clock_now()), coalesce(
        (SELECT deliveries.due_at FROM deliveries
         WHERE deliveries.customer_id = subscription_queues.customer_id
           AND deliveries.subscription_id = subscription_queues.subscription_id AND state = 'pending'
         ORDER BY deliveries.due_at LIMIT 1),
        'infinity'))
    FROM unnest($1::int[], $2::uuid[]) AS held (held_by, held_key)
    WHERE customer_id = held_by AND subscription_id = held_key
"""
WAKE = """
    INSERT INTO subscription_queues (customer_id, subscription_id, due_at) VALUES ($1, $2, clock_now())
    ON CONFLICT (customer_id, subscription_id)
        DO UPDATE SET due_at = least(subscription_queues.due_at, excluded.due_at)
"""
# Wakes queues whose deliveries were brought forward. Locks them in the same order as outcomes do.
WAKE_STAGING = """
    UPDATE subscription_queues SET due_at = least(due_at, (SELECT clock_now())) WHERE (customer_id, subscription_id) IN (
        SELECT customer_id, subscription_id FROM subscription_queues
        WHERE customer_id = $1 AND due_at < 'infinity' AND subscription_id IN (
            SELECT id FROM webhook_subscriptions WHERE customer_id = $1 AND environment = 'staging')
        ORDER BY subscription_id FOR UPDATE)
"""

# Attempts and their outcomes.
LOCK_ENDING = """
    SELECT FROM webhook_subscriptions JOIN unnest($1::int[], $2::uuid[]) AS gone (customer_id, id)
        USING (customer_id, id)
    ORDER BY id FOR UPDATE OF webhook_subscriptions
"""
LOCK_QUEUES = """
    SELECT subscription_id, fence FROM subscription_queues
    JOIN unnest($1::int[], $2::uuid[]) AS held (customer_id, subscription_id) USING (customer_id, subscription_id)
    ORDER BY subscription_id FOR UPDATE OF subscription_queues
"""
INSERT_ATTEMPTS = """
    INSERT INTO delivery_attempts (customer_id, delivery_id, number, started_at, duration_ms, status, error, answer)
    SELECT customer_id, id, number, (SELECT clock_now()) - started_ago_s * interval '1 second', duration_ms, status, error, answer
    FROM unnest($1::int[], $2::bigint[], $3::smallint[], $4::float8[], $5::int[], $6::smallint[], $7::text[], $8::bytea[])
        AS new (customer_id, id, number, started_ago_s, duration_ms, status, error, answer)
    ON CONFLICT DO NOTHING
"""
WRITE_VERDICTS = """
    UPDATE deliveries SET
        attempts = attempts + 1,
        attempts_left = attempts_left - 1,
        state = new.state,
        due_at = CASE WHEN new.state = 'pending' THEN (SELECT clock_now()) + new.delay_s * interval '1 second' ELSE due_at END,
        finished_at = CASE WHEN new.state <> 'pending' THEN (SELECT clock_now()) END
    FROM unnest($1::int[], $2::bigint[], $3::text[], $4::float8[], $5::smallint[])
            AS new (customer_id, id, state, delay_s, made)
    -- If it was written before, and its COMMIT got no answer, it has one attempt more. The condition is on `finished_at`, as with
    -- one on `state` the planner might read all pending deliveries by their index.
    WHERE deliveries.customer_id = new.customer_id AND deliveries.id = new.id AND deliveries.finished_at IS NULL AND deliveries.attempts = new.made
"""
MARK_FAILING = """
    UPDATE subscription_queues SET failing = new.failing
    FROM unnest($1::int[], $2::uuid[], $3::bool[]) AS new (customer_id, id, failing)
    WHERE subscription_queues.customer_id = new.customer_id AND subscription_id = new.id
      AND subscription_queues.failing <> new.failing
"""

# Rotated secrets.
END_PREVIOUS_SECRETS = """
    UPDATE webhook_subscriptions SET previous_secret = NULL, previous_until = NULL WHERE previous_until <= (SELECT clock_now())
"""

# Answers of receivers.
# Compares escaped bytes, as answers may be in any encoding.
ERASE_ANSWERS = """
    UPDATE delivery_attempts SET answer = NULL
    WHERE answer IS NOT NULL AND position(encode(convert_to($1, 'UTF8'), 'escape') IN lower(encode(answer, 'escape'))) > 0
      AND ($2::int IS NULL OR customer_id = $2)
"""


def _due(event_columns: Fragment, joined: Fragment) -> Fragment:
    """Returns SQL for the first $3 due deliveries of each queue of customers $1 and subscriptions $2, with `event_columns` from the `joined` tables."""
    return compose(
        """
        SELECT subscription.id AS subscription_id, target_url, sealed_secret, previous_secret,
               due.id, due.event, due.created_at, due.attempts, due.attempts_left, {event_columns}
        FROM unnest($1::int[], $2::uuid[]) AS taken (customer_id, id)
        CROSS JOIN LATERAL (  -- OFFSET 0 makes the planner read them one by one, by key
            SELECT id, customer_id, target_url, sealed_secret,
                   CASE WHEN previous_until > (SELECT clock_now()) THEN previous_secret END AS previous_secret
            FROM webhook_subscriptions
            WHERE customer_id = taken.customer_id AND id = taken.id OFFSET 0) AS subscription
        CROSS JOIN LATERAL (
            SELECT * FROM deliveries
            WHERE deliveries.customer_id = subscription.customer_id
              AND deliveries.subscription_id = subscription.id
              AND state = 'pending' AND due_at <= (SELECT clock_now())
            ORDER BY due_at LIMIT $3) AS due
        {joined}
    """,
        event_columns=event_columns,
        joined=joined,
    )


JOBS = _due(
    Fragment("events.order_id, coalesce(due.sample, events.body) AS body"),
    Fragment("LEFT JOIN events ON events.customer_id = due.customer_id AND events.id = due.event_id"),
)
DUE = _due(Fragment("due.customer_id, due.event_id, due.sample"), NOTHING)
# Makes the deliveries of the events in `waiting`.
_DELIVERIES_OF_EVENTS = compose(
    """
    subscribed AS MATERIALIZED (
        -- Read once for all events of a customer, whichever index the planner uses.
        SELECT subscriptions.id AS subscription_id, customer_id, environment, named.event, created_at
        FROM (SELECT DISTINCT customer_id, environment, event FROM waiting) AS named
        JOIN webhook_subscriptions AS subscriptions USING (customer_id, environment)
        WHERE named.event = subscriptions.event OR named.event = ANY(subscriptions.events)
        ORDER BY subscriptions.id FOR KEY SHARE OF subscriptions
    ), heard AS (
        SELECT customer_id, subscription_id, waiting.id AS event_id, event
        FROM waiting JOIN subscribed USING (customer_id, environment, event)
        WHERE subscribed.created_at <= waiting.created_at + $1 * interval '1 second'
    ), made AS (
        INSERT INTO deliveries (customer_id, subscription_id, event_id, event, due_at, created_at)
        SELECT customer_id, subscription_id, event_id, event, (SELECT clock_now()), (SELECT clock_now()) FROM heard ORDER BY event_id, subscription_id
        RETURNING customer_id, subscription_id
    ), woken AS (
        INSERT INTO subscription_queues (customer_id, subscription_id, due_at)
        SELECT customer_id, subscription_id, (SELECT clock_now()) FROM made
        GROUP BY customer_id, subscription_id ORDER BY subscription_id
        ON CONFLICT (customer_id, subscription_id) DO UPDATE SET due_at = least(subscription_queues.due_at, excluded.due_at)
    ), {changed}
""",
    changed=changed_cte(
        compose(
            "SELECT customer_id, order_id FROM waiting WHERE event = '{event}' AND order_id IS NOT NULL",
            event=identifier(ORDER_CREATED.name),
        )
    ),
)
FAN_OUT = compose(
    """
    WITH taken AS MATERIALIZED ({waiting_events}),
    waiting AS MATERIALIZED (
        SELECT *, {next_position} AS position FROM (SELECT * FROM taken ORDER BY id) AS ordered
    ), {deliveries_of_events}, marked AS ({marked_events})
    SELECT (SELECT count(*) FROM marked) AS events, (SELECT count(*) FROM made) AS deliveries
    """,
    waiting_events=waiting_events(Fragment("$2")),
    next_position=NEXT_POSITION,
    deliveries_of_events=_DELIVERIES_OF_EVENTS,
    marked_events=marked_events(Fragment("waiting")),
)
FAN_OUT_TAKEN = compose(
    """
    WITH waiting AS (
        SELECT * FROM unnest($2::bigint[], $3::int[], $4::int[], $5::text[], $6::text[], $7::timestamptz[])
            AS waiting (id, order_id, customer_id, environment, event, created_at)), {deliveries_of_events}
    SELECT (SELECT count(*) FROM made) AS deliveries,
           ARRAY(SELECT {next_position} FROM generate_series(1, cardinality($2::bigint[]))) AS positions
    """,
    next_position=NEXT_POSITION,
    deliveries_of_events=_DELIVERIES_OF_EVENTS,
)

# If events are on nodes, separate statements take and mark them.
TAKE_EVENTS = Grouped(waiting_events(Fragment("$1")), waiting_events(Fragment("$1"), within("customer_id", "$2", ())))
_ON_NODES = Fragment("unnest($1::bigint[], $2::int[], $3::bigint[]) AS waiting (id, customer_id, position)")
MARK_EVENTS = Grouped(marked_events(_ON_NODES), marked_events(_ON_NODES, within("events.customer_id", "$4", ())))
# Deliveries are sorted only within their queues, so it reads the first one of each queue.
# Only looks at the queues of each lane that have waited longest for their turn.
OLDEST = Fragment("""
    SELECT min(first.due_at)
    FROM ((SELECT customer_id, subscription_id FROM subscription_queues
           WHERE failing AND due_at < 'infinity' AND due_at <= (SELECT clock_now()) ORDER BY due_at LIMIT 1000)
          UNION ALL
          (SELECT customer_id, subscription_id FROM subscription_queues
           WHERE NOT failing AND due_at < 'infinity' AND due_at <= (SELECT clock_now()) ORDER BY due_at LIMIT 1000)) AS queues
    CROSS JOIN LATERAL (
        SELECT due_at FROM deliveries
        WHERE deliveries.customer_id = queues.customer_id AND deliveries.subscription_id = queues.subscription_id
          AND state = 'pending' ORDER BY due_at LIMIT 1) AS first
""")


# The index has only queues with pending deliveries, so `ready` must repeat its condition on `due_at`.
SUBSCRIPTION_QUEUES = Queue(
    "subscription_queues",
    "subscription_id",
    "uuid",
    ready="failing = $3 AND due_at < 'infinity' AND customer_id <> ALL($4::int[])",
    order="due_at",
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
    previous_secret: bytes | None  # encrypted, too; None unless deliveries are signed with previous ones
    jobs: list[Job]

    @property
    def subscription_id(self) -> UUID:
        """The subscription whose queue it is: the key of its lease."""
        key: UUID = self.lease.key
        return key


async def take_queues(
    connection: Connection,
    limit: int,
    jobs_each: int,
    *,
    failing: bool,
    without: Sequence[int] = (),
    terms: Terms = _TERMS,
) -> list[SubscriptionQueue]:
    """Leases up to `limit` due queues of customers other than `without`, and returns them with their first due deliveries.

    If the events of a queue are on a node that is down, the queue is taken again when its lease has expired.
    """
    taken = await SUBSCRIPTION_QUEUES.take(connection, limit, failing, without, terms=terms)
    leases = {row["subscription_id"]: Lease(row["customer_id"], row["subscription_id"], row["fence"]) for row in taken}
    jobs_each = min(jobs_each, max(_JOBS_AT_ONCE // max(len(leases), 1), _LEAST_JOBS_EACH))
    arguments = [lease.customer_id for lease in leases.values()], list(leases), jobs_each
    away: set[int] = set()
    if is_distributed(connection):
        due = await connection.fetch(DUE, *arguments)
        bodies, away = await _read_events(connection, due)
        rows = [
            (*row, *bodies.get(event_id, (None, sample)))
            for *row, customer_id, event_id, sample in due
            if customer_id not in away
        ]
    else:
        rows = [tuple(row) for row in await connection.fetch(JOBS, *arguments)]
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
            EVENTS.of(shard_group),
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
    held = await connection.fetch(LOCK_LEASED, *held_columns(leases))
    # A separate statement sees what a fan-out committed during the wait for the locks.
    await connection.execute(LEAVE, [row["customer_id"] for row in held], [row["subscription_id"] for row in held])


async def wake_queue(connection: Connection, customer_id: int, subscription_id: UUID) -> None:
    """Makes a subscription's queue due now, for a delivery that was just added."""
    await connection.execute(WAKE, customer_id, subscription_id)


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
                row = await connection.fetchrow(FAN_OUT, _LATE_SUBSCRIPTION_S, limit)
                assert row is not None
                made = row["events"], row["deliveries"]
        events, deliveries = events + made[0], deliveries + made[1]
    return events, deliveries


async def _fan_out_from_node(connection: Connection, limit: int, shard_group: Customers) -> tuple[int, int]:
    """Does the same if events are on nodes. Reads the events from a node, makes the deliveries on the coordinator, and marks the events."""
    await commit_as_one(connection)
    taken = await connection.fetch(TAKE_EVENTS.of(shard_group), limit, *arguments(shard_group))
    if not taken:
        return 0, 0
    columns = [list(column) for column in zip(*taken, strict=True)]
    row = await connection.fetchrow(FAN_OUT_TAKEN, _LATE_SUBSCRIPTION_S, *columns)
    assert row is not None
    await connection.execute(
        MARK_EVENTS.of(shard_group), columns[0], columns[2], row["positions"], *arguments(shard_group)
    )
    return len(taken), row["deliveries"]
