"""POST /quote/…: the shape of a quote, and the decoding that finds all errors of a body."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime
from functools import partial
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from largesse.base.decoding import Unreadable, WrongItem, decode_body
from largesse.base.errors import (
    BudgetExceeded,
    DailyLimit,
    InsufficientBalance,
    InvalidRequest,
    OrderLimit,
    ReferenceUsed,
)
from largesse.base.money import to_number
from largesse.customers.restrictions import SEND
from largesse.orders.quoter import Quote, RequestFaults
from largesse.orders.recipients import Recipient
from largesse.orders.request import SendCollection, SendGift, SendRequest, SendTemplate, recipients_in
from largesse.web.api.operation import Call, Handler, Operation
from largesse.web.api.shapes import shaped
from largesse.web.kit.asgi import Reply, encode_json
from largesse.web.kit.problems import spell_name
from largesse.web.kit.services import Services

_EXAMPLE = {
    "value": 10.0,
    "currency": "GBP",
    "codeCount": 1,
    "recipientCount": 1,
    "totalCost": 10.0,
    "deliveryMode": "send",
    "scheduledFor": None,
    "balanceAfter": 990.0,
    "expiresAt": "2030-01-02T09:15:00Z",
    "quote": "AAAAAHDb8kQAAAAAAAAD6EdCUA",
}
_DESCRIPTION = (
    "The body is that of the send. The response says what would be charged. Nothing is placed, charged, stored or reserved. If the send "
    "would be refused, you get the same error, and `errors` names everything that is wrong at once. A send with "
    "this `quote` is placed only if request and price are as quoted, and gets 409 otherwise."
)


class QuoteShape(msgspec.Struct, kw_only=True, rename="camel"):
    """The price of a send, and the token with which a send is placed only at that price."""

    value: Annotated[float, Meta(description="Per-code face value", examples=[10.0])]
    currency: Annotated[str, Meta(description="ISO currency code", examples=["GBP"])]
    code_count: Annotated[int, Meta(description="Codes that would be issued")]
    recipient_count: Annotated[int, Meta(description="Distinct recipients; 0 for a code batch")]
    total_cost: Annotated[float, Meta(description="What would be charged, in the order currency")]
    delivery_mode: Annotated[str, Meta(description="`send` or `manual`", examples=["send"])]
    scheduled_for: Annotated[datetime, Meta(tz=True, description="Null when sent immediately")] | None
    balance_after: Annotated[
        float | None, Meta(description="What the funding account would hold then; null when invoiced")
    ]
    expires_at: Annotated[datetime, Meta(tz=True, description="Until when `quote` holds")]
    quote: Annotated[str, Meta(description="Send it with the order, which is then placed as quoted")]


def _quote_shape(quote: Quote) -> QuoteShape:
    balance_minor = quote.balance_after_minor
    return shaped(
        QuoteShape,
        quote,
        value=to_number(quote.value_minor, quote.currency),
        total_cost=to_number(quote.total_minor, quote.currency),
        balance_after=None if balance_minor is None else to_number(balance_minor, quote.currency),
        quote=quote.token,
    )


# The values that replace refused fields while the others are checked. Fields without an entry become null.
_HARMLESS = {
    "product_id": msgspec.Raw(b"1"),
    "collection_id": msgspec.Raw(b"1"),
    "template_id": msgspec.Raw(b"1"),
    "recipients": msgspec.Raw(b'[{"email":"nobody@example.com"}]'),
    "code_quantity": msgspec.Raw(b"1"),
}
_NULL = msgspec.Raw(b"null")
# More than any body needs: each member is refused at most once, and recipients at most twice.
_MOST_READINGS = 32

ReadRecipients = Callable[[Iterator[Recipient | InvalidRequest]], Awaitable[object]]


async def _read_quoted(
    raw: bytes, kind: type[SendRequest], found: RequestFaults, read_recipients: ReadRecipients, ignored: list[str]
) -> SendRequest:
    """Returns the body of a quote with a harmless value for each field that is wrong, and adds those errors to `found`.

    A send reports its first error, a quote all of them. So the body is decoded again without each refused field, until it decodes.
    `read_recipients` raises InvalidRequest for all wrong recipients; `ignored` gets the names of unknown members.
    Raises Unreadable.
    """
    for reading in range(_MOST_READINGS):
        try:
            return decode_body(raw, kind, None if reading else ignored)
        except Unreadable:
            raise
        except InvalidRequest as refusal:
            if isinstance(refusal, WrongItem):
                with found:
                    await read_recipients(recipients_in(raw))
            raw = _without(raw, found.keep(refusal))
            await asyncio.sleep(0)  # lets other requests run: a large body takes long to decode
    raise AssertionError("each field is refused at most twice")


def _without(raw: bytes, field: str) -> bytes:
    """Returns the body with a harmless value for a field that was refused."""
    members = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    has_recipients = _is_given(members.get("recipients"))
    harmless = _NULL if field == "code_quantity" and has_recipients else _HARMLESS.get(field, _NULL)
    return msgspec.json.encode(members | {spell_name(field): harmless})


def _is_given(value: msgspec.Raw | None) -> bool:
    return value is not None and bytes(value).translate(None, b" \t\r\n") not in {b"null", b"[]"}


def _quoting(body: type[SendRequest]) -> Handler:
    async def quote(services: Services, call: Call) -> Reply:
        found = RequestFaults()
        read_recipients = partial(services.orders.read_recipients, call.principal)
        request = await _read_quoted(call.body, body, found, read_recipients, call.ignored)
        return Reply(encode_json(_quote_shape(await services.quoter.quote(call.known_caller, request, found))))

    return quote


def _quote_operation(what: str, body: type[SendRequest], summary: str, member: dict[str, Any]) -> Operation:
    return Operation(
        "POST",
        f"/quote/{what}",
        f"quote{what.capitalize()}",
        summary,
        _quoting(body),
        "Quotes",
        scope=SEND,
        shape=QuoteShape,
        body=body,
        description=_DESCRIPTION,
        problems=(InsufficientBalance, OrderLimit, DailyLimit, BudgetExceeded, ReferenceUsed),
        example=_EXAMPLE,
        body_examples={
            "emailed": {**member, "recipients": [{"email": "sam@example.com", "name": "Sam"}], "accountId": 1},
            "codeBatch": {**member, "codeQuantity": 25, "accountId": 1},
        },
    )


OPERATIONS = (
    _quote_operation("gift", SendGift, "Quote a product", {"productId": 1, "value": 10.0}),
    _quote_operation("collection", SendCollection, "Quote a collection", {"collectionId": 1, "value": 10.0}),
    _quote_operation("template", SendTemplate, "Quote a template", {"templateId": 1}),
)
