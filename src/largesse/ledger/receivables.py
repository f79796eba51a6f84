"""What an invoiced customer owes, as its people see it: by month, with its payments.

All of it is read from the ledger: what is owed at the end of a month is what the receivable stood at then, and what was charged is what
that and the payments leave. So the months add up, whatever was cancelled in them.

What invoiced customers owe, and their payments.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from largesse.base import clock
from largesse.base.errors import OperatorError
from largesse.base.money import label
from largesse.db.pool import Connection
from largesse.encryption.chain import Chain
from largesse.ledger.posting import Credit, own_accounts, pay_in
from largesse.ledger.statements import month_of, read_places

MOST_MONTHS = 120
_MOST_PAYMENTS = 10_000


@dataclass(frozen=True, slots=True)
class AmountDue:
    """What is owed in one currency: its receivable, in minor units above zero."""

    account_id: int
    currency: str
    owed_minor: int


@dataclass(frozen=True, slots=True)
class AmountDueMonth:
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


async def list_amounts_due(connection: Connection, customer_id: int, environment: str) -> list[AmountDue]:
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
    return [AmountDue(**row) for row in rows]


async def list_payments(connection: Connection, customer_id: int, owed: AmountDue) -> list[Payment]:
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


async def read_months(connection: Connection, customer_id: int, owed: AmountDue, months: int) -> list[AmountDueMonth]:
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
        found.append(AmountDueMonth(one, opening, closing - opening + paid, paid, closing))
    return found


@dataclass(frozen=True, slots=True)
class Receivable:
    """What a customer owes in one environment and currency, in minor units."""

    customer: str
    name: str
    environment: str
    currency: str
    ordered_minor: int  # all orders ever, less what was cancelled
    settled_minor: int  # all payments
    owed_minor: int


async def list_receivables(connection: Connection, customer: str | None = None) -> list[Receivable]:
    """What each customer owes that was ever invoiced, by customer; those who owe nothing too."""
    rows = await connection.fetch(
        """
        SELECT c.key AS customer, c.name, r.environment, r.currency,
               -r.balance_minor AS owed_minor, coalesce(settled.minor, 0)::bigint AS settled_minor
        FROM accounts r
        JOIN customers c ON c.id = r.customer_id
        LEFT JOIN LATERAL (
            SELECT sum(amount_minor) AS minor FROM entries
            WHERE customer_id = r.customer_id AND account_id = r.id AND reference IS NOT NULL
        ) AS settled ON true
        WHERE r.kind = 'receivable' AND ($1::text IS NULL OR c.key = $1)
          AND (c.funding = 'invoiced' OR r.balance_minor <> 0)
        ORDER BY c.key, r.environment, r.currency
        """,
        customer,
    )
    return [
        Receivable(
            row["customer"],
            row["name"],
            row["environment"],
            row["currency"],
            row["owed_minor"] + row["settled_minor"],
            row["settled_minor"],
            row["owed_minor"],
        )
        for row in rows
    ]


async def settle(
    connection: Connection,
    chain: Chain,
    customer: str,
    *,
    environment: str,
    currency: str,
    amount_minor: int,
    reference: str,
) -> Credit:
    """Records a customer's payment of what it owes; what it still owes is what its receivable is below zero.

    Call it inside a transaction. One reference is one payment: repeating it with the same amount changes nothing.
    Raises OperatorError for an unknown customer, one that was never invoiced in this currency, an amount that is not
    positive or more than is owed, and a reference of another amount.
    """
    row = await connection.fetchrow(
        """
        SELECT c.id, r.id AS receivable FROM customers c
        LEFT JOIN accounts r ON r.customer_id = c.id AND r.environment = $2 AND r.currency = $3
            AND r.kind = 'receivable'
        WHERE c.key = $1
        """,
        customer,
        environment,
        currency,
    )
    if row is None:
        raise OperatorError(f"there is no customer {customer!r}")
    if row["receivable"] is None:
        raise OperatorError(f"customer {customer!r} was never invoiced in {currency} in {environment}")

    def refuse_too_much(balance_minor: int) -> None:
        if amount_minor > (owed := max(0, -balance_minor)):
            raise OperatorError(f"the amount must be at most what is owed, {label(owed, currency)}")

    own = await own_accounts(connection, row["id"], environment, currency)
    return await pay_in(
        connection,
        chain,
        "settlement",
        to=(row["id"], own["receivable"]),
        deposits=own["deposits"],
        amount_minor=amount_minor,
        currency=currency,
        reference=reference,
        check=refuse_too_much,
    )
