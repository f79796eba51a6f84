"""POST /quote/…"""

from __future__ import annotations

from functools import partial
from typing import Any

from largesse.base.errors import DailyLimit, InsufficientBalance, OrderLimit, ReferenceUsed
from largesse.customers.restrictions import SEND
from largesse.orders.faults import RequestFaults
from largesse.web.api.operation import Call, Handler, Operation
from largesse.web.api.shapes.orders import QuoteShape, quote_shape
from largesse.web.api.shapes.quoting import read_quoted
from largesse.web.api.shapes.sending import SendBody, SendCollection, SendGift, SendTemplate
from largesse.web.kit.replies import Reply, encode_json
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
    "The body is that of the send; what would be charged is told, and nothing is placed, charged, kept or reserved. What the "
    "send would be refused for is answered in the same way, and `errors` names all of it at once. A send that carries "
    "`quote` is placed only while request and price are what was quoted, and gets 409 otherwise."
)


def _quoting(body: type[SendBody]) -> Handler:
    async def quote(services: Services, call: Call) -> Reply:
        assert call.caller is not None
        found, principal = RequestFaults(), call.principal
        read_recipients = partial(services.orders.read_recipients, principal)
        asked = await read_quoted(call.body, body, principal.plan, found, read_recipients, call.ignored)
        return Reply(encode_json(quote_shape(await services.quoter.quote(call.caller, asked, found))))

    return quote


def _quote_operation(what: str, body: type[SendBody], summary: str, member: dict[str, Any]) -> Operation:
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
        problems=(InsufficientBalance, OrderLimit, DailyLimit, ReferenceUsed),
        example=_EXAMPLE,
        body_examples={
            "emailed": {**member, "recipients": [{"email": "sam@example.com", "name": "Sam"}], "accountId": 1},
            "codeBatch": {**member, "codeQuantity": 25, "accountId": 1},
        },
    )


OPERATIONS = (
    _quote_operation("gift", SendGift, "Tell what sending one product would cost", {"productId": 1, "value": 10.0}),
    _quote_operation(
        "collection", SendCollection, "Tell what sending a collection would cost", {"collectionId": 1, "value": 10.0}
    ),
    _quote_operation("template", SendTemplate, "Tell what sending a template would cost", {"templateId": 1}),
)
