"""An administrator's pages of webhooks: subscriptions, and the state of each delivery."""

from collections.abc import AsyncIterator, Sequence
from typing import Annotated

import msgspec
from starlette.responses import Response

from largesse.base.errors import InvalidRequest, NotFound, StateConflict, TooManyRequests
from largesse.base.i18n.languages import text
from largesse.events.kinds import EVENTS, ORDER_CREATED
from largesse.web.console.context import RequestContext
from largesse.web.console.form import CHANGED, Choices, Text
from largesse.web.console.words import StateNames
from largesse.web.kit.query import INT64
from largesse.webhooks import service
from largesse.webhooks.delivery_store import AttemptRecord, DeliveryRecord, list_deliveries, order_references
from largesse.webhooks.store import MAX_SUBSCRIPTIONS, SubscriptionRecord, list_subscription_records

STATES = StateNames(
    {
        "pending": ("waiting", text("Pending")),
        "delivered": ("good", text("Delivered")),
        "dropped": ("bad", text("Refused permanently")),
        "exhausted": ("bad", text("Given up")),
        "cancelled": ("still", text("Cancelled")),
    }
)
# Why an attempt got no response, by the name that `transport.name_of` returns.
FAILURES = {
    "forbidden_address": text("address not allowed"),
    "timeout": text("timed out"),
    "dns": text("host name not found"),
    "tls": text("certificate not accepted"),
    "connect": text("no connection"),
    "bad_answer": text("answer is not HTTP"),
    "connection_lost": text("connection lost"),
}
_PAGE = 25
_OF_FILE_AT_ONCE = 1_000
_COLUMNS = (
    *(text("Delivery"), text("Event"), text("Order"), text("State"), text("Attempts"), text("Created at (UTC)")),
    *(text("Finished at (UTC)"), text("Next attempt at (UTC)"), text("Last status"), text("Last error")),
    text("Last answer"),
)
_LONGEST_URL = 2048
# Why an address was refused, by the API's sentence about it.
_HTTPS = text("Type an HTTPS address, such as https://example.com/hook.")
_HOST = text("The name of the host is not valid. Type an address such as https://example.com/hook.")
REFUSALS = {
    "`target_url` must not contain blanks, control characters or backslashes.": text(
        "The address has blanks, control characters or backslashes. Remove them."
    ),
    "`target_url` must be an https address without a fragment: https://example.com/hook.": _HTTPS,
    "`target_url` must be an https address.": _HTTPS,
    "`target_url` must percent-encode what RFC 3986 does not allow in a path or query.": text(
        "The address has characters that must be percent-encoded."
    ),
    "`target_url` must not contain a user name or password.": text(
        "Remove the user name and the password from the address."
    ),
    "`target_url` must have a host and, if any, a port from 1 to 65535.": text(
        "Type the name of a host and, if you need one, a port from 1 to 65535."
    ),
    "`target_url` must not percent-encode its host.": _HOST,
    "`target_url` must have a valid host name.": _HOST,
    "`target_url` must write an IPv4 address as four decimal numbers.": _HOST,
    "`target_url` must have a valid IPv6 address between its brackets.": _HOST,
    "`target_url` must be a publicly reachable address.": text(
        "This address is in a private network. Type one that is reachable from the internet."
    ),
}
_TOO_MANY = text("You have reached the limit of %(most)s webhooks. Remove one first.")
# Examples for the Standard Webhooks libraries, which accept our headers and secret unchanged.
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
    ("Ruby", 'require "standardwebhooks"\n\nevent = StandardWebhooks::Webhook.new(secret).verify(body, headers)'),
    ("Java", "import com.standardwebhooks.Webhook;\n\nnew Webhook(secret).verify(body, headers);"),
)


async def show(context: RequestContext) -> Response:
    """Shows the subscriptions with their state, and the form that creates one."""
    return context.page(
        "webhooks.html",
        subscriptions=await _subscriptions(context),
        events=EVENTS,
        chosen=context.form.all("event") if context.form["token"] else [ORDER_CREATED.name],
        states=STATES,
    )


class SubscriptionForm(msgspec.Struct):
    """The address of a new subscription, and its events."""

    target_url: Annotated[str, Text(_LONGEST_URL)]
    event: Annotated[list[str], Choices(EVENTS)]


async def create(context: RequestContext) -> Response:
    """Subscribes an address, and shows the secret once."""
    form, services = context.form, context.services
    subscription = form.read(SubscriptionForm)
    if form.errors:
        return await show(context)
    try:
        created = await service.create_subscription(
            context.actor,
            services.vault,
            subscription.target_url,
            subscription.event if len(subscription.event) > 1 else subscription.event[0],
            allowed=services.settings.webhook_allowed_networks,
            look_up=services.resolver.look_up,
        )
    except InvalidRequest as refusal:
        form.error("target_url", context.say(REFUSALS.get(refusal.detail, _TOO_MANY), most=MAX_SUBSCRIPTIONS))
        return await show(context)
    return context.page("webhook_made.html", made=created, until=None, verifying=VERIFYING)


async def one(context: RequestContext) -> Response:
    """Shows one subscription with its deliveries, newest first. Raises NotFound."""
    subscription = await _subscription(context)
    before = context.parameters.number("before", INT64)
    found = await context.read(list_deliveries, context.principal, subscription.id, before=before, limit=_PAGE + 1)
    return context.page(
        "webhook.html",
        subscription=subscription,
        failures=FAILURES,
        verifying=VERIFYING,
        deliveries=found[:_PAGE],
        older=context.here(before=found[_PAGE - 1].id) if len(found) > _PAGE else None,
        newest=context.here(before=None) if context.query("before") else None,
        states=STATES,
    )


async def download(context: RequestContext) -> Response:
    """Sends all deliveries of a subscription as a CSV file, newest first, each with its last attempt. Raises NotFound."""
    subscription = await _subscription(context)
    columns = [context.say(one) for one in _COLUMNS]
    return await context.csv(f"webhook-deliveries-{subscription.id}.csv", columns, _rows(context, subscription))


async def _rows(context: RequestContext, subscription: SubscriptionRecord) -> AsyncIterator[Sequence[object]]:
    before = None
    while True:
        async with context.database.connection(context.person.scope) as connection:
            try:
                found = await list_deliveries(
                    connection, context.principal, subscription.id, before=before, limit=_OF_FILE_AT_ONCE
                )
            except NotFound:  # the subscription was removed meanwhile, with its deliveries
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
        context.say("Sample") if one.is_sample else orders.get(one.order_id or 0),
        context.say(STATES[one.state][1]),
        len(one.attempts),
        context.instant(one.created_at),
        context.instant(one.finished_at),
        context.instant(one.next_attempt_at),
        *((last.status, _failure(context, last), last.answer) if last else (None, None, None)),
    )


def _failure(context: RequestContext, attempt: AttemptRecord) -> str | None:
    return context.say(FAILURES.get(attempt.error, attempt.error)) if attempt.error else None


async def test(context: RequestContext) -> Response:
    """Sends a sample event. Raises NotFound."""
    subscription = await _subscription(context)
    try:
        event = context.form["event"] or None
        await service.send_sample(context.actor, context.services.delivery_throttle, subscription.id, event)
    except TooManyRequests:
        return _back(context, subscription, context.say("Too many attempts. Wait a minute and try again."))
    return _back(context, subscription, context.say("The sample is being sent. Reload this page in a moment."))


async def again(context: RequestContext) -> Response:
    """Retries one delivery, or all that failed. Raises NotFound."""
    subscription, throttle = await _subscription(context), context.services.delivery_throttle
    count, delivery = 1, context.form["delivery"]
    try:
        if delivery == "failed":
            count = await service.redeliver_failed(context.actor, throttle, subscription.id)
        elif delivery.isdecimal() and len(delivery) < 19:
            await service.redeliver(context.actor, throttle, subscription.id, int(delivery))
        else:
            raise NotFound("There is no such delivery.")
    except TooManyRequests:
        return _back(context, subscription, context.say("Too many attempts. Wait a minute and try again."))
    said = context.say("Deliveries to retry: %(count)s.", count=count)
    return _back(context, subscription, said)


async def rotate(context: RequestContext) -> Response:
    """Replaces the secret of a subscription, and shows the new one once. Raises NotFound."""
    subscription = await _subscription(context)
    try:
        rotated = await service.rotate_secret(context.actor, context.services.vault, subscription.id)
    except StateConflict:
        return _back(context, subscription, context.say(CHANGED))
    return context.page("webhook_made.html", made=rotated, until=rotated.previous_until, verifying=VERIFYING)


async def ask_removal(context: RequestContext) -> Response:
    """Asks whether to remove a subscription. Raises NotFound."""
    return context.page("remove_webhook.html", subscription=await _subscription(context))


async def remove(context: RequestContext) -> Response:
    """Removes a subscription and its waiting deliveries. Raises NotFound."""
    await service.remove_subscription(context.actor, context.uuid("subscription"))
    return context.see("/app/webhooks", context.say("The webhook was removed. No more events are sent to it."))


async def _subscription(context: RequestContext) -> SubscriptionRecord:
    wanted = context.uuid("subscription")
    found = next((each for each in await _subscriptions(context) if each.id == wanted), None)
    if found is None:
        raise NotFound("There is no such subscription.")
    return found


async def _subscriptions(context: RequestContext) -> list[SubscriptionRecord]:
    return await context.read(list_subscription_records, context.principal)


def _back(context: RequestContext, subscription: SubscriptionRecord, said: str) -> Response:
    return context.see(f"/app/webhooks/{subscription.id}", said)
