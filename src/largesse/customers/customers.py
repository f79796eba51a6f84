"""The customers of an installation, for its operator.

Customers, people, service accounts and API keys as a world file describes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import msgspec

from largesse.base.errors import OperatorError
from largesse.base.text import free_key
from largesse.db.pool import Connection
from largesse.db.statements import Saved, Table, Values

PLANS = ("starter", "pro", "enterprise")
MOST_CUSTOMER_NAME = 200
MOST_CUSTOMER_KEY = 100


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


async def add_customer(
    connection: Connection, name: str, *, plan: str, funding: str, key: str | None = None
) -> tuple[int, str]:
    """Adds a customer; returns its id and its key, which is made of the name unless given. Raises OperatorError for a key in use."""
    if key is None:
        key = free_key(name, {row["key"] for row in await connection.fetch("SELECT key FROM customers")}, "customer")
    customer_id: int | None = await connection.fetchval(
        "INSERT INTO customers (key, name, plan, funding) VALUES ($1, $2, $3, $4) ON CONFLICT (key) DO NOTHING RETURNING id",
        key,
        name,
        plan,
        funding,
    )
    if customer_id is None:
        raise OperatorError(f"there is a customer {key!r} already: `customers set` changes it")
    return customer_id, key


async def change_customer(
    connection: Connection, key: str, *, name: str | None, plan: str | None, funding: str | None
) -> tuple[CustomerRecord, CustomerRecord]:
    """Changes what is given of a customer; returns it as it was and as it is. Raises OperatorError where there is none."""
    customer_id = await find_customer(connection, key)
    await connection.execute("SELECT FROM customers WHERE id = $1 FOR NO KEY UPDATE", customer_id)
    (before,) = [one for one in await list_customers(connection) if one.id == customer_id]
    after = replace(before, name=name or before.name, plan=plan or before.plan, funding=funding or before.funding)
    await connection.execute(
        "UPDATE customers SET name = $2, plan = $3, funding = $4 WHERE id = $1",
        customer_id,
        after.name,
        after.plan,
        after.funding,
    )
    return before, after


async def require_second_step(connection: Connection, customer_id: int, *, required: bool) -> None:
    """Has a customer ask its people for a second step, or no longer."""
    await connection.execute("UPDATE customers SET requires_second_step = $2 WHERE id = $1", customer_id, required)


async def confirmed_above(connection: Connection, customer_id: int) -> dict[str, int]:
    """Returns the amounts, in minor units by currency, above which a person confirms who they are before they send."""
    kept: str | None = await connection.fetchval("SELECT confirm_above FROM customers WHERE id = $1", customer_id)
    return {} if kept is None else msgspec.json.decode(kept, type=dict[str, int])


async def confirm_above(
    connection: Connection, customer_id: int, currency: str, amount_minor: int | None
) -> int | None:
    """Sets that amount in a currency, None for none; returns the one before. Call it inside a transaction that locks the customer."""
    amounts = await confirmed_above(connection, customer_id)
    before = amounts.pop(currency, None)
    if amount_minor is not None:
        amounts[currency] = amount_minor
    await connection.execute(
        "UPDATE customers SET confirm_above = $2 WHERE id = $1",
        customer_id,
        msgspec.json.encode(amounts, order="deterministic").decode() if amounts else None,
    )
    return before


async def find_customer(connection: Connection, key: str) -> int:
    """The id of the customer of this key. Raises OperatorError where there is none."""
    customer_id: int | None = await connection.fetchval("SELECT id FROM customers WHERE key = $1", key)
    if customer_id is None:
        raise OperatorError(f"there is no customer {key!r}")
    return customer_id


_CUSTOMERS = Table(
    "customers", {"key": "text", "name": "text", "plan": "text", "funding": "text"}, match="saved.key = new.key"
)
_USERS = Table(
    "users",
    {"customer_id": "integer", "email": "text", "name": "text", "role": "text", "is_active": "boolean"},
    match="saved.customer_id = new.customer_id AND lower(saved.email) = lower(new.email)",
)
_SERVICE_ACCOUNTS = Table(
    "service_accounts",
    {"customer_id": "integer", "key": "text", "name": "text", "active": "boolean"},
    match="saved.customer_id = new.customer_id AND saved.key = new.key",
)
_API_KEYS = Table(
    "api_keys",
    {"customer_id": "integer", "key": "text", "service_account_id": "integer", "environment": "text", "hash": "bytea"},
    match="saved.customer_id = new.customer_id AND saved.key = new.key AND saved.deleted_at IS NULL",
    fixed=("service_account_id", "environment"),
    unwatched=("customer_id", "key", "hash"),
)


async def save_customers(connection: Connection, rows: Sequence[Values]) -> Saved:
    """Adds customers and overwrites those that differ, found by key."""
    return await _CUSTOMERS.save(connection, rows)


async def save_users(connection: Connection, rows: Sequence[Values]) -> Saved:
    """Adds people and overwrites those that differ, found by their address at their customer, letter case ignored."""
    return await _USERS.save(connection, rows)


async def save_service_accounts(connection: Connection, rows: Sequence[Values]) -> Saved:
    """Adds service accounts and overwrites those that differ, found by customer and key."""
    return await _SERVICE_ACCOUNTS.save(connection, rows)


async def save_keys(connection: Connection, rows: Sequence[Values]) -> Saved:
    """Adds API keys, found by customer and key among those not deleted; `hash` is of the secret. Raises FixedColumn."""
    return await _API_KEYS.save(connection, rows)
