"""GET and POST /webhooks, DELETE /webhooks/{id}."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import Meta

from largesse.base.errors import NotFound
from largesse.customers.restrictions import WEBHOOKS
from largesse.events.kinds import ORDER_CREATED
from largesse.events.registry import EVENTS
from largesse.web.api.operation import Call, Operation
from largesse.web.kit.replies import Reply, encode_json
from largesse.web.kit.services import Services
from largesse.webhooks.subscriptions import create_subscription, delete_subscription, list_subscriptions
from largesse.webhooks.targets import check_target, parse_target

_EXAMPLE_ID = "7f3c1e0a-5b52-4d0e-9c55-0f3f5d1c2b6a"
_ID = {"id": {"type": "string", "format": "uuid", "examples": [_EXAMPLE_ID]}}
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
    event: Annotated[
        str,
        Meta(
            description="The event to hear of", examples=[ORDER_CREATED.name], extra_json_schema={"enum": list(EVENTS)}
        ),
    ]


class SubscriptionShape(msgspec.Struct, rename="camel"):
    """A new subscription."""

    id: UUID
    event: str | None
    target_url: str | None
    secret: Annotated[str, Meta(description="Signing secret, shown this once")] | None


class ListedSubscription(msgspec.Struct, rename="camel"):
    """A subscription, without its secret."""

    id: UUID
    event: str | None
    target_url: str | None
    creation_date: Annotated[datetime, Meta(tz=True)]


async def _subscribe(services: Services, call: Call) -> Reply:
    body = call.read(Subscribe)
    allowed = services.settings.webhook_allowed_networks
    target = parse_target(body.target_url, allowed)
    await check_target(target, allowed, services.resolver.look_up, call.principal.customer_id)
    async with call.writing(services) as connection:
        created = await create_subscription(connection, call.principal, services.vault, target, body.event)
        await call.record(
            services,
            connection,
            "webhook.created",
            f"subscription {created.id}",
            after={"event": created.event, "target_url": created.target_url},
        )
    shape = SubscriptionShape(created.id, created.event, created.target_url, created.secret)
    return Reply(encode_json(shape), 201)


async def _subscriptions(services: Services, call: Call) -> Reply:
    async with services.database.connection(call.principal.scope) as connection:
        subscriptions = await list_subscriptions(connection, call.principal)
    return Reply(encode_json([ListedSubscription(s.id, s.event, s.target_url, s.created_at) for s in subscriptions]))


async def _unsubscribe(services: Services, call: Call) -> Reply:
    subscription_id = call.uuid()
    async with call.writing(services) as connection:
        await delete_subscription(connection, call.principal, subscription_id)
        await call.record(services, connection, "webhook.deleted", f"subscription {subscription_id}")
    return Reply(b"", 204)


OPERATIONS = (
    Operation(
        "POST",
        "/webhooks",
        "createWebhook",
        "Subscribe a URL to an event",
        _subscribe,
        "Webhooks",
        scope=WEBHOOKS,
        status=201,
        shape=SubscriptionShape,
        body=Subscribe,
        description="The secret signs every delivery and is shown in this answer alone. A customer holds at most "
        "100 subscriptions.",
        example={"id": _EXAMPLE_ID, "event": ORDER_CREATED.name, "targetUrl": _EXAMPLE_URL, "secret": "whsec_…"},
        body_examples={"subscription": {"targetUrl": _EXAMPLE_URL, "event": ORDER_CREATED.name}},
    ),
    Operation(
        "GET",
        "/webhooks",
        "listWebhooks",
        "List subscriptions, newest first",
        _subscriptions,
        "Webhooks",
        scope=WEBHOOKS,
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
    Operation(
        "DELETE",
        "/webhooks/{id}",
        "deleteWebhook",
        "Stop deliveries to a subscription",
        _unsubscribe,
        "Webhooks",
        scope=WEBHOOKS,
        description="From then on nothing more is sent to it.",
        status=204,
        path_types=_ID,
        problems=(NotFound,),
    ),
)
