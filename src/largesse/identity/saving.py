"""Customers, people, service accounts and API keys as a world file describes them."""

from __future__ import annotations

from collections.abc import Sequence

from largesse.database.pool import Connection
from largesse.database.saving import Saved, Table, Values

_CUSTOMERS = Table(
    "customers",
    {"key": "text", "name": "text", "plan": "text", "funding": "text"},
    match="saved.key = new.key",
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
    {
        "customer_id": "integer",
        "key": "text",
        "service_account_id": "integer",
        "environment": "text",
        "hash": "bytea",
    },
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
