"""SQL of top-ups. A top-up waits until it is confirmed or cancelled, or `expires_at` has passed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from largesse.base.errors import NotFound
from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Connection, Row

_MAX_LISTED = 1_000

_SELECT = Fragment("""
    SELECT t.reference, c.key AS customer, t.customer_id, t.environment, t.account_id, a.name AS account, a.currency,
           t.amount_minor, t.credited_minor,
           CASE WHEN t.state = 'waiting' AND t.expires_at <= clock_now() THEN 'expired' ELSE t.state END AS state,
           t.requested_at, u.name AS requested_by, t.expires_at, t.ended_at, t.bank_line
    FROM top_ups t
    JOIN customers c ON c.id = t.customer_id
    JOIN accounts a ON a.customer_id = t.customer_id AND a.id = t.account_id
    LEFT JOIN users u ON u.id = t.requested_by
""")
_BY_REFERENCE = _SELECT + "WHERE t.customer_id = $1 AND t.environment = $2 AND t.reference = $3"
_BY_REFERENCES = _SELECT + "WHERE t.reference = ANY($1::text[])"
_OF_CUSTOMER = (
    _SELECT
    + """
    WHERE t.customer_id = $1 AND t.environment = $2 AND (NOT $3 OR (t.state = 'waiting' AND t.expires_at > clock_now()))
    ORDER BY t.requested_at DESC, t.reference LIMIT $4
"""
)
_OF_ALL = (
    _SELECT
    + """
    WHERE ($1::text IS NULL OR c.key = $1) AND ($2 OR t.state = 'waiting')
    ORDER BY t.requested_at, t.reference
"""
)
_WAITING = compose(
    """
    {select} WHERE t.state = 'waiting' AND ($1 = '' OR c.key = $1 OR t.reference = $2)
      AND ($3::text IS NULL OR (t.requested_at, t.reference) > (SELECT requested_at, reference FROM top_ups WHERE reference = $3))
    ORDER BY t.requested_at, t.reference LIMIT $4
""",
    select=_SELECT,
)


@dataclass(frozen=True, slots=True)
class TopUp:
    """A top-up; amounts in minor units of its account's currency."""

    reference: str
    customer: str
    customer_id: int
    environment: str
    account_id: int
    account: str
    currency: str
    amount_minor: int  # as requested
    credited_minor: int | None  # as received, once it is confirmed
    state: str  # waiting, expired, confirmed or cancelled
    requested_at: datetime
    requested_by: str | None  # the name of the person
    expires_at: datetime
    ended_at: datetime | None  # when it was confirmed or cancelled


async def find_top_up(connection: Connection, customer_id: int, environment: str, reference: str) -> TopUp:
    """Returns a customer's top-up. Raises NotFound."""
    row = await connection.fetchrow(_BY_REFERENCE, customer_id, environment, reference)
    if row is None:
        raise NotFound("There is no such top-up.")
    return _top_up(row)


async def list_top_ups(
    connection: Connection, customer_id: int, environment: str, *, waiting: bool = False
) -> list[TopUp]:
    """Returns a customer's latest top-ups, newest first, at most 1,000; with `waiting` only those that may still be paid."""
    rows = await connection.fetch(_OF_CUSTOMER, customer_id, environment, waiting, _MAX_LISTED)
    return [_top_up(row) for row in rows]


async def list_all_top_ups(connection: Connection, *, customer: str | None = None, ended: bool = False) -> list[TopUp]:
    """Returns top-ups of every customer, or of one, oldest first: those that wait or have expired, and with `ended` all."""
    return [_top_up(row) for row in await connection.fetch(_OF_ALL, customer, ended)]


async def list_by(connection: Connection, customer: str, reference: str, after: str | None, most: int) -> list[TopUp]:
    """Returns top-ups that wait or have expired, of a customer or with that reference, or all; oldest first, after one of them."""
    return [_top_up(row) for row in await connection.fetch(_WAITING, customer, reference, after, most)]


async def find_by_references(
    connection: Connection, references: Sequence[str]
) -> dict[str, tuple[TopUp, bytes | None]]:
    """Returns top-ups by reference, each with the line of a bank's file that confirmed it."""
    rows = await connection.fetch(_BY_REFERENCES, references)
    return {row["reference"]: (_top_up(row), row["bank_line"]) for row in rows}


def _top_up(row: Row) -> TopUp:
    return TopUp(*row[:-1])


# Lets one request of a customer run at a time.
LOCK_REQUESTS = "SELECT pg_advisory_xact_lock(1953460341, $1)"  # "topu" in ASCII
# A separate statement, because accounts may be on a node, which has no top-ups.
HAS_OPEN_ACCOUNT = """
    SELECT EXISTS (SELECT FROM accounts
                   WHERE customer_id = $1 AND environment = $2 AND id = $3 AND kind = 'funding' AND closed_at IS NULL)
"""
COUNT_WAITING = """
    SELECT count(*) FROM top_ups
    WHERE customer_id = $1 AND environment = $2 AND state = 'waiting' AND expires_at > clock_now()
"""
INSERT = """
    INSERT INTO top_ups (customer_id, environment, account_id, reference, amount_minor, requested_by, requested_at, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, clock_now(), clock_now() + $7)
    ON CONFLICT DO NOTHING RETURNING reference
"""
CANCEL = """
    UPDATE top_ups SET state = 'cancelled', ended_at = clock_now()
    WHERE customer_id = $1 AND environment = $2 AND reference = $3 AND state = 'waiting'
    RETURNING true
"""
LOCK = "SELECT customer_id, environment FROM top_ups WHERE reference = $1 FOR UPDATE"
CONFIRM = """
    UPDATE top_ups SET state = 'confirmed', credited_minor = $3, ended_at = clock_now(), bank_line = $4
    WHERE customer_id = $1 AND reference = $2
"""
