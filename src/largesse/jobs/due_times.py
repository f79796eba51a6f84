"""Due times: the instants at which something happens by itself. The test lab brings those of a customer in staging forward.

A room registers its tables in its `tasks.py`; what is due stays a matter of the room's own statements, which compare with `clock_now()`.
See docs/decisions/0066-the-test-clock.md.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from largesse.db.fragments import Fragment, compose, declared, each, identifier, join
from largesse.db.pool import Connection


@dataclass(frozen=True, slots=True)
class DueTimes:
    """The rows of a table that wait for an instant: they fulfil `waits`, and `due` holds the columns with the instant, which comes first.

    `staging` says which rows belong to the environment staging. The columns `since` hold instants from which a time is counted.
    `before` is a statement that is run first, with the customer as $1.
    """

    table: str
    due: tuple[str, ...]
    waits: str
    staging: str = "environment = 'staging'"
    since: tuple[str, ...] = ()
    before: str | None = None
    prepare: Callable[[Connection, int, timedelta], Awaitable[None]] | None = (
        None  # is called first, with customer and advance
    )

    @property
    def bringing_forward(self) -> Fragment:
        """The statement that brings what the customer $1 waits for in staging forward by $2, to now at the earliest."""
        due = each("{name} = greatest({name} - $2::interval, (SELECT clock_now()))", self.due)
        since = each("{name} = {name} - $2::interval", self.since)
        return compose(
            "UPDATE {table} SET {changes} WHERE {later}",
            table=identifier(self.table),
            changes=join(Fragment(", "), [one for one in (due, since) if one]),
            later=self._later,
        )

    @property
    def next(self) -> Fragment:
        """The statement that returns when the first of what the customer $1 waits for in staging is due; null when nothing is."""
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


async def bring_forward(connection: Connection, due_times: Sequence[DueTimes], customer_id: int, by: timedelta) -> int:
    """Brings all that a customer waits for in staging forward; returns how many rows. Call it inside a transaction."""
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
    """Returns when the first of what a customer waits for in staging is due; None when it waits for nothing."""
    instants = [await connection.fetchval(one.next, customer_id) for one in due_times]
    return min((at for at in instants if at is not None), default=None)
