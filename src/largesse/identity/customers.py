"""The customers of an installation, for its operator."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from largesse.base.errors import StartError
from largesse.database import Connection


@dataclass(frozen=True, slots=True)
class CustomerRecord:
    """A customer, with how many service accounts and API keys it has."""

    id: int
    key: str
    name: str
    plan: str  # starter, pro or enterprise
    funding: str  # balance or invoiced
    service_accounts: int
    api_keys: int
    created_at: datetime


async def list_customers(connection: Connection) -> list[CustomerRecord]:
    """All customers, by key."""
    rows = await connection.fetch(
        """
        SELECT id, key, name, plan, funding,
               (SELECT count(*) FROM service_accounts s WHERE s.customer_id = c.id) AS service_accounts,
               (SELECT count(*) FROM api_keys k WHERE k.customer_id = c.id) AS api_keys,
               created_at
        FROM customers c ORDER BY key
        """
    )
    return [CustomerRecord(**row) for row in rows]


async def require_second_step(connection: Connection, customer_id: int, *, required: bool) -> None:
    """Has a customer ask its people for a second step, or no longer."""
    await connection.execute(
        "UPDATE customers SET requires_second_step = $2 WHERE id = $1", customer_id, required
    )


async def find_customer(connection: Connection, key: str) -> int:
    """The id of the customer of this key. Raises StartError where there is none."""
    customer_id: int | None = await connection.fetchval("SELECT id FROM customers WHERE key = $1", key)
    if customer_id is None:
        raise StartError(f"there is no customer {key!r}")
    return customer_id
