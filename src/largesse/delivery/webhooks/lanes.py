"""Deliveries in the database: made from events, taken by lane, written back in batches.

What a worker leases is a subscription's lane, not a delivery: so at most one worker at a time serves a
subscription, the limit of attempts in flight needs no counting across workers, and taking work costs one row
however long the queue behind it is.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from largesse.database import Connection
from largesse.delivery.queue import Lease, Queue, Terms, plan_by_index
from largesse.delivery.webhooks.outcomes import AttemptResult, Verdict
from largesse.events import marked_cte, waiting_cte

# The index of lanes holds those with something pending alone, and serves a statement that says so.
LANES = Queue(
    "webhook_lanes", "subscription_id", "uuid", ready="failing = $3 AND due_at < 'infinity'", order="due_at"
)

_TERMS = Terms()

# An event waits for its subscribers this long after the fact: clocks differ, and a late subscriber is better served
# with one event too many than one too few.
_LATE_SUBSCRIPTION_S = 60

# Jobs read at once with their bodies, shared by the lanes.
_JOBS_AT_ONCE = 2_048
_LEAST_JOBS_EACH = 16


@dataclass(frozen=True, slots=True, repr=False)
class Job:
    """A delivery to attempt now."""

    id: int
    event: str
    order_id: int | None  # None: a sample
    body: bytes
    created_at: datetime
    attempts: int  # made so far
    attempts_left: int


@dataclass(frozen=True, slots=True, repr=False)
class Lane:
    """A leased lane with the deliveries that are due in it."""

    lease: Lease
    failing: bool
    customer_id: int
    target_url: str
    sealed_secret: bytes
    jobs: list[Job]

    @property
    def subscription_id(self) -> UUID:
        key: UUID = self.lease.key
        return key


@dataclass(frozen=True, slots=True)
class Attempted:
    """An attempt and what becomes of its delivery."""

    lane: Lane
    job: Job
    ended: float  # time.monotonic
    result: AttemptResult
    verdict: Verdict


async def fan_out(connection: Connection, limit: int) -> tuple[int, int]:
    """Makes the deliveries of up to `limit` waiting events; returns how many of each.

    Several workers may do so at once: each takes other events. The subscriptions are locked against deletion, so
    that none gets a delivery after its pending ones were cancelled.
    """
    async with connection.transaction():
        await plan_by_index(connection)
        row = await connection.fetchrow(
            f"""
            WITH {waiting_cte("$1")}, heard AS (
                SELECT subscriptions.id AS subscription_id, waiting.id AS event_id, waiting.event
                FROM waiting JOIN webhook_subscriptions AS subscriptions USING (customer_id, environment, event)
                WHERE subscriptions.created_at <= waiting.created_at + $2 * interval '1 second'
                ORDER BY subscriptions.id FOR KEY SHARE OF subscriptions
            ), made AS (
                INSERT INTO deliveries (subscription_id, event_id, event, due_at, created_at)
                SELECT subscription_id, event_id, event, clock_now, clock_now
                FROM heard, (SELECT clock_now()) AS clock (clock_now) ORDER BY event_id, subscription_id
                RETURNING subscription_id
            ), woken AS (
                INSERT INTO webhook_lanes (subscription_id, due_at)
                SELECT subscription_id, (SELECT clock_now()) FROM made GROUP BY subscription_id ORDER BY subscription_id
                ON CONFLICT (subscription_id) DO UPDATE SET due_at = least(webhook_lanes.due_at, excluded.due_at)
            ), {marked_cte()}
            SELECT (SELECT count(*) FROM marked) AS events, (SELECT count(*) FROM made) AS deliveries
            """,  # noqa: S608 - made of constants
            limit,
            _LATE_SUBSCRIPTION_S,
        )
    assert row is not None
    return row["events"], row["deliveries"]


async def take_lanes(
    connection: Connection, limit: int, jobs_each: int, *, failing: bool, terms: Terms = _TERMS
) -> list[Lane]:
    """Leases up to `limit` lanes that are due, each with its first due deliveries."""
    taken = await LANES.take(connection, limit, failing, terms=terms)
    leases = {row["subscription_id"]: Lease(row["subscription_id"], row["fence"]) for row in taken}
    jobs_each = min(jobs_each, max(_JOBS_AT_ONCE // max(len(leases), 1), _LEAST_JOBS_EACH))
    rows = await connection.fetch(
        """
        SELECT webhook_subscriptions.id AS subscription_id, webhook_subscriptions.customer_id, target_url, sealed_secret, due.id, due.event, events.order_id,
               coalesce(due.sample, events.body) AS body, due.created_at, due.attempts, due.attempts_left
        FROM webhook_subscriptions
        CROSS JOIN LATERAL (
            SELECT * FROM deliveries
            WHERE deliveries.subscription_id = webhook_subscriptions.id
              AND state = 'pending' AND due_at <= (SELECT clock_now())
            ORDER BY due_at LIMIT $2) AS due
        LEFT JOIN events ON events.id = due.event_id
        WHERE webhook_subscriptions.id = ANY($1::uuid[])
        """,
        list(leases),
        jobs_each,
    )
    lanes: dict[UUID, Lane] = {}
    for row in rows:
        subscription_id = row["subscription_id"]
        if subscription_id not in lanes:
            lanes[subscription_id] = Lane(
                leases[subscription_id],
                failing,
                row["customer_id"],
                row["target_url"],
                row["sealed_secret"],
                [],
            )
        lanes[subscription_id].jobs.append(
            Job(
                row["id"],
                row["event"],
                row["order_id"],
                row["body"],
                row["created_at"],
                row["attempts"],
                row["attempts_left"],
            )
        )
    await _leave_lanes(connection, [lease for key, lease in leases.items() if key not in lanes])
    return list(lanes.values())


async def record(
    connection: Connection, attempted: Sequence[Attempted], leaving: Sequence[Lease] = ()
) -> None:
    """Writes attempts and what becomes of their deliveries, where the lease still holds; then gives `leaving` back.

    The lanes are locked first, so that nobody takes one while its outcomes are being written: all of them at once and
    in the order of a fan-out, which would otherwise wait in a circle with this. Before them come the subscriptions
    that end, since deletions and fan-outs lock in that order too.
    """
    gone = [one.lane.lease.key for one in attempted if one.verdict.outcome == "gone"]
    if gone:
        await connection.execute(
            "SELECT FROM webhook_subscriptions WHERE id = ANY($1::uuid[]) ORDER BY id FOR UPDATE", gone
        )
    held = await connection.fetch(
        """
        SELECT subscription_id, fence FROM webhook_lanes
        WHERE subscription_id = ANY($1::uuid[]) ORDER BY subscription_id FOR UPDATE
        """,
        list({one.lane.lease.key for one in attempted} | {lease.key for lease in leaving}),
    )
    fences = {row["subscription_id"]: row["fence"] for row in held}
    ours = [one for one in attempted if fences.get(one.lane.lease.key) == one.lane.lease.fence]
    if ours:
        await _write_attempts(connection, ours)
        await _write_verdicts(connection, ours)
        await _mark_failing(connection, ours)
    for one in ours:
        if one.verdict.outcome == "gone":
            await end_subscription(connection, one.lane.lease.key)
    await _leave_lanes(connection, leaving)


async def _leave_lanes(connection: Connection, leases: Sequence[Lease]) -> None:
    """Gives lanes back, each due again when the next of its pending deliveries is.

    One whose next is due already goes to the back of the line: those that wait for their turn come first.
    """
    if not leases:
        return
    held = await connection.fetch(
        """
        SELECT subscription_id FROM webhook_lanes
        JOIN unnest($1::uuid[], $2::bigint[]) AS held (held_key, held_fence)
            ON subscription_id = held_key AND fence = held_fence
        ORDER BY subscription_id FOR UPDATE OF webhook_lanes
        """,
        [lease.key for lease in leases],
        [lease.fence for lease in leases],
    )
    # A statement of its own: it must see what a fan-out committed while the locks were waited for.
    await connection.execute(
        """
        UPDATE webhook_lanes SET leased_until = '-infinity', due_at = greatest((SELECT clock_now()), coalesce(
            (SELECT deliveries.due_at FROM deliveries
             WHERE deliveries.subscription_id = webhook_lanes.subscription_id AND state = 'pending'
             ORDER BY deliveries.due_at LIMIT 1),
            'infinity'))
        WHERE subscription_id = ANY($1::uuid[])
        """,
        [row["subscription_id"] for row in held],
    )


async def end_subscription(connection: Connection, subscription_id: UUID) -> None:
    """Deletes a subscription and cancels what is pending for it; call it inside a transaction.

    In this order: the deletion waits for fan-outs under way, and the cancelling then sees what they made.
    """
    await connection.execute("DELETE FROM webhook_subscriptions WHERE id = $1", subscription_id)
    await connection.execute(
        """
        UPDATE deliveries SET state = 'cancelled', finished_at = clock_now()
        WHERE subscription_id = $1 AND state = 'pending'
        """,
        subscription_id,
    )


async def _write_attempts(connection: Connection, attempted: Sequence[Attempted]) -> None:
    now = time.monotonic()
    await connection.execute(
        """
        INSERT INTO delivery_attempts (delivery_id, number, started_at, duration_ms, status, error, answer)
        SELECT id, number, now - started_ago_s * interval '1 second', duration_ms, status, error, answer
        FROM unnest($1::bigint[], $2::smallint[], $3::float8[], $4::int[], $5::smallint[], $6::text[], $7::bytea[])
            AS new (id, number, started_ago_s, duration_ms, status, error, answer),
            (SELECT clock_now()) AS clock (now)
        ON CONFLICT DO NOTHING
        """,
        [one.job.id for one in attempted],
        [one.job.attempts + 1 for one in attempted],
        [now - one.ended + one.result.duration_s for one in attempted],
        [round(one.result.duration_s * 1000) for one in attempted],
        [one.result.status for one in attempted],
        [one.result.error for one in attempted],
        [one.result.body for one in attempted],
    )


async def _write_verdicts(connection: Connection, attempted: Sequence[Attempted]) -> None:
    states = {"retry": "pending", "gone": "cancelled"}
    await connection.execute(
        """
        UPDATE deliveries SET
            attempts = attempts + 1,
            attempts_left = attempts_left - 1,
            state = new.state,
            due_at = CASE WHEN new.state = 'pending' THEN now + new.delay_s * interval '1 second' ELSE due_at END,
            finished_at = CASE WHEN new.state <> 'pending' THEN now END
        FROM unnest($1::bigint[], $2::text[], $3::float8[], $4::smallint[]) AS new (id, state, delay_s, made),
            (SELECT clock_now()) AS clock (now)
        -- One written before, whose COMMIT got no answer, has one attempt more. Those pending are told by what has not finished:
        -- asked for by state, all that are pending might be read, by the index of those.
        WHERE deliveries.id = new.id AND deliveries.finished_at IS NULL AND deliveries.attempts = new.made
        """,
        [one.job.id for one in attempted],
        [states.get(one.verdict.outcome, one.verdict.outcome) for one in attempted],
        [one.verdict.delay_s for one in attempted],
        [one.job.attempts for one in attempted],
    )


async def _mark_failing(connection: Connection, attempted: Sequence[Attempted]) -> None:
    latest = {one.lane.lease.key: one.verdict.failed for one in attempted}
    if all(one.verdict.failed == one.lane.failing for one in attempted):
        return
    await connection.execute(
        """
        UPDATE webhook_lanes SET failing = new.failing FROM unnest($1::uuid[], $2::bool[]) AS new (id, failing)
        WHERE subscription_id = new.id AND webhook_lanes.failing <> new.failing
        """,
        list(latest),
        list(latest.values()),
    )
