"""Leases: a worker's claim on a row, which runs out by itself when the worker dies.

The row has `leased_until` and `fence`. Taking a lease raises the fence, and writing an outcome names the
fence: a worker that was thought dead and comes back finds its fence outdated and changes nothing. All instants are
the database's.

The leases a process holds, and whether they certainly hold: what is done under one is done only while they do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from largesse.base.clock import Seconds, running_s
from largesse.db.fragments import Fragment, compose, declared, identifier
from largesse.db.pool import Connection, Row
from largesse.db.statements import plan_by_index

# Renewed three times in its length, so that one slow renewal loses nothing; a killed worker's rows wait this long.
LEASE_S = 15.0


@dataclass(frozen=True, slots=True)
class Lease:
    """A row held: whose it is, its key and the fence it was taken with."""

    customer_id: int
    key: Any  # uuid.UUID or int, as the queue's key column
    fence: int


def held_columns(leases: Sequence[Lease]) -> tuple[list[int], list[Any], list[int]]:
    """Leases for a statement, in columns: customers, keys and fences."""
    return ([lease.customer_id for lease in leases], [lease.key for lease in leases], [lease.fence for lease in leases])


@dataclass(frozen=True, slots=True)
class Terms:
    """How leases are taken: for how long, and what the process holds already, by key."""

    lease_s: float = LEASE_S
    held: Collection[Any] = frozenset()


class StillHeldError(Exception):
    """A lease of ours had run out and was taken anew while we still work under it.

    Roll the transaction back: the fence stays as it is, and what we did can be written. Renewing brings the lease back.
    """


_TERMS = Terms()


@dataclass(frozen=True)
class Queue:
    """A table whose rows are leased, found by customer and key."""

    table: str
    key: str
    key_type: str
    ready: str  # which rows may be taken, apart from being due and free; may use $3
    order: str  # an instant, which an index of the ready rows is sorted by
    order_ahead_s: float = 0.0  # a row's `order` is less than this past the instant at which it is due, or just this

    @cached_property
    def taking(self) -> Fragment:
        """The statement that takes up to $1 rows for $2 seconds and returns them.

        The bound on `order` lets go of what is due already; it is there to end the reading of the index, which knows
        of no other.
        """
        return compose(
            """
            UPDATE {table} SET leased_until = (SELECT clock_now()) + $2 * interval '1 second', fence = fence + 1
            WHERE (customer_id, {key}) IN (
                SELECT customer_id, {key} FROM {table}
                WHERE {ready} AND {order} <= (SELECT clock_now()) + {ahead_s} * interval '1 second'
                    AND due_at <= (SELECT clock_now()) AND leased_until <= (SELECT clock_now())
                ORDER BY {order} LIMIT $1 FOR UPDATE SKIP LOCKED)
            RETURNING *
            """,
            table=identifier(self.table),
            key=identifier(self.key),
            ready=declared(self.ready),
            order=identifier(self.order),
            ahead_s=self.order_ahead_s,
        )

    @cached_property
    def renewing(self) -> Fragment:
        """The statement that prolongs by $4 seconds those of the leases in $1 to $3 that still hold, and returns their keys."""
        return compose(
            """
            UPDATE {table} SET leased_until = (SELECT clock_now()) + $4 * interval '1 second'
            WHERE (customer_id, {key}) IN (
                SELECT customer_id, {key} FROM {table}
                JOIN unnest($1::int[], $2::{key_type}[], $3::bigint[]) AS held (held_by, held_key, held_fence)
                    ON customer_id = held_by AND {key} = held_key AND fence = held_fence
                WHERE leased_until > '-infinity'
                FOR UPDATE OF {table} SKIP LOCKED)
            RETURNING {key} AS key
            """,
            table=identifier(self.table),
            key=identifier(self.key),
            key_type=identifier(self.key_type),
        )

    @cached_property
    def giving_back(self) -> Fragment:
        """The statement that frees those of the leases in $1 to $3 that still hold."""
        return compose(
            """
            UPDATE {table} SET leased_until = '-infinity'
            FROM unnest($1::int[], $2::{key_type}[], $3::bigint[]) AS held (held_by, held_key, held_fence)
            WHERE customer_id = held_by AND {key} = held_key AND fence = held_fence
            """,
            table=identifier(self.table),
            key=identifier(self.key),
            key_type=identifier(self.key_type),
        )

    async def take(self, connection: Connection, limit: int, *arguments: Any, terms: Terms = _TERMS) -> list[Row]:
        """Leases up to `limit` rows that are due and free, and returns them. Call it inside a transaction.

        What the transaction asks after that is planned as this is. Raises StillHeldError for what `terms` name as held.
        """
        await plan_by_index(connection)
        rows: list[Row] = await connection.fetch(self.taking, limit, terms.lease_s, *arguments)
        if any(row[self.key] in terms.held for row in rows):
            raise StillHeldError
        return rows

    async def renew(self, connection: Connection, leases: Sequence[Lease], *, lease_s: float = LEASE_S) -> set[Any]:
        """Prolongs those of `leases` that still hold, and returns their keys. A row just being written is left out.

        So is one given back since the caller looked, whose fence is still the same: leased again, nobody would serve it.
        """
        rows = await connection.fetch(self.renewing, *held_columns(leases), lease_s)
        return {row["key"] for row in rows}

    async def give_back(self, connection: Connection, leases: Sequence[Lease]) -> None:
        """Frees those of `leases` that still hold, for any worker to take."""
        await connection.execute(self.giving_back, *held_columns(leases))


_CERTAIN = 0.8  # of a lease's length: the rest is for what was begun while it was certain


class Leases:
    """Leases of one queue, with the time until which each is certain by this machine's clock.

    A lease's time begins in the database after it was asked for here. So by the clock alone, and without asking anybody,
    one that was taken or renewed a short while ago is certain; when in doubt, renewing tells.
    """

    def __init__(self, queue: Queue, *, lease_s: float = LEASE_S, clock: Seconds = running_s) -> None:
        self.lease_s = lease_s
        self._queue = queue
        self._clock = clock
        self._certain_until: dict[Lease, float] = {}

    def now(self) -> float:
        """Returns the instant that `hold` wants: read it before the leases are asked for."""
        return self._clock()

    def hold(self, leases: Iterable[Lease], asked_at: float) -> None:
        """Holds leases that were just taken."""
        certain_until = asked_at + self.lease_s * _CERTAIN
        self._certain_until.update(dict.fromkeys(leases, certain_until))

    def drop(self, leases: Iterable[Lease]) -> None:
        """Forgets leases that were given back, or whose outcome is written."""
        for lease in leases:
            self._certain_until.pop(lease, None)

    @property
    def terms(self) -> Terms:
        """On what terms to take more."""
        return Terms(self.lease_s, {lease.key for lease in self._certain_until})

    def certain_s(self, lease: Lease) -> float:
        """Returns for how many seconds from now the lease certainly holds; 0 if that is in doubt."""
        return max(self._certain_until.get(lease, 0.0) - self._clock(), 0.0)

    def doubt(self) -> None:
        """Takes none for certain until it is renewed."""
        self._certain_until = dict.fromkeys(self._certain_until, 0.0)

    async def renew(self, connection: Connection) -> None:
        """Prolongs all that still hold; they are certain again. The others are left in doubt."""
        held = list(self._certain_until)
        if not held:
            return
        asked_at = self._clock()
        renewed = await self._queue.renew(connection, held, lease_s=self.lease_s)
        # Some may have been dropped meanwhile.
        self.hold((lease for lease in held if lease.key in renewed and lease in self._certain_until), asked_at)

    async def give_back(self, connection: Connection, leases: Sequence[Lease]) -> None:
        """Frees leases for any worker to take."""
        self.drop(leases)
        await self._queue.give_back(connection, leases)
