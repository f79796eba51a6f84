"""Due times: when something happens automatically. The test lab brings the due times of a customer in staging forward.

A package registers its tables in its `tasks.py`. Its own statements decide what is due, by `clock_now()`.
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
    prepare: Callable[[Connection, int, timedelta], Awaitable[None]] | None = (
        None  # is called first, with customer and advance
    )

    @property
    def bringing_forward(self) -> Fragment:
        """The statement that brings the due times of customer $1 in staging forward by $2, to now at the earliest.

        What counts from a time that is past counts from earlier, as after so much time. Calculates in UTC, as a cluster refuses what depends on the
        session's time zone.
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
