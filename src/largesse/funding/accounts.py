"""Funding accounts: which a service account may draw from."""

from __future__ import annotations

from dataclasses import dataclass

from largesse.database import Connection
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
