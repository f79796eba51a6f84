"""Subscriptions to events, and their deliveries."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode
from uuid import UUID

from largesse_client import arguments
from largesse_client.binding import M, Resource, listing, operation
from largesse_client.calls import Call, Pages, Query, nothing, pages, post, whole
from largesse_client.models import Delivery, NewSubscription, RotatedSecret, Subscription
from largesse_client.webhooks import verify

_INT64 = 9_223_372_036_854_775_807


class Webhooks(Resource[M]):
    """Subscriptions to events. `verify` is the function of `largesse_client.webhooks`."""

    verify = staticmethod(verify)

    @operation
    def create(
        self, target_url: str, event: str | None = None, *, events: Sequence[str] | None = None
    ) -> Call[NewSubscription]:
        """Subscribes an HTTPS address to one `event` or to several `events`; `order.created` by default.

        Only this answer has the secret. The request is never repeated automatically, as each would create another subscription.
        """
        body: dict[str, object] = {"targetUrl": arguments.text("target_url", target_url, 2048, is_required=True)}
        if events is None:
            body["event"] = arguments.text("event", "order.created" if event is None else event, 200)
        elif event is None:
            body["events"] = arguments.texts("events", events, 200)
        else:
            raise arguments.refused("events", "or `event` must be given, not both.")
        return post("/webhooks", NewSubscription, body, is_repeatable=False)

    @listing
    def list(self) -> Pages[Subscription]:
        """Returns all subscriptions, newest first."""
        return whole("/webhooks", Subscription)

    @operation
    def delete(self, subscription_id: UUID | str) -> Call[None]:
        """Ends a subscription."""
        return Call("DELETE", _path(subscription_id), nothing, ends=True)

    @operation
    def rotate_secret(self, subscription_id: UUID | str) -> Call[RotatedSecret]:
        """Replaces the secret. For 24 hours, the old one signs too. The request is never repeated automatically, as each would replace it again."""
        return post(f"{_path(subscription_id)}/rotate-secret", RotatedSecret, is_repeatable=False)

    @listing
    def deliveries(self, subscription_id: UUID | str, *, page_size: int = 50) -> Pages[Delivery]:
        """Returns the deliveries of the last 30 days, newest first, with every attempt."""

        def then(query: Query, page: Sequence[Delivery]) -> Query:
            return {**query, "before": page[-1].id}

        size = arguments.number("page_size", page_size, most=arguments.MAX_PAGE)
        return pages(f"{_path(subscription_id)}/deliveries", Delivery, {}, size, then)

    @operation
    def redeliver(self, subscription_id: UUID | str, delivery_id: int) -> Call[Delivery]:
        """Makes a delivery due again now."""
        number = arguments.number("delivery_id", delivery_id, most=_INT64)
        path = f"{_path(subscription_id)}/deliveries/{number}/redeliver"
        return post(path, Delivery, is_repeatable=False)

    @operation
    def test(self, subscription_id: UUID | str, *, event: str | None = None) -> Call[Delivery]:
        """Sends a signed sample of an event, by default the subscription's first. A sample order has the `id` 0."""
        query = "" if event is None else f"?{urlencode({'event': arguments.text('event', event, 200)})}"
        return post(f"{_path(subscription_id)}/test{query}", Delivery, is_repeatable=False)


def _path(subscription_id: UUID | str) -> str:
    return f"/webhooks/{arguments.uuid('subscription_id', subscription_id)}"
