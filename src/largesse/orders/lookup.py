"""Finds orders by their reference, if the caller may see or change them, and the request that an order was placed with."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from largesse.base.errors import NotFound
from largesse.base.money import to_number
from largesse.customers.access import is_own, require_own
from largesse.customers.principal import Principal
from largesse.db.fragments import compose
from largesse.db.pool import Connection, Row
from largesse.orders.claim_by_store import read_claim_by, read_reminder_days
from largesse.orders.history import find_first_schedule
from largesse.orders.ids import is_reference
from largesse.orders.options import MEANINGS, OPTIONS
from largesse.orders.order import ALL_COLUMNS, order_row

_FIND = compose(
    "SELECT {all_columns} FROM orders WHERE reference = $1 AND customer_id = $2 AND environment = $3",
    all_columns=ALL_COLUMNS,
)
_REFUNDABLE = """
    SELECT count(*), (SELECT name FROM accounts WHERE customer_id = $1 AND id = $3)
    FROM lines WHERE customer_id = $1 AND order_id = $2
      AND number NOT IN (SELECT number FROM line_states WHERE customer_id = $1 AND order_id = $2)
"""
_RECIPIENTS = """
    SELECT recipient_email AS email, recipient_name AS name, count(*)::int AS quantity, was_email
    FROM lines WHERE customer_id = $1 AND order_id = $2 GROUP BY 1, 2, was_email ORDER BY min(number)
"""


async def find_order(connection: Connection, principal: Principal, reference: str) -> Row:
    """Returns the order's row. Raises NotFound if there is none, or it belongs to another customer or environment."""
    order: Row | None = None
    if is_reference(reference):
        order = await connection.fetchrow(_FIND, reference, principal.customer_id, principal.environment)
    elif reference.isascii() and reference.isdigit():
        raise NotFound("There is no order with that reference. An order's `id` is not its `reference`.")
    if order is None:
        raise NotFound("There is no order with that reference.")
    return order


async def find_own_order(connection: Connection, principal: Principal, reference: str) -> Row:
    """Returns the order's row for a caller who may change it. Raises as `find_order`, and OtherServiceAccount."""
    order = await find_order(connection, principal, reference)
    require_own(principal, order["service_account_id"], order["user_id"], order["reference"])
    return order


if TYPE_CHECKING:
    _RequestedOptions = msgspec.Struct
else:
    _RequestedOptions = msgspec.defstruct(
        "_RequestedOptions",
        [(name, Annotated[str, Meta(description=said)] | None) for name, said in MEANINGS.items()],
        frozen=True,
        kw_only=True,
        rename="camel",
    )


async def read_refundable(connection: Connection, order: Row) -> tuple[int, str | None]:
    """Returns how many codes of an order nobody has claimed, and the name of the account that paid; None when invoiced."""
    row = await connection.fetchrow(_REFUNDABLE, order["customer_id"], order["id"], order["account_id"])
    assert row is not None, "an aggregate has a row"
    return row[0], row[1]


class RequestedRecipient(msgspec.Struct, frozen=True, rename="camel"):
    """One address and name, and how many codes it got in all."""

    email: Annotated[str, Meta(description="Address the gift is emailed to")]
    name: Annotated[str, Meta(description="Used to address the gift")] | None
    quantity: Annotated[int, Meta(description="Codes for this recipient")]
    was_email: (
        Annotated[
            str,
            Meta(
                description="The address before people corrected it, with most of its local part hidden; null otherwise",
                examples=["s•••@example.com"],
            ),
        ]
        | None
    )


class OrderRequest(_RequestedOptions, frozen=True, kw_only=True, rename="camel"):
    """The request that an order was placed with, by the members of a send body. Members left out have the template's value or the default."""

    reference: Annotated[str, Meta(description="The order's public key")]
    is_own: Annotated[bool, Meta(description="Whether the key's service account placed it")]
    product_id: Annotated[int, Meta(description="The product; null for a collection")] | None
    collection_id: Annotated[int, Meta(description="The collection; null for a product")] | None
    template_id: Annotated[int, Meta(description="The template; null if the order was sent without one")] | None
    value: Annotated[float, Meta(description="Per-code face value", examples=[10.0])]
    currency: Annotated[str, Meta(description="ISO currency code", examples=["GBP"])]
    country: Annotated[str, Meta(description="ISO 3166-1 alpha-2", examples=["GB"])]
    source: Annotated[str, Meta(description="Reporting token", examples=["api"])]
    recipients: Annotated[
        list[RequestedRecipient], Meta(description="In the order they were given; empty for a code batch")
    ]
    code_quantity: Annotated[int, Meta(description="Null when recipients were emailed")] | None
    wrapping_key: Annotated[str, Meta(description="Wrapping of the gift", examples=["confetti"])]
    send_at: (
        Annotated[
            datetime,
            Meta(tz=True, description="As asked for, however often people moved the order; null when sent immediately"),
        ]
        | None
    )
    account_id: Annotated[int, Meta(description="Null when invoiced")] | None
    expiry_after_days: Annotated[int, Meta(description="Null where it is left to the plan's policy")] | None
    external_reference: Annotated[str, Meta(description="The idempotency key; null when none was sent")] | None
    claim_by: (
        Annotated[
            datetime,
            Meta(
                tz=True,
                description="As it is now; the customer's default where the request named none, null where there is none",
            ),
        ]
        | None
    )
    reminder_days: Annotated[list[int], Meta(description="Empty where recipients are not reminded")]


async def read_request(connection: Connection, principal: Principal, reference: str) -> OrderRequest:
    """Returns the request of an order, without codes. Raises NotFound for an order of another customer or environment."""
    row = await find_order(connection, principal, reference)
    order = order_row(row)
    key = (order.customer_id, row["id"])
    return OrderRequest(
        reference=order.reference,
        is_own=is_own(principal, order.service_account_id, order.user_id),
        product_id=order.product_id,
        collection_id=order.collection_id,
        template_id=order.template_id,
        value=to_number(order.value_minor, order.currency),
        currency=order.currency,
        country=order.country,
        source=order.source,
        recipients=[] if order.is_batch else await _recipients(connection, row),
        code_quantity=order.code_count if order.is_batch else None,
        send_at=order.scheduled_for and (await find_first_schedule(connection, *key) or order.scheduled_for),
        account_id=order.account_id,
        expiry_after_days=order.expiry_after_days,
        external_reference=order.external_reference,
        claim_by=await read_claim_by(connection, key),
        reminder_days=await read_reminder_days(connection, key),
        **{name: getattr(order, name) for name in OPTIONS},
    )


async def _recipients(connection: Connection, order: Row) -> list[RequestedRecipient]:
    rows = await connection.fetch(_RECIPIENTS, order["customer_id"], order["id"])
    return [RequestedRecipient(**row) for row in rows]
