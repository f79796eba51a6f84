"""Deliveries of webhooks and mail."""

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from largesse.base.email import MAX_EMAIL
from largesse.base.errors import NotFound, OtherServiceAccount, TooManyRequests
from largesse.customers.restrictions import READ, SEND, WEBHOOKS
from largesse.events.kinds import EVENTS, ORDER_CREATED
from largesse.mail.recipients import list_order_deliveries
from largesse.mail.resending import SentMeanwhileError
from largesse.mail.service import resend_mail
from largesse.web.api.operation import ORDER_IN_PATH, UUID_IN_PATH, Call, Operation, ParameterTypes
from largesse.web.api.reading import Paging
from largesse.web.api.shapes import in_shape
from largesse.web.kit.asgi import Reply
from largesse.web.kit.query import INT32, INT64
from largesse.web.kit.services import Services
from largesse.webhooks.delivery_store import list_deliveries
from largesse.webhooks.outcomes import MAX_ATTEMPTS
from largesse.webhooks.service import redeliver, send_sample

_DELIVERY: ParameterTypes = {
    **UUID_IN_PATH,
    "deliveryId": {
        "type": "integer",
        "format": "int64",
        "minimum": 1,
        "description": "The `id` of the delivery",
        "examples": [7],
    },
}
_EXAMPLE_DELIVERY: dict[str, Any] = {
    "id": 7,
    "event": ORDER_CREATED.name,
    "orderId": 1,
    "state": "pending",
    "attempts": [
        {
            "number": 1,
            "startedAt": "2030-01-02T09:00:00Z",
            "durationMs": 31,
            "status": 503,
            "error": None,
            "answer": "try later",
        }
    ],
    "attemptsLeft": 11,
    "nextAttemptAt": "2030-01-02T09:00:04Z",
    "createdAt": "2030-01-02T09:00:00Z",
    "finishedAt": None,
}
_EXAMPLE_SAMPLE: dict[str, Any] = {
    **_EXAMPLE_DELIVERY,
    "orderId": None,
    "attempts": [],
    "attemptsLeft": 12,
    "nextAttemptAt": "2030-01-02T09:00:00Z",
}
_EXAMPLE_RECIPIENT: dict[str, Any] = {
    "email": "sam@example.com",
    "name": "Sam",
    "codeCount": 1,
    "state": "sent",
    "reason": None,
    "fault": None,
    "dueAt": "2030-01-02T09:00:00Z",
    "sentAt": "2030-01-02T09:00:01Z",
    "attempts": 1,
    "resends": 0,
    "lines": [
        {
            "number": 1,
            "state": "claimed",
            "openedAt": "2030-01-02T09:30:00Z",
            "claimedAt": "2030-01-02T09:31:00Z",
            "chosenAt": None,
            "fulfilledAt": None,
            "expiredAt": None,
            "cancelledAt": None,
        }
    ],
}


class AttemptRecordShape(msgspec.Struct, kw_only=True, rename="camel"):
    """One attempt of a delivery."""

    number: Annotated[int, Meta(description="Counts the attempts from 1")]
    started_at: Annotated[datetime, Meta(tz=True, description="When it began")]
    duration_ms: Annotated[int, Meta(description="How long it took, in milliseconds")]
    status: Annotated[int, Meta(description="The receiver's HTTP status")] | None
    error: Annotated[
        str | None,
        Meta(
            description="Why there was no status: `timeout`, `dns`, `connect`, `tls`, `connection_lost`, `bad_answer`, "
            "`forbidden_address` or `forbidden_target`",
            examples=["timeout"],
        ),
    ]
    answer: Annotated[str, Meta(description="The first 2 KiB of the receiver's answer")] | None


class DeliveryRecordShape(msgspec.Struct, kw_only=True, rename="camel"):
    """The delivery of one event to a subscription."""

    id: Annotated[int, Meta(description="Unique; ascends", extra_json_schema={"format": "int64"})]
    event: Annotated[str, Meta(description="Name of the event", examples=["order.created"])]
    order_id: Annotated[
        int | None,
        Meta(description="The order record's `id`; null for a sample and for an event that is about no order"),
    ]
    state: Annotated[
        str,
        Meta(
            description="`pending`, `delivered` (2xx), `dropped` (another 4xx), `exhausted` (all attempts failed) or "
            "`cancelled` (the subscription ended)",
            examples=["delivered"],
        ),
    ]
    attempts: Annotated[list[AttemptRecordShape], Meta(description="Those made so far, in order")]
    attempts_left: Annotated[int, Meta(description=f"Attempts that may follow, {MAX_ATTEMPTS} at first")]
    next_attempt_at: Annotated[datetime, Meta(tz=True, description="When the next is due; null if none follows")] | None
    created_at: Annotated[datetime, Meta(tz=True, description="When the delivery was created")]
    finished_at: Annotated[datetime, Meta(tz=True, description="When it ended; null while `pending`")] | None


class LineRecordShape(msgspec.Struct, kw_only=True, rename="camel"):
    """The state of a line, and when each step happened; null for a step that has not."""

    number: Annotated[int, Meta(description="Counts the order's lines from 1", examples=[1])]
    state: Annotated[
        str,
        Meta(
            description="`issued` (nobody has claimed it), `claimed` (the recipient has yet to choose), `chosen` (waits for a "
            "voucher, an address or a parcel), `fulfilled`, `expired` or `cancelled`",
            examples=["claimed"],
        ),
    ]
    opened_at: Annotated[datetime, Meta(tz=True, description="When a person first used its link")] | None
    claimed_at: Annotated[datetime, Meta(tz=True, description="When the recipient claimed it")] | None
    chosen_at: Annotated[datetime, Meta(tz=True, description="When its product was fixed")] | None
    fulfilled_at: (
        Annotated[datetime, Meta(tz=True, description="When the recipient got the voucher number, or the parcel left")]
        | None
    )
    expired_at: Annotated[datetime, Meta(tz=True, description="When the gift expired")] | None
    cancelled_at: Annotated[datetime, Meta(tz=True, description="When the code was voided")] | None


class RecipientDeliveryShape(msgspec.Struct, kw_only=True, rename="camel"):
    """The state of the mail to one recipient of an order."""

    email: Annotated[str, Meta(description="Null in a code batch")] | None
    name: Annotated[str, Meta(description="Used to address the gift")] | None
    code_count: Annotated[int, Meta(description="Codes in the mail")]
    state: Annotated[
        str,
        Meta(
            description="`scheduled` (not due yet), `pending` (due, or to be tried again), `held` (until a mail server is set), "
            "`sent`, `captured` (staging), `bounced` (refused for good), `exhausted` (given up: not taken for three days) or `cancelled` (with its codes); `manual` in a code batch, whose codes went to the caller",
            examples=["sent"],
        ),
    ]
    reason: Annotated[
        str | None,
        Meta(
            description="Why it was not delivered: what the mail server said, after its reply code, or in other words what "
            "happened, such as that it does not answer"
        ),
    ]
    fault: Annotated[
        str | None,
        Meta(
            description="Why it was not taken: because of the `recipient`; of the mail `server`, when it cannot be talked to, fails or "
            "refuses whatever it is given; or of the `service`, which could not write the mail. The last two are tried again",
            examples=["server"],
        ),
    ]
    due_at: Annotated[datetime, Meta(tz=True, description="When it was, or is, due first")]
    sent_at: (
        Annotated[datetime, Meta(tz=True, description="When the mail server took it, or the service captured it")]
        | None
    )
    attempts: Annotated[int, Meta(description="How often it was handed to the mail server")]
    resends: Annotated[
        int, Meta(description="How often the mail was sent again. The other members are about the last one")
    ]
    lines: Annotated[list[LineRecordShape], Meta(description="The state of each code")]


class Resend(msgspec.Struct, rename="camel"):
    """Body of POST /orders/{reference}/resend."""

    email: Annotated[
        str, Meta(max_length=MAX_EMAIL, description="A recipient of the order", examples=["sam@example.com"])
    ]
    resends: (
        Annotated[
            int,
            Meta(
                ge=0,
                le=INT32,
                description="The `resends` of this recipient that you read in the deliveries. With it, you can repeat the request: the mail is sent "
                "again once, and each repetition returns its state",
                examples=[0],
            ),
        ]
        | None
    ) = None


class DeliveriesQuery(msgspec.Struct, frozen=True):
    """Which deliveries to list: the newest `limit`, or the newest older than `before`."""

    before: (
        Annotated[
            int,
            Meta(ge=1, le=INT64, description="The last `id` of the page before", extra_json_schema={"format": "int64"}),
        ]
        | None
    ) = None
    limit: Annotated[int, Meta(ge=1, le=200, description="Deliveries to return at most")] = 50


class SampleQuery(msgspec.Struct, frozen=True):
    """Which event of the subscription to send a sample of."""

    event: Annotated[
        str | None,
        Meta(
            description="One of the subscription's events; the first by default",
            examples=[ORDER_CREATED.name],
            extra_json_schema={"enum": list(EVENTS)},
        ),
    ] = None


async def _deliveries(services: Services, call: Call) -> Reply:
    async with services.database.connection(call.principal.scope) as connection:
        found = await list_deliveries(
            connection, call.principal, call.uuid(), before=call.query.before, limit=call.query.limit
        )
    return Reply(in_shape(found, list[DeliveryRecordShape]))


async def _redeliver(services: Services, call: Call) -> Reply:
    subscription_id, delivery_id = call.uuid(), call.id("deliveryId", highest=INT64)
    delivery = await redeliver(call.actor(services), services.delivery_throttle, subscription_id, delivery_id)
    return Reply(in_shape(delivery, DeliveryRecordShape), 202)


async def _test(services: Services, call: Call) -> Reply:
    delivery = await send_sample(call.actor(services), services.delivery_throttle, call.uuid(), call.query.event)
    return Reply(in_shape(delivery, DeliveryRecordShape), 202)


async def _order_deliveries(services: Services, call: Call) -> Reply:
    async with services.database.connection(call.principal.scope) as connection:
        found = await list_order_deliveries(
            connection, call.principal, call.path["reference"], offset=call.query.offset, limit=call.query.limit
        )
    return Reply(in_shape(found, list[RecipientDeliveryShape]))


async def _resend(services: Services, call: Call) -> Reply:
    body = call.read(Resend)
    try:
        recipient = await resend_mail(call.actor(services), call.path["reference"], body.email, body.resends)
    except SentMeanwhileError as sent:  # most likely by an earlier attempt of this request
        recipient = sent.delivery
    return Reply(in_shape(recipient, RecipientDeliveryShape), 202)


OPERATIONS = (
    Operation(
        "GET",
        "/webhooks/{id}/deliveries",
        "listWebhookDeliveries",
        "List the deliveries of a subscription",
        _deliveries,
        "Webhooks",
        scope=WEBHOOKS,
        shape=list[DeliveryRecordShape],
        query=DeliveriesQuery,
        path_types=UUID_IN_PATH,
        problems=(NotFound,),
        description="Newest first, with every attempt, of the last 30 days.",
        example=[_EXAMPLE_DELIVERY],
    ),
    Operation(
        "POST",
        "/webhooks/{id}/deliveries/{deliveryId}/redeliver",
        "redeliverWebhook",
        "Redeliver an event",
        _redeliver,
        "Webhooks",
        scope=WEBHOOKS,
        status=202,
        shape=DeliveryRecordShape,
        path_types=_DELIVERY,
        problems=(NotFound,),
        description=(
            "Makes the next attempt due now. A delivery that had ended gets all its attempts again; "
            "`webhook-id` stays the same. A customer has at most 60 redeliveries and samples a minute."
        ),
        example=_EXAMPLE_DELIVERY,
    ),
    Operation(
        "POST",
        "/webhooks/{id}/test",
        "testWebhook",
        "Send a sample to a subscription",
        _test,
        "Webhooks",
        scope=WEBHOOKS,
        status=202,
        shape=DeliveryRecordShape,
        path_types=UUID_IN_PATH,
        query=SampleQuery,
        problems=(NotFound,),
        description=(
            "Delivers a sample of the subscription's event, signed like every delivery. The `id` of a sample order is 0. A subscription gets at most "
            "10 a minute."
        ),
        example=_EXAMPLE_SAMPLE,
    ),
    Operation(
        "GET",
        "/orders/{reference}/deliveries",
        "listOrderDeliveries",
        "List the deliveries of an order",
        _order_deliveries,
        "Orders",
        scope=READ,
        shape=list[RecipientDeliveryShape],
        query=Paging,
        path_types=ORDER_IN_PATH,
        problems=(NotFound,),
        description=(
            "The state of each recipient's mail and codes, in the order of the request; of a code batch, one entry for each code."
        ),
        example=[_EXAMPLE_RECIPIENT],
    ),
    Operation(
        "POST",
        "/orders/{reference}/resend",
        "resendOrderMail",
        "Mail a recipient's codes again",
        _resend,
        "Orders",
        scope=SEND,
        status=202,
        shape=RecipientDeliveryShape,
        body=Resend,
        path_types=ORDER_IN_PATH,
        problems=(NotFound, OtherServiceAccount, TooManyRequests),
        description="At most 5 times in 24 hours for each recipient. Needs a key of the service account that placed the order.",
        example={**_EXAMPLE_RECIPIENT, "state": "pending", "sentAt": None, "attempts": 0, "resends": 1},
        body_examples={"recipient": {"email": "sam@example.com"}},
    ),
)
