"""The JSON of orders: what sending answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from largesse.base.money import to_number
from largesse.base.vault import Vault
from largesse.lines import CODES_AT_ONCE, IssuedCode
from largesse.orders.kept import KeptOrder
from largesse.orders.options import told_options


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


_ANSWERED = told_options(SendResponse)


async def send_response(
    order: KeptOrder, codes: Sequence[IssuedCode], vault: Vault, public_url: str
) -> SendResponse:
    """What the caller of a send endpoint gets, with `codes` in clear."""
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
        codes=await issued_codes(codes, vault, public_url),
        **{name: getattr(order, name) for name in _ANSWERED},
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
