"""What was asked for with an order, so that whoever sends again can tell whether it was the same."""

from __future__ import annotations

import msgspec

from largesse.database.pool import Connection, Row
from largesse.identity.principal import Principal
from largesse.identity.standing import is_own
from largesse.orders.finding import find_order
from largesse.orders.kept import KeptOrder, kept_order


class RequestedRecipient(msgspec.Struct, frozen=True):
    """One address and name, and how many codes it got in all."""

    email: str
    name: str | None
    quantity: int


class OrderRequest(msgspec.Struct, frozen=True):
    """What was asked for, as the order keeps it: with what a template or default filled in."""

    order: KeptOrder
    is_own: bool  # whether it is the asker's to decide over
    recipients: list[RequestedRecipient]  # in the order they were given; none of a code batch


async def read_request(connection: Connection, principal: Principal, reference: str) -> OrderRequest:
    """What the order was asked for with; no codes. Raises NotFound for an order of another customer or environment."""
    row = await find_order(connection, principal, reference)
    order = kept_order(row)
    own = is_own(principal, order.service_account_id, order.user_id)
    return OrderRequest(order, own, [] if order.is_batch else await _recipients(connection, row))


async def _recipients(connection: Connection, order: Row) -> list[RequestedRecipient]:
    rows = await connection.fetch(
        """
        SELECT recipient_email AS email, recipient_name AS name, count(*)::int AS quantity
        FROM lines WHERE customer_id = $1 AND order_id = $2 GROUP BY 1, 2 ORDER BY min(number)
        """,
        order["customer_id"],
        order["id"],
    )
    return [RequestedRecipient(**row) for row in rows]
