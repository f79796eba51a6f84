"""SQL of the lists of money across customers, each a page by key: top-ups that wait, amounts due, and funding accounts."""

from __future__ import annotations

from dataclasses import dataclass

from largesse.db.pool import Connection
from largesse.ledger.top_ups_store import TopUp, list_by

# The reference of a top-up is RF and 16 digits. Pages are in its order.
_PREFIX = "RF"
_OWED = """
    SELECT r.id, r.customer_id, c.key AS customer, c.name, r.environment, r.currency, -r.balance_minor AS owed_minor
    FROM accounts r JOIN customers c ON c.id = r.customer_id
    WHERE r.kind = 'receivable' AND r.balance_minor <> 0
      AND ($1::int IS NULL OR (r.customer_id, r.id) > (SELECT customer_id, id FROM accounts WHERE id = $1))
    ORDER BY r.customer_id, r.id LIMIT $2
"""
_ACCOUNTS = """
    SELECT a.id, c.key AS customer, c.name AS customer_name, a.name, a.environment, a.currency, a.balance_minor,
           a.closed_at IS NOT NULL AS is_closed
    FROM accounts a JOIN customers c ON c.id = a.customer_id
    WHERE a.kind = 'funding' AND a.id > $2
      AND ($1 = '' OR position($1 IN lower(c.key)) > 0 OR position($1 IN lower(c.name)) > 0 OR position($1 IN lower(a.name)) > 0)
    ORDER BY a.id LIMIT $3
"""


@dataclass(frozen=True, slots=True)
class OwedAmount:
    """What a customer owes in one environment and currency, in minor units. Below zero it has paid too much."""

    account_id: int
    customer_id: int
    customer: str
    name: str
    environment: str
    currency: str
    owed_minor: int


@dataclass(frozen=True, slots=True)
class ListedAccount:
    """A funding account in a list of all customers'."""

    id: int
    customer: str
    customer_name: str
    name: str
    environment: str
    currency: str
    balance_minor: int
    is_closed: bool


async def list_waiting_top_ups(connection: Connection, words: str, after: int | None, most: int) -> list[TopUp]:
    """Returns top-ups that wait or have expired, oldest first, after the one whose reference has those digits.

    `words` are a reference or a customer's key.
    """
    reference = "".join(words.split()).upper()
    return await list_by(
        connection, words.strip(), reference, None if after is None else f"{_PREFIX}{after:016d}", most
    )


async def list_owed(connection: Connection, after: int | None, most: int) -> list[OwedAmount]:
    """Returns what customers owe, by customer, after the account with that id."""
    return [OwedAmount(*row) for row in await connection.fetch(_OWED, after, most)]


async def list_all_accounts(connection: Connection, words: str, after: int, most: int) -> list[ListedAccount]:
    """Returns funding accounts of all customers by id, after that id, with `words` in the name of customer or account."""
    return [ListedAccount(*row) for row in await connection.fetch(_ACCOUNTS, words.lower(), after, most)]
