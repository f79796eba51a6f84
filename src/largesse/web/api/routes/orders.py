"""POST /send/…, GET /orders, and the paths below /orders/{reference}."""

from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from largesse.base import errors
from largesse.base.batching import Receiver
from largesse.base.decoding import Unreadable, WrongItem
from largesse.base.errors import InvalidRequest, NotFound
from largesse.base.money import to_number
from largesse.customers.access import StaleCaller
from largesse.customers.restrictions import READ, SEND
from largesse.events.kinds import ORDER_CREATED, OrderRecord, Sampled
from largesse.orders.acts import cancel_order, read_receipt
from largesse.orders.lookup import OrderRequest, read_request
from largesse.orders.options import OPTIONS
from largesse.orders.order import SendResponse
from largesse.orders.request import (
    MAX_REFERENCE,
    SendCollection,
    SendGift,
    SendRequest,
    SendTemplate,
    recipients_in,
    reference_in,
)
from largesse.web.api.operation import ORDER_IN_PATH, Call, Handler, Operation
from largesse.web.api.shapes import shaped
from largesse.web.kit.asgi import Reply, encode_json
from largesse.web.kit.problems import spell_name
from largesse.web.kit.services import Services

_EXAMPLE = SendResponse(
    reference=ORDER_IN_PATH["reference"]["examples"][0],
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
# Made from values, so that the examples have every member.
_RESPONSE = msgspec.to_builtins(_EXAMPLE)
_RECORD = msgspec.to_builtins(
    msgspec.structs.replace(
        ORDER_CREATED.sample(Sampled(1, 1, datetime(2030, 1, 2, 9, tzinfo=UTC))),
        id=1,
        reference=_EXAMPLE.reference,
        source_type="api",
        external_reference=_EXAMPLE.external_reference,
        gift_product_id=1,
        from_name=None,
        delivery_mode="send",
    )
)
_RECIPIENTS = [{"email": "sam@example.com", "name": "Sam"}]


class OrdersQuery(msgspec.Struct, frozen=True, rename="camel"):
    """Which orders to list: the newest, those after an order, or the one with a reference."""

    limit: Annotated[int, Meta(ge=1, le=50, description="Orders to return at most")] = 10
    after: (
        Annotated[
            int,
            Meta(
                ge=0,
                le=2_147_483_647,
                description="The `id` of the last order you know, 0 for none: gives those after it, oldest first",
                examples=[0],
            ),
        ]
        | None
    ) = None
    external_reference: Annotated[
        str | None,
        Meta(
            description="Returns the one order that holds this idempotency key, or an empty list. Surrounding blanks are trimmed, "
            "as in a send.",
            examples=["payroll-2030-12-1138"],
            extra_json_schema={
                "minLength": 1,
                "maxLength": MAX_REFERENCE,
                # Not blank, and no control characters.
                "pattern": r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$",
            },
        ),
    ] = None


class CancellationShape(msgspec.Struct, kw_only=True, rename="camel"):
    """An order after its cancellation. A repeated cancellation returns the same."""

    reference: Annotated[str, Meta(description="The order's public key")]
    code_count: Annotated[int, Meta(description="Codes issued with the order")]
    cancelled_count: Annotated[int, Meta(description="Codes voided, by this cancellation and earlier ones")]
    claimed_count: Annotated[int, Meta(description="Codes claimed before, which stay their recipients'")]
    refunded: Annotated[
        float,
        Meta(
            description="The cost of the voided codes, given back in full, in the order currency. Refunds of claimed codes by the operator do not count"
        ),
    ]
    currency: Annotated[str, Meta(description="ISO currency code", examples=["GBP"])]


def _sending(body: type[SendRequest]) -> Handler:
    async def send(services: Services, call: Call) -> Reply:
        request = await _read(services, call, body)
        return Reply(encode_json(await services.orders.send(call.known_caller, request)))

    return send


async def _read(services: Services, call: Call, body: type[SendRequest]) -> SendRequest:
    """Returns the body. For an invalid body, raises ReferenceUsed if its reference is used, else InvalidRequest.

    For a remembered caller, who may be out of date, raises StaleCaller instead.
    """
    principal, raw = call.principal, call.body
    try:
        return call.read(body)
    except InvalidRequest as refusal:
        if call.known_caller.remembered is not None:
            raise StaleCaller from None
        if isinstance(refusal, Unreadable):
            raise
        await services.orders.refuse_used_reference(principal, reference_in(raw))
        if isinstance(refusal, WrongItem):  # names only the first wrong recipient; the next line raises for all of them
            await services.orders.read_recipients(principal, recipients_in(raw))
        raise


async def _orders(services: Services, call: Call) -> Reply:
    lists, query = services.order_lists, call.query
    if query.external_reference is not None:
        return Reply(await lists.of_reference(call.principal, query.external_reference, after=query.after))
    if query.after is None:
        return Reply(await lists.newest(call.principal, limit=query.limit))
    return Reply(await lists.after(call.principal, query.after, limit=query.limit))


def _orders_at_once(services: Services, call: Call, receiver: Receiver[bytes]) -> bool:
    query = call.query
    if query.external_reference is not None or query.after is not None:
        return False
    services.order_lists.newest_for(receiver, call.principal, limit=query.limit)
    return True


async def _order(services: Services, call: Call) -> Reply:
    actor, public_url = call.actor(services), services.settings.public_url
    receipt = await read_receipt(actor, call.principal, services.vault, public_url, call.path["reference"])
    return Reply(encode_json(receipt))


async def _order_request(services: Services, call: Call) -> Reply:
    async with services.database.connection(call.principal.scope) as connection:
        request = await read_request(connection, call.principal, call.path["reference"])
    return Reply(encode_json(request))


async def _cancel(services: Services, call: Call) -> Reply:
    cancellation = await cancel_order(call.actor(services), call.principal, call.path["reference"])
    refunded = to_number(cancellation.refunded_minor, cancellation.currency)
    return Reply(encode_json(shaped(CancellationShape, cancellation, refunded=refunded)))


def _send_operation(
    what: str, body: type[SendRequest], summary: str, description: str, member: dict[str, Any]
) -> Operation:
    return Operation(
        "POST",
        f"/send/{what}",
        f"send{what.capitalize()}",
        summary,
        _sending(body),
        "Orders",
        scope=SEND,
        recalls=body is SendGift,
        shape=SendResponse,
        body=body,
        description=description,
        problems=(
            errors.InsufficientBalance,
            errors.OrderLimit,
            errors.DailyLimit,
            errors.BudgetExceeded,
            errors.ReferenceUsed,
            errors.QuoteChanged,
            errors.QuoteExpired,
        ),
        example=_RESPONSE,
        body_examples={
            "emailed": {
                **member,
                "recipients": _RECIPIENTS,
                "accountId": 1,
                "externalReference": f"{what}-2030-12-1138",
            },
            "codeBatch": {**member, "codeQuantity": 25, "accountId": 1},
        },
    )


_PLACING = (
    "The order is placed and paid whole, or not at all. Give `recipients` to have codes emailed, or `codeQuantity` "
    "to get them in the response. With an `externalReference`, a repeated request is never placed twice: it gets 409. "
    "With a `quote`, it is placed only as it was quoted. With `codeQuantity`, the key needs the scope `codes` too."
)

OPERATIONS = (
    _send_operation("gift", SendGift, "Send one product", _PLACING, {"productId": 1, "value": 10.0}),
    _send_operation(
        "collection",
        SendCollection,
        "Send a collection for each recipient to choose from",
        _PLACING,
        {"collectionId": 1, "value": 10.0},
    ),
    _send_operation("template", SendTemplate, "Send a saved template", _PLACING, {"templateId": 1}),
    Operation(
        "GET",
        "/orders",
        "listOrders",
        "List orders",
        _orders,
        "Orders",
        at_once=_orders_at_once,
        scope=READ,
        shape=list[OrderRecord],
        query=OrdersQuery,
        description="The newest orders, newest first, with the members of the event `order.created`. With `after`: the orders after that `id`, oldest "
        "first. Ask again with the last `id`, and you miss none: a new order is listed once no order with a lower `id` can still appear. With "
        "`externalReference`: the order of that key.",
        example=[_RECORD],
    ),
    Operation(
        "GET",
        "/orders/{reference}",
        "getOrder",
        "Get an order",
        _order,
        "Orders",
        scope=READ,
        shape=SendResponse,
        path_types=ORDER_IN_PATH,
        problems=(NotFound, errors.OtherServiceAccount),
        description="Returns the response of the send again, for example after a timeout. That of a code batch includes the codes: only keys of the service "
        "account that placed it may read it, and they need the scope `codes` too. Each such reading is recorded.",
        example=_RESPONSE,
    ),
    Operation(
        "GET",
        "/orders/{reference}/request",
        "getOrderRequest",
        "Get the request of an order",
        _order_request,
        "Orders",
        scope=READ,
        shape=OrderRequest,
        path_types=ORDER_IN_PATH,
        problems=(NotFound,),
        description="After a 409, it shows whether the order that has the `externalReference` is the one you just sent. It has the members of "
        "a send body except `quote` and `placeholders`, without codes.",
        example={
            "reference": _RESPONSE["reference"],
            "isOwn": True,
            "productId": 1,
            "collectionId": None,
            "templateId": None,
            "value": 10.0,
            "currency": "GBP",
            "country": "GB",
            "source": "api",
            "recipients": [{"email": "sam@example.com", "name": "Sam", "quantity": 1, "wasEmail": None}],
            "codeQuantity": None,
            **{spell_name(option): None for option in OPTIONS},
            "wrappingKey": "default",
            "message": "Thank you!",
            "sendAt": None,
            "accountId": 1,
            "expiryAfterDays": None,
            "externalReference": "gift-2030-12-1138",
            "claimBy": None,
            "reminderDays": [],
        },
    ),
    Operation(
        "POST",
        "/orders/{reference}/cancel",
        "cancelOrder",
        "Cancel an order",
        _cancel,
        "Orders",
        scope=SEND,
        shape=CancellationShape,
        path_types=ORDER_IN_PATH,
        problems=(NotFound, errors.OtherServiceAccount),
        description=(
            "Voids the codes that nobody has claimed, and refunds what they cost to where the order was paid from. It does so once: a repeated "
            "request changes nothing. Claimed gifts stay as they are. A scheduled order is not mailed any more. Needs a key of "
            "the service account that placed the order."
        ),
        example={
            "reference": _EXAMPLE.reference,
            "codeCount": 3,
            "cancelledCount": 2,
            "claimedCount": 1,
            "refunded": 20.0,
            "currency": "GBP",
        },
    ),
)
