"""Keeping who did what with an order after it was placed: the key and its service account, or the person, and the network address."""

from __future__ import annotations

from largesse.database import Connection
from largesse.identity import Principal


async def record_reading(
    connection: Connection, principal: Principal, address: str | None, order_id: int
) -> None:
    """Keeps that the codes of an order were given out again."""
    await connection.execute(
        """
        INSERT INTO code_readings (order_id, service_account_id, api_key_id, user_id, address)
        VALUES ($1, $2, $3, $4, $5::text::inet)
        """,
        order_id,
        principal.service_account_id,
        principal.key_id,
        principal.user_id,
        address,
    )


async def record_cancel(
    connection: Connection, principal: Principal, address: str | None, order_id: int
) -> None:
    """Keeps that codes of an order were voided."""
    await _record(connection, principal, address, order_id, "cancel", None)


async def record_resend(
    connection: Connection, principal: Principal, address: str | None, order_id: int, message_id: int
) -> None:
    """Keeps that a recipient's mail was asked for again, as that message."""
    await _record(connection, principal, address, order_id, "resend", message_id)


async def _record(
    connection: Connection,
    principal: Principal,
    address: str | None,
    order_id: int,
    act: str,
    message_id: int | None,
) -> None:
    await connection.execute(
        """
        INSERT INTO order_acts (order_id, act, message_id, service_account_id, api_key_id, user_id, address, acted_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7::text::inet, clock_now())
        """,
        order_id,
        act,
        message_id,
        principal.service_account_id,
        principal.key_id,
        principal.user_id,
        address,
    )
