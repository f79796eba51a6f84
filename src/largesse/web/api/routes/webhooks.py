"""GET and POST /webhooks, DELETE /webhooks/{id}."""

from datetime import datetime
from functools import partial
from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import Meta

from largesse.base.errors import InvalidRequest, NotFound, StateConflict
from largesse.customers.restrictions import WEBHOOKS
from largesse.events.kinds import EVENTS, GIFT_CLAIMED, ORDER_CREATED
from largesse.web.api.operation import UUID_IN_PATH, Call, Operation
from largesse.web.api.shapes import in_shape
from largesse.web.kit.asgi import Reply, encode_json
from largesse.web.kit.services import Services
from largesse.webhooks.service import create_subscription, remove_subscription, rotate_secret
from largesse.webhooks.store import Subscription, list_subscriptions

_EXAMPLE_ID = UUID_IN_PATH["id"]["examples"][0]
_MOST_EVENTS = 20
_EXAMPLE_URL = "https://hooks.example.com/largesse"


class Subscribe(msgspec.Struct, rename="camel"):
    """Body of POST /webhooks."""

    target_url: Annotated[
        str,
        Meta(
            max_length=2048,
            description="A publicly reachable HTTPS address",
            examples=[_EXAMPLE_URL],
            extra_json_schema={"format": "uri"},
        ),
    ]
    event: (
        Annotated[
            str,
            Meta(
                description="The event to deliver",
                examples=[ORDER_CREATED.name],
                extra_json_schema={"enum": list(EVENTS)},
            ),
        ]
        | msgspec.UnsetType
    ) = msgspec.UNSET
    events: (
        Annotated[
            list[Annotated[str, Meta(extra_json_schema={"enum": list(EVENTS)})]],
            Meta(
                min_length=1,
                max_length=_MOST_EVENTS,
                description="Several events instead of one; null counts as left out.",
                examples=[[ORDER_CREATED.name, GIFT_CLAIMED.name]],
            ),
        ]
        | None
    ) = None

    @property
    def named(self) -> str | list[str]:
        """The event, or the events. Raises InvalidRequest if neither or both are given."""
        if self.events is None:
            if self.event is msgspec.UNSET:
                raise InvalidRequest("`event` is required, or `events`.")
            return self.event
        if self.event is not msgspec.UNSET:
            raise InvalidRequest("Give `event` or `events`, not both.")
        return self.events


_Id = Annotated[UUID, Meta(description="Names the subscription in `/webhooks/{id}`")]


class RotatedSecretShape(msgspec.Struct, rename="camel"):
    """The new secret of a subscription."""

    id: _Id
    secret: Annotated[str, Meta(description="Signing secret, shown this once")]
    previous_until: Annotated[
        datetime, Meta(tz=True, description="Until then deliveries are signed with the previous secret too")
    ]


_Event = Annotated[str, Meta(description="The event; null where several are named")] | None
_TargetUrl = Annotated[str, Meta(description="HTTPS address that events are sent to")] | None
_Events = Annotated[list[str], Meta(description="The events; left out where one is named")] | msgspec.UnsetType


class SubscriptionShape(msgspec.Struct, rename="camel"):
    """A new subscription."""

    id: _Id
    event: _Event
    target_url: _TargetUrl
    secret: Annotated[str, Meta(description="Signing secret, shown this once")] | None
    events: _Events = msgspec.UNSET


class ListedSubscription(msgspec.Struct, rename="camel"):
    """A subscription, without its secret."""

    id: _Id
    event: _Event
    target_url: _TargetUrl
    creation_date: Annotated[datetime, Meta(tz=True, description="When it was created")]
    events: _Events = msgspec.UNSET


async def _subscribe(services: Services, call: Call) -> Reply:
    body = call.read(Subscribe)
    created = await create_subscription(
        call.actor(services),
        services.vault,
        body.target_url,
        body.named,
        allowed=services.settings.webhook_allowed_networks,
        look_up=services.resolver.look_up,
    )
    events = msgspec.UNSET if created.events is None else list(created.events)
    shape = SubscriptionShape(created.id, created.event, created.target_url, created.secret, events)
    return Reply(encode_json(shape), 201)


async def _subscriptions(services: Services, call: Call) -> Reply:
    async with services.database.connection(call.principal.scope) as connection:
        subscriptions = await list_subscriptions(connection, call.principal)
    return Reply(encode_json([_listed(one) for one in subscriptions]))


def _listed(one: Subscription) -> ListedSubscription:
    events = msgspec.UNSET if one.events is None else list(one.events)
    return ListedSubscription(one.id, one.event, one.target_url, one.created_at, events)


async def _unsubscribe(services: Services, call: Call) -> Reply:
    await remove_subscription(call.actor(services), call.uuid())
    return Reply(b"", 204)


async def _rotate(services: Services, call: Call) -> Reply:
    rotated = await rotate_secret(call.actor(services), services.vault, call.uuid())
    return Reply(in_shape(rotated, RotatedSecretShape))


_operation = partial(Operation, tag="Webhooks", scope=WEBHOOKS)
OPERATIONS = (
    _operation(
        "POST",
        "/webhooks",
        "createWebhook",
        "Subscribe a URL to an event",
        _subscribe,
        status=201,
        shape=SubscriptionShape,
        body=Subscribe,
        description="The secret signs every delivery. It is shown only in this response. A customer has at most 100 subscriptions.",
        example={"id": _EXAMPLE_ID, "event": ORDER_CREATED.name, "targetUrl": _EXAMPLE_URL, "secret": "whsec_…"},
        body_examples={"subscription": {"targetUrl": _EXAMPLE_URL, "event": ORDER_CREATED.name}},
    ),
    _operation(
        "GET",
        "/webhooks",
        "listWebhooks",
        "List subscriptions, newest first",
        _subscriptions,
        description="Those of the customer in the key's environment; secrets are not shown again.",
        shape=list[ListedSubscription],
        example=[
            {
                "id": _EXAMPLE_ID,
                "event": ORDER_CREATED.name,
                "targetUrl": _EXAMPLE_URL,
                "creationDate": "2030-01-02T09:00:00Z",
            }
        ],
    ),
    _operation(
        "DELETE",
        "/webhooks/{id}",
        "deleteWebhook",
        "Delete a subscription",
        _unsubscribe,
        description="Ends the subscription: nothing more is sent to it.",
        status=204,
        path_types=UUID_IN_PATH,
        problems=(NotFound,),
    ),
    _operation(
        "POST",
        "/webhooks/{id}/rotate-secret",
        "rotateWebhookSecret",
        "Replace a subscription's secret",
        _rotate,
        shape=RotatedSecretShape,
        path_types=UUID_IN_PATH,
        problems=(NotFound, StateConflict),
        description="For 24 hours, deliveries are signed with the previous secret too: two signatures in `webhook-signature`; in `X-Service-Signature` that of the "
        "previous secret, and in `X-Service-Signature-New` that of the new one. After a further rotation up to three previous secrets sign, and `X-Service-Signature` is that of the oldest. Of rotations at the same time, one succeeds, and the others are 409.",
        example={"id": _EXAMPLE_ID, "secret": "whsec_…", "previousUntil": "2030-01-03T09:00:00Z"},
    ),
)
