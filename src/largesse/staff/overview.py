"""The data of the back office's first page: open tasks, database sessions, the server, and the orders of today and of a week ago."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import NamedTuple

from largesse.db.pool import Connection, Row
from largesse.staff import store

MOST_COUNTED = 1_000


class Waiting(NamedTuple):
    """The number of open tasks of each kind, at most MOST_COUNTED."""

    top_ups: int
    vouchers: int
    held: int
    failing: int


class Server(NamedTuple):
    """The database server."""

    version: str
    size_bytes: int
    revision: str


@dataclass(frozen=True, slots=True)
class Day:
    """The orders and claims of a day, and the amount spent, by currency, in minor units."""

    orders: int
    claimed: int
    spent: Mapping[str, int]


class Days(NamedTuple):
    """Today, and the same day a week ago."""

    today: date
    now: Day
    before: Day


async def read_waiting(connection: Connection) -> Waiting:
    """Returns the number of open tasks."""
    row = await connection.fetchrow(store.WAITING, MOST_COUNTED)
    assert row is not None, "a query of one row"
    return Waiting(*row)


async def read_sessions(connection: Connection) -> list[tuple[str, int]]:
    """Returns the names of processes that are connected to the database, with the number of sessions."""
    return [(row["name"], row["sessions"]) for row in await connection.fetch(store.SESSIONS)]


async def read_server(connection: Connection) -> Server:
    """Returns the version and size of the database, and the revision of its schema."""
    row = await connection.fetchrow(store.SERVER)
    assert row is not None, "a query of one row"
    return Server(*row)


async def read_days(connection: Connection) -> Days:
    """Returns today, in UTC, and the same day a week ago."""
    today: date = await connection.fetchval(store.TODAY)
    ago = today - timedelta(days=7)
    rows = await connection.fetch(store.DAYS, [today, ago])
    return Days(
        today, _day([row for row in rows if row["day"] == today]), _day([row for row in rows if row["day"] == ago])
    )


def _day(rows: Sequence[Row]) -> Day:
    return Day(
        sum(row["orders"] for row in rows),
        sum(row["claimed"] for row in rows),
        {row["currency"]: row["spent_minor"] for row in rows},
    )
