"""An administrator's pages of webhooks: subscriptions, and the state of each delivery."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from typing import Annotated

import msgspec
from starlette.responses import Response

from largesse.base.errors import InvalidRequest, NotFound, TooManyRequests
from largesse.base.i18n.templates import text
from largesse.customers.authenticator import person_calls
from largesse.events.registry import EVENTS
from largesse.web.console.context import RequestContext
from largesse.web.console.form import Choice, Text
from largesse.webhooks.delivery_log import (
    DeliveryRecord,
    SubscriptionRecord,
    list_deliveries,
    list_subscription_records,
    order_references,
    redeliver,
    redeliver_failed,
    send_sample,
)
from largesse.webhooks.subscriptions import create_subscription, delete_subscription
from largesse.webhooks.targets import check_target, parse_target

STATES = {
    "pending": ("waiting", text("On its way")),
    "delivered": ("good", text("Delivered")),
    "dropped": ("bad", text("Refused for good")),
    "exhausted": ("bad", text("Given up")),
    "cancelled": ("still", text("Cancelled")),
}
_PAGE = 25
_OF_FILE_AT_ONCE = 1_000
_COLUMNS = (
    *("delivery", "event", "order", "state", "attempts", "created at (UTC)", "finished at (UTC)"),
    *("next attempt at (UTC)", "last status", "last error", "last answer"),
)
_LONGEST_URL = 2048
_SUBJECT = re.compile(r"^`target_url` ")
# By the libraries of Standard Webhooks, which take headers and secret as they are.
VERIFYING = (
    ("Python", "from standardwebhooks import Webhook\n\nevent = Webhook(secret).verify(request.body, request.headers)"),
    (
        "JavaScript",
        'import { Webhook } from "standardwebhooks";\n\nconst event = new Webhook(secret).verify(body, headers);',
    ),
    ("PHP", "$webhook = new \\StandardWebhooks\\Webhook($secret);\n$event = $webhook->verify($body, $headers);"),
    (
        "Go",
        "webhook, err := standardwebhooks.NewWebhook(secret)\nif err == nil {\n\terr = webhook.Verify(body, headers)\n}",
    ),
)


async def show(context: RequestContext) -> Response:
    """The subscriptions with their health, and the form that makes one."""
    return await _shown(context)


class SubscriptionForm(msgspec.Struct):
    """Where events are sent, and which."""

    target_url: Annotated[str, Text(_LONGEST_URL)]
    event: Annotated[str, Choice(EVENTS)]


async def create(context: RequestContext) -> Response:
    """Subscribes an address, and shows the secret this once."""
    form, services, principal = context.form, context.services, context.principal
    subscription = form.read(SubscriptionForm)
    if form.errors:
        return await _shown(context, status=422)
    allowed = services.settings.webhook_allowed_networks
    try:
        target = parse_target(subscription.target_url, allowed)
        await check_target(target, allowed, services.resolver.look_up, principal.customer_id)
        async with context.writing() as connection:
            created = await create_subscription(connection, principal, services.vault, target, subscription.event)
            await context.record(
                connection,
                "webhook.created",
                f"subscription {created.id}",
                after={"event": created.event, "target_url": created.target_url},
            )
    except InvalidRequest as refusal:
        form.error("target_url", _SUBJECT.sub("", refusal.detail))
        return await _shown(context, status=422)
    return context.page("webhook_made.html", made=created, verifying=VERIFYING)


async def one(context: RequestContext) -> Response:
    """One subscription with its deliveries, newest first. Raises NotFound."""
    subscription = await _subscription(context)
    async with context.database.connection(context.person.scope) as connection:
        found = await list_deliveries(
            connection, context.principal, subscription.id, before=context.parameters.number("before"), limit=_PAGE + 1
        )
    return context.page(
        "webhook.html",
        subscription=subscription,
        verifying=VERIFYING,
        deliveries=found[:_PAGE],
        older=context.here(before=found[_PAGE - 1].id) if len(found) > _PAGE else None,
        newest=context.here(before=None) if context.query("before") else None,
        states=STATES,
    )


async def download(context: RequestContext) -> Response:
    """All deliveries of a subscription as a file, newest first, each with its last attempt. Raises NotFound."""
    subscription = await _subscription(context)
    return await context.csv(f"webhook-deliveries-{subscription.id}.csv", _COLUMNS, _rows(context, subscription))


async def _rows(context: RequestContext, subscription: SubscriptionRecord) -> AsyncIterator[Sequence[object]]:
    before = None
    while True:
        async with context.database.connection(context.person.scope) as connection:
            try:
                found = await list_deliveries(
                    connection, context.principal, subscription.id, before=before, limit=_OF_FILE_AT_ONCE
                )
            except NotFound:  # removed meanwhile, with its deliveries
                return
            orders = await order_references(
                connection, context.principal, {one.order_id for one in found if one.order_id is not None}
            )
        for one in found:
            yield _row(context, one, orders)
        if len(found) < _OF_FILE_AT_ONCE:
            return
        before = found[-1].id


def _row(context: RequestContext, one: DeliveryRecord, orders: dict[int, str]) -> Sequence[object]:
    last = one.attempts[-1] if one.attempts else None
    return (
        one.id,
        one.event,
        "sample" if one.order_id is None else orders.get(one.order_id),
        one.state,
        len(one.attempts),
        context.instant(one.created_at),
        context.instant(one.finished_at),
        context.instant(one.next_attempt_at),
        *((last.status, last.error, last.answer) if last else (None, None, None)),
    )


async def test(context: RequestContext) -> Response:
    """Has a sample delivered. Raises NotFound."""
    subscription, principal = await _subscription(context), context.principal
    try:
        context.services.delivery_throttle.count_sample(principal.customer_id, subscription.id)
    except TooManyRequests:
        return _back(context, subscription, context.say("That was tried often just now. Wait a minute."))
    person = context.person
    async with context.writing() as connection:
        caller = await person_calls(
            connection,
            user_id=person.user_id,
            customer_id=person.customer_id,
            environment=person.environment,
            session_id=person.session_id,
        )
        await send_sample(connection, principal, subscription.id, caller.now)
    return _back(context, subscription, context.say("A sample is on its way. Look again in a moment."))


async def again(context: RequestContext) -> Response:
    """Has one delivery made again, or all that failed. Raises NotFound."""
    subscription, principal = await _subscription(context), context.principal
    delivery = context.form["delivery"]
    try:
        context.services.delivery_throttle.count_redelivery(principal.customer_id)
    except TooManyRequests:
        return _back(context, subscription, context.say("That was tried often just now. Wait a minute."))
    async with context.writing() as connection:
        if delivery == "failed":
            count = await redeliver_failed(connection, principal, subscription.id)
        elif delivery.isdecimal() and len(delivery) < 19:
            await redeliver(connection, principal, subscription.id, int(delivery))
            count = 1
        else:
            raise NotFound("There is no such delivery.")
        if count:
            await context.record(
                connection, "webhook.redelivered", f"subscription {subscription.id}", after={"deliveries": count}
            )
    said = context.say("Deliveries that are made again: %(count)s.", count=count)
    return _back(context, subscription, said)


async def ask_removal(context: RequestContext) -> Response:
    """Asks whether a subscription is to be removed. Raises NotFound."""
    return context.page("remove_webhook.html", subscription=await _subscription(context))


async def remove(context: RequestContext) -> Response:
    """Removes a subscription at once, with what waits for it. Raises NotFound."""
    subscription_id = context.uuid("subscription")
    async with context.writing() as connection:
        await delete_subscription(connection, context.principal, subscription_id)
        await context.record(connection, "webhook.deleted", f"subscription {subscription_id}")
    return context.see("/app/webhooks", context.say("The subscription was removed. Nothing more is sent to it."))


async def _subscription(context: RequestContext) -> SubscriptionRecord:
    wanted = context.uuid("subscription")
    found = next((each for each in await _subscriptions(context) if each.id == wanted), None)
    if found is None:
        raise NotFound("There is no such subscription.")
    return found


async def _subscriptions(context: RequestContext) -> list[SubscriptionRecord]:
    async with context.database.connection(context.person.scope) as connection:
        return await list_subscription_records(connection, context.principal)


async def _shown(context: RequestContext, *, status: int = 200) -> Response:
    events = [(event, event) for event in EVENTS]
    return context.page(
        "webhooks.html", status=status, subscriptions=await _subscriptions(context), events=events, states=STATES
    )


def _back(context: RequestContext, subscription: SubscriptionRecord, said: str) -> Response:
    return context.see(f"/app/webhooks/{subscription.id}", said)
