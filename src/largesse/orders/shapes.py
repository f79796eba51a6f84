"""The JSON of orders: what sending answers, and the order record of an order that is being placed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from largesse.base.money import to_number
from largesse.base.vault import Vault
from largesse.events import ORDER_CREATED, OrderRecord
from largesse.lines import CODES_AT_ONCE, IssuedCode
from largesse.orders.order import Order


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
    codes: Annotated[
        list[IssuedCodeShape], Meta(description="Of a code batch; empty when recipients were emailed")
    ]


async def send_response(order: Order, vault: Vault, public_url: str) -> SendResponse:
    """What the caller of a send endpoint gets."""
    manual = order.wanted.delivery_mode == "manual"
    codes = await issued_codes(order.codes, vault, public_url) if manual else []
    return SendResponse(
        reference=order.reference,
        gift_selection_type=order.gift.selection,
        value=to_number(order.gift.value_minor, order.currency),
        currency=order.currency,
        code_count=order.code_count,
        recipient_count=order.wanted.recipient_count,
        total_cost=to_number(order.total_minor, order.currency),
        delivery_mode=order.wanted.delivery_mode,
        scheduled_for=order.wanted.scheduled_for,
        external_reference=order.wanted.external_reference,
        codes=codes,
    )


async def issued_codes(codes: Sequence[IssuedCode], vault: Vault, public_url: str) -> list[IssuedCodeShape]:
    """Codes with their PINs and claim links, in clear; other requests get their turn in between."""
    shapes: list[IssuedCodeShape] = []
    for start in range(0, len(codes), CODES_AT_ONCE):
        if start:
            await asyncio.sleep(0)
        part = codes[start : start + CODES_AT_ONCE]
        links = claim_links(part, vault, public_url)
        shapes += [
            IssuedCodeShape(code.code_text, code.pin_text, link)
            for code, link in zip(part, links, strict=True)
        ]
    return shapes


def claim_link(code: IssuedCode, vault: Vault, public_url: str) -> str:
    """The address a recipient opens; it carries a token, not the code."""
    return claim_links([code], vault, public_url)[0]


def claim_links(codes: Iterable[IssuedCode], vault: Vault, public_url: str) -> list[str]:
    """`claim_link` of each code."""
    return [f"{public_url}/claim/{token}" for token in vault.token_all(code.code for code in codes)]


def order_record(order: Order, order_id: int, created_at: datetime) -> OrderRecord:
    """The order record of an order that is being placed."""
    return OrderRecord(
        id=order_id,
        event=ORDER_CREATED.name,
        reference=order.reference,
        customer_id=order.principal.customer_id,
        value=to_number(order.gift.value_minor, order.currency),
        currency=order.currency,
        country=order.gift.country,
        source_type=order.wanted.source,
        external_reference=order.wanted.external_reference,
        gift_selection_type=order.gift.selection,
        gift_product_id=order.gift.product_id,
        gifts_collection_id=order.gift.collection_id,
        wrapping_key=order.wrapping_key,
        from_name=order.wanted.from_name,
        delivery_mode=order.wanted.delivery_mode,
        line_count=order.code_count,
        created_by=order.principal.service_account_id,
        creation_date=created_at,
    )
