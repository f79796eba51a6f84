"""Maintenance: deletes old rows in small batches, and measures waiting rows. The package of a table registers them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from largesse.db.fragments import Fragment, compose, declared, identifier
from largesse.db.pool import DATABASE_AWAY, Connection
from largesse.db.shard_groups import Customers, list_shard_groups
from largesse.db.sharding import DISTRIBUTED, arguments
from largesse.jobs import metrics

_AT_ONCE = 5_000
LONG_AGO = Fragment("(SELECT clock_now()) - $1 * interval '1 day'")
_DAYS_AGO = compose("SELECT {long_ago}", long_ago=LONG_AGO)
_COUNTED = 10_000  # a full count would read the whole backlog, every few seconds


@dataclass(frozen=True, slots=True)
class Old:
    """Old rows of a table: their `age`, and `also` if given, is older than `days`, and they match the condition `done`."""

    table: str
    age: str
    days: int
    done: str = "true"
    also: str | None = None

    def statement(self, shard_group: Customers = None) -> Fragment:
        """Returns the statement that deletes up to $2 rows older than $1 days, of shard group $3 if one is given."""
        # On a node, `clock_now()` must not be part of a sum.
        long_ago = LONG_AGO if shard_group is None else Fragment("$1::timestamptz")
        old = compose(
            "{age} < {long_ago} AND {done}", age=identifier(self.age), long_ago=long_ago, done=declared(self.done)
        )
        if self.also is not None:
            old = compose("{old} AND {also} < {long_ago}", old=old, also=identifier(self.also), long_ago=long_ago)
        table = identifier(self.table)
        if shard_group is None:
            return compose(
                "DELETE FROM {table} WHERE ctid = ANY(ARRAY(SELECT ctid FROM {table} WHERE {old} LIMIT $2))",
                table=table,
                old=old,
            )
        return compose(
            """
            DELETE FROM {table} WHERE (customer_id, id) IN (
                SELECT customer_id, id FROM {table} WHERE {old} AND customer_id = ANY($3::int[]) LIMIT $2)
            AND customer_id = ANY($3::int[])
            """,
            table=table,
            old=old,
        )


async def prune(connection: Connection, all_old: Iterable[Old]) -> bool:
    """Deletes a batch of old rows from each table. Returns True if there may be more. Skips nodes that are down."""
    more = False
    for old in all_old:
        for shard_group in await list_shard_groups(connection, None) if old.table in DISTRIBUTED else [None]:
            age: object = old.days
            try:
                if shard_group is not None:
                    age = await connection.fetchval(_DAYS_AGO, old.days)
                done = await connection.execute(old.statement(shard_group), age, _AT_ONCE, *arguments(shard_group))
            except DATABASE_AWAY:
                if shard_group is None or connection.is_closed():
                    raise
                continue
            removed = int(done.split()[-1])
            metrics.PRUNED.labels(old.table).inc(removed)
            more = more or removed == _AT_ONCE
    return more


@dataclass(frozen=True, slots=True)
class Waiting:
    """The rows of a table that wait. Only they are in `index`, which is sorted by `order`. The first one waits since `since`.

    `oldest` is a statement for that time, if the index does not have it.
    """

    table: str
    waits: str
    index: str
    order: str
    since: str = "due_at"
    oldest: Fragment | None = None

    @property
    def counting(self) -> Fragment:
        """The statement that counts the rows up to $1. Above that it returns the estimate of the last ANALYZE."""
        return compose(
            """
            SELECT CASE WHEN counted < $1 THEN counted ELSE greatest(counted, (
                SELECT reltuples::bigint FROM pg_class WHERE oid = '{index}'::regclass)) END
            FROM (SELECT count(*) AS counted FROM (
                SELECT 1 FROM {table} WHERE {waits} ORDER BY {order} LIMIT $1) AS first) AS bounded
            """,
            index=identifier(self.index),
            table=identifier(self.table),
            waits=declared(self.waits),
            order=declared(self.order),
        )

    @property
    def ageing(self) -> Fragment:
        """The statement that returns for how many seconds the first row has waited; null if none waits."""
        oldest = self.oldest or compose(
            "SELECT {since} FROM {table} WHERE {waits} ORDER BY {order} LIMIT 1",
            since=identifier(self.since),
            table=identifier(self.table),
            waits=declared(self.waits),
            order=declared(self.order),
        )
        return compose("SELECT extract(epoch FROM clock_now() - ({oldest}))::float8", oldest=oldest)


async def measure(connection: Connection, queues: Iterable[Waiting]) -> None:
    """Sets the gauges of queues, at a cost that does not grow with them. Call it inside a transaction that plans by index."""
    for queue in queues:
        metrics.QUEUE_DEPTH.labels(queue.table).set(await count(connection, queue))
        metrics.QUEUE_AGE.labels(queue.table).set(await age_s(connection, queue))


async def count(connection: Connection, waiting: Waiting) -> int:
    """Returns how many rows wait. The number is exact below 10,000, else an estimate."""
    number: int = await connection.fetchval(waiting.counting, _COUNTED)
    return number


async def age_s(connection: Connection, waiting: Waiting) -> float:
    """Returns for how many seconds the first row has been due; 0 if none waits."""
    age: float | None = await connection.fetchval(waiting.ageing)
    return max(age or 0.0, 0.0)
