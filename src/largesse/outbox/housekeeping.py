"""Housekeeping: what is old goes, in small bites, and the queues are measured."""

from __future__ import annotations

from dataclasses import dataclass

from largesse.database import Connection
from largesse.outbox import metrics

_AT_ONCE = 5_000


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


async def measure(connection: Connection) -> None:
    """Sets the gauges of the queues."""
    rows = await connection.fetch(
        """
        WITH waiting AS (
            SELECT 'events' AS queue, count(*) AS depth, min(created_at) AS due_at FROM events WHERE fanned_out_at IS NULL
            UNION ALL
            SELECT 'mail_jobs', count(*), min(due_at) FROM mail_jobs WHERE fanned_out_at IS NULL
            UNION ALL
            SELECT 'deliveries', count(*), min(due_at) FROM deliveries WHERE state = 'pending'
            UNION ALL
            SELECT 'messages', count(*), min(due_at) FROM messages WHERE state = 'pending')
        SELECT queue, depth, greatest(extract(epoch FROM clock_now() - due_at), 0)::float8 AS age_s FROM waiting
        """
    )
    for row in rows:
        metrics.QUEUE_DEPTH.labels(row["queue"]).set(row["depth"])
        metrics.QUEUE_AGE.labels(row["queue"]).set(row["age_s"] or 0.0)
    metrics.FAILING_LANES.set(await connection.fetchval("SELECT count(*) FROM webhook_lanes WHERE failing"))
