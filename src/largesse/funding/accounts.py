"""Funding accounts: which a service account may draw from."""

from __future__ import annotations

from dataclasses import dataclass

from largesse.database import Connection, Row
from largesse.errors import StartError
from largesse.identity import Principal


@dataclass(frozen=True, slots=True)
class FundingAccount:
    """A funding account as its holder sees it."""

    id: int
    name: str
    is_master: bool
    currency: str
    currency_id: int  # ISO 4217 numeric
    balance_minor: int


async def list_funding_accounts(connection: Connection, principal: Principal) -> list[FundingAccount]:
    """The accounts assigned to the principal's service account and those open to all, in its environment."""
    rows = await connection.fetch(
        """
        SELECT accounts.id, accounts.name, is_master, currency, currencies.id AS currency_id, balance_minor
        FROM accounts JOIN currencies ON currencies.code = accounts.currency
        WHERE customer_id = $1 AND environment = $2 AND kind = 'funding'
          AND (open_to_all OR EXISTS (
              SELECT FROM account_service_accounts
              WHERE account_id = accounts.id AND service_account_id = $3))
        ORDER BY is_master DESC, accounts.id
        """,
        principal.customer_id,
        principal.environment,
        principal.service_account_id,
    )
    return [FundingAccount(**row) for row in rows]


async def find_funding_account(connection: Connection, name: str) -> Row:
    """The funding account of an id, a key, or customer/key: its id, name and currency, and its customer's key.

    Raises StartError for none and for several.
    """
    customer, _, key = name.rpartition("/")
    rows = await connection.fetch(
        """
        SELECT a.id, a.name, a.currency, c.key AS customer
        FROM accounts a JOIN customers c ON c.id = a.customer_id
        WHERE a.kind = 'funding' AND ((a.key = $1 AND ($2 = '' OR c.key = $2)) OR ($2 = '' AND a.id::text = $1))
        """,
        key,
        customer,
    )
    if not rows:
        raise StartError(f"there is no funding account {name!r}")
    if len(rows) > 1:
        names = ", ".join(f"{row['customer']}/{key} (id {row['id']})" for row in rows)
        raise StartError(f"{name!r} could be any of {names}")
    return rows[0]
