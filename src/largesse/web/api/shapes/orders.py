"""What is answered about orders, in JSON."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from largesse.base.money import to_number
from largesse.orders.cancelling import Cancellation
from largesse.orders.lookup import OrderRequest
from largesse.orders.options import OPTIONS
from largesse.orders.quoter import Quote
from largesse.orders.row import Receipt


class IssuedCodeShape(msgspec.Struct, rename="camel", gc=False):
    """An issued code."""

    code: Annotated[str, Meta(description="Entered by the recipient", examples=["0000-0000-0000-0000-0"])]
    pin: Annotated[str, Meta(description="Six digits", examples=["000000"])]
    redemption_url: Annotated[str, Meta(description="Shareable claim link")]


class SendResponse(msgspec.Struct, kw_only=True, rename="camel"):
    """A placed order."""

    reference: Annotated[str, Meta(description="Opaque, non-sequential public order key")] | None
    gift_selection_type: Annotated[str, Meta(description="`gift` or `gifts`", examples=["gift"])] | None
    value: Annotated[float, Meta(description="Per-code face value", examples=[10.0])]
    currency: Annotated[str, Meta(description="ISO currency code", examples=["GBP"])] | None
    code_count: Annotated[int, Meta(description="Codes issued")]
    recipient_count: Annotated[int, Meta(description="Distinct recipients; 0 for a code batch")]
    total_cost: Annotated[float, Meta(description="What was charged, in the order currency")]
    delivery_mode: Annotated[str, Meta(description="`send` or `manual`", examples=["send"])] | None
    scheduled_for: Annotated[datetime, Meta(tz=True, description="Null when sent immediately")] | None
    external_reference: Annotated[str, Meta(description="The idempotency key")] | None
    codes: Annotated[list[IssuedCodeShape], Meta(description="Of a code batch; empty when recipients were emailed")]


EXAMPLE_RESPONSE = SendResponse(
    reference="0WBQK7M2PXR4D9VA1C3E",
    gift_selection_type="gift",
    value=10.0,
    currency="GBP",
    code_count=1,
    recipient_count=1,
    total_cost=10.0,
    delivery_mode="send",
    scheduled_for=None,
    external_reference="payroll-2030-12-1138",
    codes=[],
)


def send_response(receipt: Receipt) -> SendResponse:
    """What the caller of a send endpoint gets."""
    order = receipt.order
    return SendResponse(
        reference=order.reference,
        gift_selection_type=order.gift_selection,
        value=to_number(order.value_minor, order.currency),
        currency=order.currency,
        code_count=order.code_count,
        recipient_count=order.recipient_count,
        total_cost=to_number(order.total_minor, order.currency),
        delivery_mode=order.delivery_mode,
        scheduled_for=order.scheduled_for,
        external_reference=order.external_reference,
        codes=[IssuedCodeShape(code.code, code.pin, code.redemption_url) for code in receipt.codes],
    )


class CancellationShape(msgspec.Struct, kw_only=True, rename="camel"):
    """How an order stands after its cancellation; the same however often that is repeated."""

    reference: Annotated[str, Meta(description="The order's public key")]
    code_count: Annotated[int, Meta(description="Codes issued with the order")]
    cancelled_count: Annotated[int, Meta(description="Codes voided, by this cancellation and earlier ones")]
    claimed_count: Annotated[int, Meta(description="Codes claimed before, which stay their recipients'")]
    refunded: Annotated[float, Meta(description="What was given back in all, in the order currency")]
    currency: Annotated[str, Meta(description="ISO currency code", examples=["GBP"])]


def cancellation_shape(cancellation: Cancellation) -> CancellationShape:
    """What the caller of a cancellation gets."""
    return CancellationShape(
        reference=cancellation.reference,
        code_count=cancellation.code_count,
        cancelled_count=cancellation.cancelled_count,
        claimed_count=cancellation.claimed_count,
        refunded=to_number(cancellation.refunded_minor, cancellation.currency),
        currency=cancellation.currency,
    )


if TYPE_CHECKING:
    _RequestedOptions = msgspec.Struct
else:
    # A member for each option.
    _RequestedOptions = msgspec.defstruct(
        "_RequestedOptions", [(name, str | None) for name in OPTIONS], kw_only=True, rename="camel"
    )


class RequestedRecipientShape(msgspec.Struct, rename="camel"):
    """One address and name, and how many codes it got in all."""

    email: str
    name: str | None
    quantity: int


class OrderRequestShape(_RequestedOptions, kw_only=True, rename="camel"):
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
        list[RequestedRecipientShape], Meta(description="In the order they were given; empty for a code batch")
    ]
    code_quantity: Annotated[int, Meta(description="Null when recipients were emailed")] | None
    wrapping_key: str
    send_at: Annotated[datetime, Meta(tz=True, description="Null when sent immediately")] | None
    account_id: Annotated[int, Meta(description="Null when invoiced")] | None
    expiry_after_days: Annotated[int, Meta(description="Null where it is left to the plan's policy")] | None
    external_reference: str | None


def order_request_shape(request: OrderRequest) -> OrderRequestShape:
    """What the caller is told that was asked for."""
    order = request.order
    return OrderRequestShape(
        reference=order.reference,
        is_own=request.is_own,
        product_id=order.product_id,
        collection_id=order.collection_id,
        template_id=order.template_id,
        value=to_number(order.value_minor, order.currency),
        currency=order.currency,
        country=order.country,
        source=order.source,
        recipients=[RequestedRecipientShape(one.email, one.name, one.quantity) for one in request.recipients],
        code_quantity=order.code_count if order.is_batch else None,
        send_at=order.scheduled_for,
        account_id=order.account_id,
        expiry_after_days=order.expiry_after_days,
        external_reference=order.external_reference,
        **{name: getattr(order, name) for name in OPTIONS},
    )


class QuoteShape(msgspec.Struct, kw_only=True, rename="camel"):
    """What a send would be charged, and the token that holds it to that."""

    value: Annotated[float, Meta(description="Per-code face value", examples=[10.0])]
    currency: Annotated[str, Meta(description="ISO currency code", examples=["GBP"])]
    code_count: Annotated[int, Meta(description="Codes that would be issued")]
    recipient_count: Annotated[int, Meta(description="Distinct recipients; 0 for a code batch")]
    total_cost: Annotated[float, Meta(description="What would be charged, in the order currency")]
    delivery_mode: Annotated[str, Meta(description="`send` or `manual`", examples=["send"])]
    scheduled_for: Annotated[datetime, Meta(tz=True, description="Null when sent immediately")] | None
    balance_after: (
        Annotated[float, Meta(description="What the funding account would hold then; null when invoiced")] | None
    )
    expires_at: Annotated[datetime, Meta(tz=True, description="Until when `quote` holds")]
    quote: Annotated[str, Meta(description="To be sent along: what is placed is then what was quoted")]


def quote_shape(quote: Quote) -> QuoteShape:
    """What the caller of a quote gets."""
    balance_minor = quote.balance_after_minor
    return QuoteShape(
        value=to_number(quote.value_minor, quote.currency),
        currency=quote.currency,
        code_count=quote.code_count,
        recipient_count=quote.recipient_count,
        total_cost=to_number(quote.total_minor, quote.currency),
        delivery_mode=quote.delivery_mode,
        scheduled_for=quote.scheduled_for,
        balance_after=None if balance_minor is None else to_number(balance_minor, quote.currency),
        expires_at=quote.expires_at,
        quote=quote.token,
    )
