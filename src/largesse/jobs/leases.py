"""Leases: a worker's claim on a row, which expires if the worker dies.

The row has `leased_until` and `fence`. Taking a lease raises the fence, and an outcome is written only with the current fence. So a worker
whose lease was taken by another changes nothing when it comes back. All times are the database's.

A process records which of its leases are certainly valid, and works under a lease only while it is.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import Any

import msgspec

from largesse.base.clock import running_s
from largesse.db.fragments import Fragment, compose, declared, identifier
from largesse.db.pool import Connection, Row
from largesse.db.statements import plan_by_index

# Renewed three times in its length, so that one slow renewal loses nothing; a killed worker's rows wait this long.
LEASE_S = 15.0


class Lease(msgspec.Struct, frozen=True):
    """A leased row: its customer, its key and its fence."""

    customer_id: int
    key: Any  # uuid.UUID or int, as the queue's key column
    fence: int


def held_columns(leases: Sequence[Lease]) -> tuple[list[int], list[Any], list[int]]:
    """Returns leases as columns for a statement: customers, keys and fences."""
    return ([lease.customer_id for lease in leases], [lease.key for lease in leases], [lease.fence for lease in leases])


class Terms(msgspec.Struct, frozen=True):
    """The terms of new leases: for how long, and the keys that the process has leased already."""

    lease_s: float = LEASE_S
    held: Collection[Any] = frozenset()


class StillHeldError(Exception):
    """A lease of this process expired and was taken again while the process still works under it.

    Roll the transaction back: the fence stays as it was, so outcomes can still be written. Renewing makes the lease valid again.
    """


_TERMS = Terms()


class Queue(msgspec.Struct, frozen=True, dict=True):
    """A table whose rows are leased, found by customer and key."""

    table: str
    key: str
    key_type: str
    ready: str  # a condition on rows, besides being due and not leased; may use $3
    order: str  # a time by which an index of the ready rows is sorted
    order_ahead_s: float = 0.0  # a row's `order` is at most this much later than its due time

    @cached_property
    def taking(self) -> Fragment:
        """The statement that takes up to $1 rows for $2 seconds and returns them.

        The bound on `order` excludes nothing that is due. It ends the scan of the index.
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
        """The statement that extends the leases in $1 to $3 that are still valid by $4 seconds, and returns their keys."""
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
        """The statement that frees the leases in $1 to $3 that are still valid."""
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

        Later queries of the transaction are planned by index too. Raises StillHeldError if a row is one that `terms` name as leased.
        """
        await plan_by_index(connection)
        rows: list[Row] = await connection.fetch(self.taking, limit, terms.lease_s, *arguments)
        if any(row[self.key] in terms.held for row in rows):
            raise StillHeldError
        return rows

    async def renew(self, connection: Connection, leases: Sequence[Lease], *, lease_s: float = LEASE_S) -> set[Any]:
        """Extends the leases that are still valid, and returns their keys. Skips rows that another transaction is writing.

        Also skips rows that were given back meanwhile: their fence is still the same, but nobody would work on them.
        """
        rows = await connection.fetch(self.renewing, *held_columns(leases), lease_s)
        return {row["key"] for row in rows}

    async def give_back(self, connection: Connection, leases: Sequence[Lease]) -> None:
        """Frees the leases that are still valid, so that any worker can take the rows."""
        await connection.execute(self.giving_back, *held_columns(leases))


_CERTAIN = 0.8  # the part of a lease in which it is certainly valid; the rest is for work that began before


class Leases:
    """The leases of one queue, and until when each is certainly valid by this machine's clock.

    A lease begins in the database after the process has asked for it. So one that was taken or renewed a short while ago is certainly
    valid, without a query. If in doubt, renew it.
    """

    def __init__(self, queue: Queue, *, lease_s: float = LEASE_S) -> None:
        self.lease_s = lease_s
        self._queue = queue
        self._certain_until: dict[Lease, float] = {}

    def now(self) -> float:
        """Returns the time to pass to `hold`. Read it before the leases are taken."""
        return running_s()

    def hold(self, leases: Iterable[Lease], asked_at: float) -> None:
        """Records leases that were just taken."""
        certain_until = asked_at + self.lease_s * _CERTAIN
        self._certain_until.update(dict.fromkeys(leases, certain_until))

    def drop(self, leases: Iterable[Lease]) -> None:
        """Removes leases that were given back, or whose outcome is written."""
        for lease in leases:
            self._certain_until.pop(lease, None)

    @property
    def terms(self) -> Terms:
        """The terms for more leases."""
        return Terms(self.lease_s, {lease.key for lease in self._certain_until})

    def certain_s(self, lease: Lease) -> float:
        """Returns for how many more seconds the lease is certainly valid; 0 if in doubt."""
        return max(self._certain_until.get(lease, 0.0) - running_s(), 0.0)

    def doubt(self) -> None:
        """Marks all leases as doubtful until they are renewed."""
        self._certain_until = dict.fromkeys(self._certain_until, 0.0)

    async def renew(self, connection: Connection) -> None:
        """Renews all leases. Those that are still valid are certain again; the others stay doubtful."""
        held = list(self._certain_until)
        if not held:
            return
        asked_at = running_s()
        renewed = await self._queue.renew(connection, held, lease_s=self.lease_s)
        # Some may have been dropped meanwhile.
        self.hold((lease for lease in held if lease.key in renewed and lease in self._certain_until), asked_at)

    async def give_back(self, connection: Connection, leases: Sequence[Lease]) -> None:
        """Frees leases for any worker."""
        self.drop(leases)
        await self._queue.give_back(connection, leases)
