"""What service accounts may order, set by an operator or an administrator."""

from __future__ import annotations

from dataclasses import dataclass

from largesse.base.errors import NotFound, StartError
from largesse.database.pool import Connection
from largesse.identity.narrowing import Limit, read_limits, write_limits


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

    Orders from then on are held to it. Raises StartError for a currency that there is not, NotFound for a service account that is not
    the customer's.
    """
    if not await connection.fetchval("SELECT EXISTS (SELECT FROM currencies WHERE code = $1)", currency):
        raise StartError(f"there is no currency {currency!r}")
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
