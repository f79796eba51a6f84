"""The SQL of requests that people make about their personal data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Connection, Row

_NEXT_ID = "SELECT nextval('privacy_requests_id_seq')::int"
_TODAY = "SELECT (clock_now() AT TIME ZONE 'UTC')::date"
_ADD = """
    INSERT INTO privacy_requests (id, kind, customer_id, sealed_email, received_on, due_on) VALUES ($1, $2, $3, $4, $5, $5::date + 30)
"""
_COUNT_OPEN = "SELECT count(*) FROM privacy_requests WHERE done_at IS NULL"
_COLUMNS = Fragment("""
    SELECT r.id, r.kind, r.customer_id, c.name AS customer, r.sealed_email, r.received_on, r.due_on, r.done_at, r.outcome, r.erasure_id,
           r.due_on - (clock_now() AT TIME ZONE 'UTC')::date AS days_left
    FROM privacy_requests r LEFT JOIN customers c ON c.id = r.customer_id
""")
_OPEN = compose("{columns} WHERE done_at IS NULL ORDER BY due_on, r.id LIMIT $1", columns=_COLUMNS)
_DONE = compose("{columns} WHERE done_at IS NOT NULL AND r.id < $1 ORDER BY r.id DESC LIMIT $2", columns=_COLUMNS)
_ONE = compose("{columns} WHERE r.id = $1", columns=_COLUMNS)
_LOCK = "SELECT done_at FROM privacy_requests WHERE id = $1 FOR NO KEY UPDATE"
_FINISH = """
    UPDATE privacy_requests SET done_at = clock_now(), outcome = $2, erasure_id = $3, sealed_email = NULL
    WHERE id = $1 AND done_at IS NULL RETURNING id
"""
_RECEIPT = """
    SELECT id AS number, at, orders, lines, messages, cancelled, captured, parcels, texts, drafts, contacts, campaigns, customer_notes
    FROM erasures WHERE id = $1
"""
_COUNT_DUE = """
    SELECT count(*) AS open, count(*) FILTER (WHERE due_on < today) AS overdue,
           count(*) FILTER (WHERE due_on BETWEEN today AND today + $1::int) AS soon
    FROM privacy_requests, (SELECT (clock_now() AT TIME ZONE 'UTC')::date AS today) AS clock WHERE done_at IS NULL
"""


@dataclass(frozen=True, slots=True)
class PrivacyRequest:
    """A request, and by when it must be done."""

    id: int
    kind: str  # export or erase
    customer_id: int | None  # None: with all customers
    customer: str | None
    sealed_email: bytes | None  # until it is done
    received_on: date
    due_on: date
    done_at: datetime | None
    outcome: str | None  # done, nothing: nothing was stored, or declined
    erasure_id: int | None
    days_left: int  # until it is due; below zero once it is late


@dataclass(frozen=True, slots=True)
class DueCounts:
    """How many requests are open, of these how many are late, and how many are due soon."""

    open: int
    overdue: int
    soon: int


async def next_id(connection: Connection) -> int:
    """Returns the id of a new request, which is the encryption context of its address."""
    request_id: int = await connection.fetchval(_NEXT_ID)
    return request_id


async def read_today(connection: Connection) -> date:
    """Returns the current day in UTC."""
    today: date = await connection.fetchval(_TODAY)
    return today


async def add_request(
    connection: Connection, request_id: int, kind: str, customer_id: int | None, sealed: bytes, received_on: date
) -> None:
    """Adds a request, which is due 30 days after it was received."""
    await connection.execute(_ADD, request_id, kind, customer_id, sealed, received_on)


async def count_open(connection: Connection) -> int:
    """Returns how many requests are open."""
    count: int = await connection.fetchval(_COUNT_OPEN)
    return count


async def list_open(connection: Connection, *, limit: int) -> Sequence[PrivacyRequest]:
    """Returns the open requests, the first due one first."""
    return [PrivacyRequest(**row) for row in await connection.fetch(_OPEN, limit)]


async def list_done(connection: Connection, *, before: int, limit: int) -> Sequence[PrivacyRequest]:
    """Returns the newest finished requests below an id."""
    return [PrivacyRequest(**row) for row in await connection.fetch(_DONE, before, limit)]


async def find_request(connection: Connection, request_id: int) -> PrivacyRequest | None:
    """Returns a request; None if there is none."""
    row = await connection.fetchrow(_ONE, request_id)
    return None if row is None else PrivacyRequest(**row)


async def lock_request(connection: Connection, request_id: int) -> None:
    """Locks a request until the transaction ends."""
    await connection.execute(_LOCK, request_id)


async def finish_request(connection: Connection, request_id: int, outcome: str, erasure_id: int | None = None) -> bool:
    """Marks a request as done and erases its address. Returns False if it was done already."""
    return await connection.fetchval(_FINISH, request_id, outcome, erasure_id) is not None


async def find_receipt(connection: Connection, number: int) -> Row | None:
    """Returns what an erasure removed."""
    return await connection.fetchrow(_RECEIPT, number)


async def count_due(connection: Connection, *, soon_days: int) -> DueCounts:
    """Returns how many requests are open, late, and due within so many days."""
    row = await connection.fetchrow(_COUNT_DUE, soon_days)
    assert row is not None, "an aggregate has a row"
    return DueCounts(**row)
