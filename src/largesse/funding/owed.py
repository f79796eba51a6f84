"""What an invoiced customer owes, as its people see it: by month, with its payments.

All of it is read from the ledger: what is owed at the end of a month is what the receivable stood at then, and what was charged is what
that and the payments leave. So the months add up, whatever was cancelled in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from largesse.base import clock
from largesse.database.pool import Connection
from largesse.funding.statements import month_of, read_places

MOST_MONTHS = 120
_MOST_PAYMENTS = 10_000


@dataclass(frozen=True, slots=True)
class Owed:
    """What is owed in one currency: its receivable, in minor units above zero."""

    account_id: int
    currency: str
    owed_minor: int


@dataclass(frozen=True, slots=True)
class OwedMonth:
    """A month in UTC, from `since`: what was owed before it, charged for orders less what was cancelled, paid, and owed after it."""

    since: datetime
    opening_minor: int
    charged_minor: int
    paid_minor: int
    closing_minor: int


@dataclass(frozen=True, slots=True)
class Payment:
    """A payment, as the operator has recorded it."""

    id: int
    at: datetime
    reference: str
    amount_minor: int


async def list_owed(connection: Connection, customer_id: int, environment: str) -> list[Owed]:
    """What a customer owes in an environment, by currency: those it was ever invoiced in."""
    rows = await connection.fetch(
        """
        SELECT a.id AS account_id, a.currency, -a.balance_minor AS owed_minor FROM accounts a
        WHERE a.customer_id = $1 AND a.environment = $2 AND a.kind = 'receivable'
          AND EXISTS (SELECT FROM entries e WHERE e.customer_id = a.customer_id AND e.account_id = a.id)
        ORDER BY a.currency
        """,
        customer_id,
        environment,
    )
    return [Owed(**row) for row in rows]


async def list_payments(connection: Connection, customer_id: int, owed: Owed) -> list[Payment]:
    """The payments of a customer in a currency, the latest first, at most 10,000."""
    rows = await connection.fetch(
        """
        SELECT id, created_at AS at, reference, amount_minor FROM entries
        WHERE customer_id = $1 AND account_id = $2 AND reference IS NOT NULL ORDER BY id DESC LIMIT $3
        """,
        customer_id,
        owed.account_id,
        _MOST_PAYMENTS,
    )
    return [Payment(**row) for row in rows]


async def read_months(connection: Connection, customer_id: int, owed: Owed, months: int) -> list[OwedMonth]:
    """The last so many months of what is owed in a currency, the latest first; none from before the first order."""
    first: datetime | None = await connection.fetchval(
        "SELECT created_at FROM entries WHERE customer_id = $1 AND account_id = $2 ORDER BY id LIMIT 1",
        customer_id,
        owed.account_id,
    )
    if first is None:
        return []
    begin, end = month_of(clock.now())[0], month_of(clock.now())[1]
    since = [month_of(begin, -back)[0] for back in range(min(months, MOST_MONTHS))]
    since = [one for one in since if month_of(one)[1] > first]
    places = await read_places(connection, customer_id, owed.account_id, [end, *since])
    payments = await list_payments(connection, customer_id, owed)
    found = []
    for at, one in enumerate(since):
        after, before = places[at], places[at + 1]
        paid = sum(one.amount_minor for one in payments if before.first <= one.id < after.first)
        opening, closing = -before.balance_minor, -after.balance_minor
        found.append(OwedMonth(one, opening, closing - opening + paid, paid, closing))
    return found
