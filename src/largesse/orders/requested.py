"""What was asked for with an order, so that whoever sends again can tell whether it was the same."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from largesse.base.money import to_number
from largesse.database import Connection
from largesse.identity import Principal
from largesse.orders.finding import find_order


class RequestedRecipient(msgspec.Struct, rename="camel"):
    """One address and name, and how many codes it got in all."""

    email: str
    name: str | None
    quantity: int


class OrderRequest(msgspec.Struct, kw_only=True, rename="camel"):
    """What was asked for, in the words of a send body, as the order keeps it: with what a template or default filled in."""

    reference: Annotated[str, Meta(description="The order's public key")]
    is_own: Annotated[bool, Meta(description="Whether the key's service account placed it")]
    product_id: int | None
    collection_id: int | None
    template_id: int | None
    value: Annotated[float, Meta(description="Per-code face value", examples=[10.0])]
    currency: Annotated[str, Meta(description="ISO currency code", examples=["GBP"])]
    country: Annotated[str, Meta(description="ISO 3166-1 alpha-2", examples=["GB"])]
    source: str
    recipients: Annotated[
        list[RequestedRecipient], Meta(description="In the order they were given; empty for a code batch")
    ]
    code_quantity: Annotated[int, Meta(description="Null when recipients were emailed")] | None
    wrapping_key: str
    from_name: str | None
    message: str | None
    send_at: Annotated[datetime, Meta(tz=True, description="Null when sent immediately")] | None
    account_id: Annotated[int, Meta(description="Null when invoiced")] | None
    expiry_after_days: Annotated[int, Meta(description="Null where it is left to the plan's policy")] | None
    external_reference: str | None


async def read_request(connection: Connection, principal: Principal, reference: str) -> OrderRequest:
    """What the order was asked for with; no codes. Raises NotFound for an order of another customer or environment."""
    row = await find_order(connection, principal, reference)
    is_batch = row["delivery_mode"] == "manual"
    return OrderRequest(
        reference=row["reference"],
        is_own=row["service_account_id"] == principal.service_account_id,
        product_id=row["product_id"],
        collection_id=row["collection_id"],
        template_id=row["template_id"],
        value=to_number(row["value_minor"], row["currency"]),
        currency=row["currency"],
        country=row["country"],
        source=row["source"],
        recipients=[] if is_batch else await _recipients(connection, row["id"]),
        code_quantity=row["code_count"] if is_batch else None,
        wrapping_key=row["wrapping_key"],
        from_name=row["from_name"],
        message=row["message"],
        send_at=row["scheduled_for"],
        account_id=row["account_id"],
        expiry_after_days=row["expiry_after_days"],
        external_reference=row["external_reference"],
    )


async def _recipients(connection: Connection, order_id: int) -> list[RequestedRecipient]:
    rows = await connection.fetch(
        """
        SELECT recipient_email AS email, recipient_name AS name, count(*)::int AS quantity
        FROM lines WHERE order_id = $1 GROUP BY 1, 2 ORDER BY min(number)
        """,
        order_id,
    )
    return [RequestedRecipient(**row) for row in rows]
