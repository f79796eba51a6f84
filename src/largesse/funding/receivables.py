"""What invoiced customers owe, and their payments."""

from __future__ import annotations

from dataclasses import dataclass

from largesse.base.errors import StartError
from largesse.base.money import label
from largesse.chains.chain import Chain
from largesse.database.pool import Connection
from largesse.funding.ledger import Credit, own_accounts, pay_in


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
    Raises StartError for an unknown customer, one that was never invoiced in this currency, an amount that is not
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
        raise StartError(f"there is no customer {customer!r}")
    if row["receivable"] is None:
        raise StartError(f"customer {customer!r} was never invoiced in {currency} in {environment}")

    def refuse_too_much(balance_minor: int) -> None:
        if amount_minor > (owed := max(0, -balance_minor)):
            raise StartError(f"the amount must be at most what is owed, {label(owed, currency)}")

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
