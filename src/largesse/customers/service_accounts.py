"""What service accounts may order, set by an operator or an administrator.

Service accounts: what programs act as. A customer's administrators make them and switch them off.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from largesse.base.errors import InvalidRequest, NotFound, OperatorError
from largesse.base.text import free_key
from largesse.customers.restrictions import Limit, read_limits, write_limits
from largesse.db.pool import Connection


@dataclass(frozen=True, slots=True)
class ServiceAccountRecord:
    """A service account as an operator sees it."""

    id: int
    customer: str
    key: str
    name: str
    active: bool
    limits: dict[str, Limit]  # by currency


async def list_limits(connection: Connection, customer: str | None = None) -> list[ServiceAccountRecord]:
    """All service accounts, or those of one customer, by customer and key."""
    rows = await connection.fetch(
        """
        SELECT s.id, c.key AS customer, s.key, s.name, s.active, s.limits
        FROM service_accounts s JOIN customers c ON c.id = s.customer_id
        WHERE $1::text IS NULL OR c.key = $1 ORDER BY c.key, s.key
        """,
        customer,
    )
    return [ServiceAccountRecord(**{**row, "limits": dict(read_limits(row["limits"]))}) for row in rows]


async def limit_service_account(
    connection: Connection, *, customer_id: int, service_account_id: int, currency: str, limit: Limit
) -> Limit:
    """Sets what a service account may order in a currency; returns what held before. Call it inside a transaction.

    Orders from then on are held to it. Raises OperatorError for a currency that there is not, NotFound for a service account that is not
    the customer's.
    """
    if not await connection.fetchval("SELECT EXISTS (SELECT FROM currencies WHERE code = $1)", currency):
        raise OperatorError(f"there is no currency {currency!r}")
    row = await connection.fetchrow(
        "SELECT limits FROM service_accounts WHERE customer_id = $1 AND id = $2 FOR NO KEY UPDATE",
        customer_id,
        service_account_id,
    )
    if row is None:
        raise NotFound("There is no such service account.")
    limits = dict(read_limits(row["limits"]))
    await connection.execute(
        "UPDATE service_accounts SET limits = $3 WHERE customer_id = $1 AND id = $2",
        customer_id,
        service_account_id,
        write_limits({**limits, currency: limit}),
    )
    return limits.get(currency, Limit())


MOST_SERVICE_ACCOUNTS = 200


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """A service account, with how many API keys of an environment act as it, and what it may order."""

    id: int
    key: str
    name: str
    active: bool
    api_keys: int
    limits: Mapping[str, Limit]  # by currency


class TooManyServiceAccounts(InvalidRequest):
    """The customer has as many as it may."""

    def __init__(self) -> None:
        super().__init__(f"A customer has at most {MOST_SERVICE_ACCOUNTS} service accounts.")


async def list_service_accounts(connection: Connection, customer_id: int, environment: str) -> list[ServiceAccount]:
    """A customer's service accounts, by name."""
    rows = await connection.fetch(
        """
        SELECT id, key, name, active,
               (SELECT count(*) FROM api_keys k WHERE k.customer_id = s.customer_id AND k.service_account_id = s.id
                AND k.environment = $2 AND k.deleted_at IS NULL) AS api_keys, limits
        FROM service_accounts s WHERE customer_id = $1 ORDER BY lower(name), id
        """,
        customer_id,
        environment,
    )
    return [ServiceAccount(**{**row, "limits": read_limits(row["limits"])}) for row in rows]


async def add_service_account(connection: Connection, customer_id: int, name: str) -> tuple[int, str]:
    """Makes one of that name; returns its id and its key, which is made of the name. Raises TooManyServiceAccounts."""
    # Locked, so that two who add at the same time neither pass the limit nor take the same key.
    await connection.execute("SELECT FROM customers WHERE id = $1 FOR NO KEY UPDATE", customer_id)
    rows = await connection.fetch("SELECT key FROM service_accounts WHERE customer_id = $1", customer_id)
    if len(rows) >= MOST_SERVICE_ACCOUNTS:
        raise TooManyServiceAccounts
    key = free_key(name, {row["key"] for row in rows}, "service-account")
    account_id: int = await connection.fetchval(
        "INSERT INTO service_accounts (customer_id, key, name) VALUES ($1, $2, $3) RETURNING id", customer_id, key, name
    )
    return account_id, key


async def switch_service_account(connection: Connection, customer_id: int, account_id: int, *, active: bool) -> str:
    """Switches one on or off, which holds for its next request; returns its name. Raises NotFound."""
    name: str | None = await connection.fetchval(
        "UPDATE service_accounts SET active = $3 WHERE customer_id = $1 AND id = $2 RETURNING name",
        customer_id,
        account_id,
        active,
    )
    if name is None:
        raise NotFound("There is no such service account.")
    return name
