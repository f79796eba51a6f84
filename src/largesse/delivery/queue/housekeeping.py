"""Housekeeping: what is old goes, in small bites, and the queues are measured."""

from __future__ import annotations

from dataclasses import dataclass

from largesse.database import Connection
from largesse.delivery.queue import metrics
from largesse.delivery.queue.planning import plan_by_index

_AT_ONCE = 5_000
_COUNTED = 10_000  # a full count would read the whole backlog, every few seconds


@dataclass(frozen=True, slots=True)
class _Old:
    """Rows of a table that may go: those whose `age` is past `days` and that fulfil `done`."""

    table: str
    age: str
    days: int
    done: str = "true"

    @property
    def statement(self) -> str:
        return f"""
            DELETE FROM {self.table} WHERE ctid = ANY(ARRAY(
                SELECT ctid FROM {self.table}
                WHERE {self.age} < (SELECT clock_now()) - $1 * interval '1 day' AND {self.done} LIMIT $2))
        """  # noqa: S608 - the names are constants


# An event outlives its deliveries: one asked for again on its last day still has all its attempts to make.
_ALL_OLD = (
    _Old("delivery_attempts", "started_at", 30),
    _Old("deliveries", "created_at", 30, "state <> 'pending'"),
    _Old("events", "created_at", 35, "fanned_out_at < (SELECT clock_now()) - $1 * interval '1 day'"),
    _Old("captured_mail", "captured_at", 30),
)


async def prune(connection: Connection) -> bool:
    """Removes a bite of what is old from each table; True when there may be more."""
    more = False
    for old in _ALL_OLD:
        removed = int((await connection.execute(old.statement, old.days, _AT_ONCE)).split()[-1])
        metrics.PRUNED.labels(old.table).inc(removed)
        more = more or removed == _AT_ONCE
    return more


@dataclass(frozen=True, slots=True)
class Waiting:
    """The rows of a table that wait. `index` holds them alone, sorted by `order`; the first waits since `since`."""

    table: str
    waits: str
    index: str
    order: str
    since: str = "due_at"

    @property
    def counting(self) -> str:
        """The statement that counts them up to $1, and tells from there on about how many there were at the last ANALYZE."""
        return f"""
            SELECT CASE WHEN counted < $1 THEN counted ELSE greatest(counted, (
                SELECT reltuples::bigint FROM pg_class WHERE oid = '{self.index}'::regclass)) END
            FROM (SELECT count(*) AS counted FROM (
                SELECT FROM {self.table} WHERE {self.waits} ORDER BY {self.order} LIMIT $1) AS first) AS bounded
        """  # noqa: S608 - the names are constants

    @property
    def ageing(self) -> str:
        """The statement that tells for how many seconds the first has waited; null when none does."""
        return f"""
            SELECT extract(epoch FROM clock_now() - {self.since})::float8
            FROM {self.table} WHERE {self.waits} ORDER BY {self.order} LIMIT 1
        """  # noqa: S608 - the names are constants


_EVENTS = Waiting("events", "fanned_out_at IS NULL", "events_waiting", "id", since="created_at")
_MAIL_JOBS = Waiting("mail_jobs", "fanned_out_at IS NULL", "mail_jobs_waiting", "due_at")
_MESSAGES = Waiting("messages", "state = 'pending'", "messages_pending", "rank_at")
_DELIVERIES = Waiting("deliveries", "state = 'pending'", "deliveries_pending", "subscription_id, due_at")
_FAILING = Waiting("webhook_lanes", "failing", "webhook_lanes_failing", "subscription_id")

# Of each room, those that have waited longest for their turn.
_LANES_LOOKED_AT = 1_000
_DUE_LANES = f"""
    SELECT subscription_id FROM webhook_lanes
    WHERE {{room}} AND due_at < 'infinity' AND due_at <= (SELECT clock_now()) ORDER BY due_at LIMIT {_LANES_LOOKED_AT}
"""  # noqa: S608 - the names are constants

# Deliveries are sorted within their lanes alone, so the oldest of all is among the first of each.
_DELIVERIES_AGEING = f"""
    SELECT extract(epoch FROM clock_now() - min(first.due_at))::float8
    FROM (({_DUE_LANES.format(room="failing")}) UNION ALL ({_DUE_LANES.format(room="NOT failing")})) AS lanes
    CROSS JOIN LATERAL (
        SELECT due_at FROM deliveries
        WHERE deliveries.subscription_id = lanes.subscription_id AND state = 'pending' ORDER BY due_at LIMIT 1) AS first
"""  # noqa: S608 - the names are constants

_QUEUES = (
    (_EVENTS, _EVENTS.ageing),
    (_MAIL_JOBS, _MAIL_JOBS.ageing),
    (_MESSAGES, _MESSAGES.ageing),
    (_DELIVERIES, _DELIVERIES_AGEING),
)


async def measure(connection: Connection) -> None:
    """Sets the gauges of the queues. What it costs does not grow with them."""
    async with connection.transaction():
        await plan_by_index(connection)
        for queue, ageing in _QUEUES:
            metrics.QUEUE_DEPTH.labels(queue.table).set(await count(connection, queue))
            age_s = await connection.fetchval(ageing)
            metrics.QUEUE_AGE.labels(queue.table).set(max(age_s or 0.0, 0.0))
        metrics.FAILING_LANES.set(await count(connection, _FAILING))


async def count(connection: Connection, waiting: Waiting) -> int:
    """How many rows wait: exactly, as long as they are fewer than 10,000; else about."""
    number: int = await connection.fetchval(waiting.counting, _COUNTED)
    return number
