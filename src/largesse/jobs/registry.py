"""The tasks that packages register in their `tasks.py`: periodic tasks, retention, queues to measure, and due times. Also carries them out.

`housekeeping.py` lists the packages, for the worker, the gauges and pruning. Encrypted columns register by `SealedTable`. The test lab
brings the due times of a customer in staging forward; the package's own statements decide what is due, by `clock_now()`
(docs/decisions/0066-the-test-clock.md).
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

import asyncpg
import msgspec
from prometheus_client import Gauge

from largesse.base import clock
from largesse.db.fragments import Fragment, compose, declared, each, identifier, join
from largesse.db.pool import DATABASE_AWAY, Connection, Database
from largesse.db.scope import WORKER
from largesse.db.shard_groups import Customers, ShardGroupRunner, list_shard_groups
from largesse.db.sharding import DISTRIBUTED, arguments
from largesse.encryption.chain_keys import Chains, open_chains
from largesse.encryption.vault import Vault
from largesse.jobs import metrics
from largesse.jobs.notifier import POLL_S

Result = TypeVar("Result")

_AT_ONCE = 5_000
LONG_AGO = Fragment("(SELECT clock_now()) - $1 * interval '1 day'")
_DAYS_AGO = compose("SELECT {long_ago}", long_ago=LONG_AGO)
_CLOCK = "SELECT clock_timestamp()"
_COUNTED = 10_000  # a full count would read the whole backlog, every few seconds


class Old(msgspec.Struct, frozen=True):
    """Rows to delete from a table: the times in their columns `age` and `also` are older than `days`, and they match the condition `done`."""

    table: str
    age: str
    days: int
    done: str = "true"
    also: str | None = None

    def statement(self, shard_group: Customers = None) -> Fragment:
        """Returns the statement that deletes up to $2 rows older than $1 days, of shard group $3 if one is given.

        The planner expects that a third of the rows is old. Sorting by age makes it read an index only as far as it deletes.
        """
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
                "DELETE FROM {table} WHERE ctid = ANY(ARRAY(SELECT ctid FROM {table} WHERE {old} ORDER BY {age} LIMIT $2))",
                table=table,
                old=old,
                age=identifier(self.age),
            )
        return compose(
            """
            DELETE FROM {table} WHERE (customer_id, id) IN (
                SELECT customer_id, id FROM {table} WHERE {old} AND customer_id = ANY($3::int[]) ORDER BY {age} LIMIT $2)
            AND customer_id = ANY($3::int[])
            """,
            table=table,
            old=old,
            age=identifier(self.age),
        )


class Waiting(msgspec.Struct, frozen=True):
    """The waiting rows of a table. `index` has only these rows, sorted by `order`. The column `since` says when the first one began to wait.

    `oldest` is a statement that returns that time, if the index cannot.
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


class DueTimes(msgspec.Struct, frozen=True):
    """Rows of a table that wait for a time. They match the condition `waits`. `due` names the columns with the time, the first due one first.

    `staging` is the condition for rows of the environment staging. The columns `since` hold the start of a period.
    `before` is a statement that runs first, with the customer as $1.
    """

    table: str
    due: tuple[str, ...]
    waits: str
    staging: str = "environment = 'staging'"
    since: tuple[str, ...] = ()
    before: str | None = None
    # Called first, with the customer and the advance.
    prepare: Callable[[Connection, int, timedelta], Awaitable[None]] | None = None

    @property
    def bringing_forward(self) -> Fragment:
        """The statement that brings the due times of customer $1 in staging forward by $2, to now at the earliest.

        The columns `since` move back by $2, also if they are in the past, so that periods seem to have begun earlier. Calculates in UTC, as a
        cluster refuses expressions that depend on the session's time zone.
        """
        due = each(
            "{name} = greatest(({name} AT TIME ZONE 'UTC' - $2::interval) AT TIME ZONE 'UTC', "
            "CASE WHEN {name} > (SELECT clock_now()) THEN (SELECT clock_now()) END)",
            self.due,
        )
        since = each("{name} = ({name} AT TIME ZONE 'UTC' - $2::interval) AT TIME ZONE 'UTC'", self.since)
        return compose(
            "UPDATE {table} SET {changes} WHERE {later}",
            table=identifier(self.table),
            changes=join(Fragment(", "), [one for one in (due, since) if one]),
            later=self._later,
        )

    @property
    def next(self) -> Fragment:
        """The statement that returns the first due time of customer $1 in staging; null if nothing waits."""
        return compose(
            "SELECT min({due}) FROM {table} WHERE {later}",
            due=identifier(self.due[0]),
            table=identifier(self.table),
            later=self._later,
        )

    @property
    def _later(self) -> Fragment:
        return compose(
            "customer_id = $1 AND {staging} AND {waits} AND {due} > (SELECT clock_now()) AND {due} < 'infinity'",
            staging=declared(self.staging),
            waits=declared(self.waits),
            due=identifier(self.due[0]),
        )


class WorkerContext:
    """The context of periodic tasks. `wake` makes the loops with these names look for work now. `default_expiry_days` is the setting."""

    def __init__(
        self, database: Database, vault: Vault, wake: Callable[..., None], *, default_expiry_days: int = 365
    ) -> None:
        self.database = database
        self.vault = vault
        self.wake = wake
        self.default_expiry_days = default_expiry_days
        self.shard_groups = ShardGroupRunner(database)
        # How much a step takes at once, by the step's name, after it has once taken too long.
        self.at_once: dict[str, int] = {}
        self._chains: Chains | None = None

    async def open_chains(self, connection: Connection) -> Chains:
        """Returns the chains. The first serving process of a new installation makes their keys, so this waits for them."""
        if self._chains is None or not self._chains.moves.has_keys:
            self._chains = await open_chains(connection, self.vault, keep=False)
        return self._chains

    async def in_shard_groups(
        self, waiting: str, step: Callable[[Connection, Customers], Awaitable[Result]]
    ) -> list[Result]:
        """Runs `step` in a transaction for each shard group with a customer that `waiting` finds; once if nothing is distributed."""

        async def run(customers: Customers) -> Result:
            async with self.database.transaction(WORKER) as connection:
                return await step(connection, customers)

        return await self.shard_groups.run(waiting, run)


class PeriodicTask(msgspec.Struct, frozen=True):
    """A step that each worker repeats: at once if it returned True, otherwise after `every_s` seconds or when woken."""

    name: str
    step: Callable[[WorkerContext], Awaitable[bool]]
    every_s: float = POLL_S
    finishes: bool = False  # A worker that ends waits for the current step. It cancels the steps of other tasks.
    on_orders: bool = False  # New orders wake it.
    needs_mail_server: bool = False


def with_connection(do: Callable[[Connection], Awaitable[bool | None]]) -> Callable[[WorkerContext], Awaitable[bool]]:
    """Returns the step that calls `do` with a connection of the worker. There may be more to do if it returns True."""

    async def step(context: WorkerContext) -> bool:
        async with context.database.connection(WORKER) as connection:
            return await do(connection) or False

    return step


class RoomTasks(msgspec.Struct, frozen=True):
    """The tasks of a package. `gauges` show the number of waiting rows. The test lab brings `due_times` forward."""

    periodic: Sequence[PeriodicTask] = ()
    retention: Sequence[Old] = ()
    queues: Sequence[Waiting] = ()
    gauges: Sequence[tuple[Gauge, Waiting]] = ()
    due_times: Sequence[DueTimes] = ()


async def prune(connection: Connection, all_old: Iterable[Old]) -> bool:
    """Deletes a batch of old rows from each table. Returns True if there may be more. Skips nodes that are down.

    Raises the first error of the server, after the other tables had their turn.
    """
    more = False
    failure: asyncpg.PostgresError | None = None
    for old in all_old:
        for shard_group in await list_shard_groups(connection, None) if old.table in DISTRIBUTED else [None]:
            age: object = old.days
            try:
                if shard_group is not None:
                    age = await connection.fetchval(_DAYS_AGO, old.days)
                async with connection.transaction():
                    await connection.execute("SET LOCAL enable_seqscan = off")
                    done = await connection.execute(old.statement(shard_group), age, _AT_ONCE, *arguments(shard_group))
            except DATABASE_AWAY:
                if shard_group is None or connection.is_closed():
                    raise
                continue
            except asyncpg.PostgresError as error:
                failure = failure or error
                continue
            removed = int(done.split()[-1])
            metrics.PRUNED.labels(old.table).inc(removed)
            more = more or removed == _AT_ONCE
    if failure is not None:
        raise failure
    return more


async def measure(connection: Connection, queues: Iterable[Waiting]) -> None:
    """Sets the gauges of queues, at a cost that does not grow with them. Call it inside a transaction that plans by index."""
    for queue in queues:
        metrics.QUEUE_DEPTH.labels(queue.table).set(await count(connection, queue))
        metrics.QUEUE_AGE.labels(queue.table).set(await age_s(connection, queue))


async def measure_clock(connection: Connection) -> None:
    """Sets the gauge of the clock. It may be wrong by half the time that the answer took."""
    sent = clock.now()
    at: datetime = await connection.fetchval(_CLOCK)
    metrics.CLOCK_AHEAD.set(((sent - at) + (clock.now() - at)).total_seconds() / 2)


async def count(connection: Connection, waiting: Waiting) -> int:
    """Returns how many rows wait. The number is exact below 10,000, else an estimate."""
    return int(await connection.fetchval(waiting.counting, _COUNTED))


async def age_s(connection: Connection, waiting: Waiting) -> float:
    """Returns for how many seconds the first row has been due; 0 if none waits."""
    age: float | None = await connection.fetchval(waiting.ageing)
    return max(age or 0.0, 0.0)


async def bring_forward(connection: Connection, due_times: Sequence[DueTimes], customer_id: int, by: timedelta) -> int:
    """Brings the due times of a customer in staging forward, and returns the number of rows. Call it inside a transaction."""
    moved = 0
    for one in due_times:
        if one.before is not None:
            await connection.execute(one.before, customer_id)
        if one.prepare is not None:
            await one.prepare(connection, customer_id, by)
        tag = await connection.execute(one.bringing_forward, customer_id, by)
        moved += int(tag.split()[-1])
    return moved


async def next_due(connection: Connection, due_times: Sequence[DueTimes], customer_id: int) -> datetime | None:
    """Returns the first due time of a customer in staging; None if nothing waits."""
    instants = [await connection.fetchval(one.next, customer_id) for one in due_times]
    return min((at for at in instants if at is not None), default=None)
