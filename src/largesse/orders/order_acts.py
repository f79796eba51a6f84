"""Keeping who did what with an order after it was placed: the key and its service account, or the person, and the network address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from largesse.customers.principal import Principal
from largesse.db.pool import Connection


@dataclass(frozen=True, slots=True)
class OrderAct:
    """What somebody did with an order after it was placed, and how often in one go."""

    act: str  # cancel, resend, or read: its codes were read again
    at: datetime
    by: str  # a person or a service account
    times: int


async def record_reading(connection: Connection, principal: Principal, address: str | None, order_id: int) -> None:
    """Keeps that the codes of an order were given out again."""
    await connection.execute(
        """
        INSERT INTO code_readings (customer_id, order_id, service_account_id, api_key_id, user_id, address)
        VALUES ($1, $2, $3, $4, $5, $6::text::inet)
        """,
        principal.customer_id,
        order_id,
        principal.service_account_id,
        principal.key_id,
        principal.user_id,
        address,
    )


async def list_acts(connection: Connection, customer_id: int, order_id: int, *, limit: int = 100) -> list[OrderAct]:
    """What was done with an order after it was placed, the newest first."""
    rows = await connection.fetch(
        """
        SELECT act, acted_at AS at, coalesce(u.name, s.name, '') AS by, count(*)::int AS times
        FROM (
            SELECT act, acted_at, user_id, service_account_id FROM order_acts
            WHERE customer_id = $1 AND order_id = $2
            UNION ALL
            SELECT 'read', read_at, user_id, service_account_id FROM code_readings
            WHERE customer_id = $1 AND order_id = $2
        ) AS acts
        LEFT JOIN users AS u ON u.id = user_id
        LEFT JOIN service_accounts AS s ON s.id = service_account_id
        GROUP BY 1, 2, 3 ORDER BY 2 DESC LIMIT $3
        """,
        customer_id,
        order_id,
        limit,
    )
    return [OrderAct(**row) for row in rows]


async def record_cancel(connection: Connection, principal: Principal, address: str | None, order_id: int) -> None:
    """Keeps that codes of an order were voided."""
    await _record(connection, principal, address, order_id, "cancel", [None])


async def record_resends(
    connection: Connection, principal: Principal, address: str | None, order_id: int, message_ids: Sequence[int]
) -> None:
    """Keeps that the mail of recipients was asked for again, as those messages."""
    await _record(connection, principal, address, order_id, "resend", message_ids)


async def _record(
    connection: Connection,
    principal: Principal,
    address: str | None,
    order_id: int,
    act: str,
    message_ids: Sequence[int | None],
) -> None:
    who = (principal.service_account_id, principal.key_id, principal.user_id, address)
    await connection.executemany(
        """
        INSERT INTO order_acts
            (customer_id, order_id, act, message_id, service_account_id, api_key_id, user_id, address, acted_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8::text::inet, clock_now())
        """,
        [(principal.customer_id, order_id, act, message_id, *who) for message_id in message_ids],
    )
