"""One order and its deliveries to the subscriptions of this run. Their receivers answer in all possible ways."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from largesse_conformance import expect
from largesse_conformance.context import Context, Order
from largesse_conformance.http import Answer
from largesse_conformance.outcome import Skipped
from largesse_conformance.receiver import Delivery, Receiver

# How each path answers its attempts.
ANSWERS = {
    "/ok": [204],
    "/also": [200],
    "/error": [500, 204],
    "/busy": [429, 204],
    "/moved": [302, 204],
    "/refused": [400],
    "/gone": [410],
    "/ended": [204],
}
RETRIED = ("/error", "/busy", "/moved")
_LONGEST_S = 60.0
_QUIET_S = 8.0  # longer than the first wait before a retry, jitter included
CODES = 1


@dataclass(frozen=True)
class Experiment:
    """The order, the subscriptions by their path, and the attempts that arrived."""

    order: Order
    subscriptions: dict[str, dict[str, Any]]
    attempts: dict[str, list[Delivery]]
    ending_gone: Answer  # the answer to the DELETE of the subscription whose receiver answered 410

    def first(self, path: str = "/ok") -> Delivery:
        """Returns the first attempt at a path. Raises Failed if none arrived."""
        expect.expect(self.attempts[path], f"No delivery arrived within {_LONGEST_S:.0f} seconds.")
        return self.attempts[path][0]

    def payload(self) -> dict[str, Any]:
        """Returns the body of the first delivery."""
        found = json.loads(self.first().body, parse_float=Decimal)
        expect.expect(isinstance(found, dict), "The body of the delivery is not an object.")
        return dict(found)

    def secret(self, path: str) -> str:
        """Returns the signing secret of the subscription of a path."""
        return str(expect.member(self.subscriptions[path], "secret"))


def deliveries(context: Context) -> Experiment:
    """Places the order and returns what arrived. Raises Skipped if the service may not call the receiver."""
    return context.once("deliveries", lambda: _run(context))


def _run(context: Context) -> Experiment:
    receiver = Receiver(context.settings.receiver, ANSWERS)
    try:
        base = (context.settings.receiver_url or receiver.url).rstrip("/")
        subscriptions = {path: _subscribe(context, f"{base}{path}") for path in ANSWERS}
        expect.status(context.main.delete(f"/webhooks/{subscriptions['/ended']['id']}"), 204)
        order = context.place(context.gift())
        mine = _Mine(receiver, order.reference)
        receiver.wait(
            lambda: all(mine.count(path) >= 1 + (path in RETRIED) for path in ANSWERS if path != "/ended"), _LONGEST_S
        )
        time.sleep(_QUIET_S)
        ending_gone = context.main.delete(f"/webhooks/{subscriptions['/gone']['id']}")
        return Experiment(order, subscriptions, {path: mine.at(path) for path in ANSWERS}, ending_gone)
    finally:
        for caller, subscription in context.subscribed:
            caller.delete(f"/webhooks/{subscription}")
        context.subscribed.clear()
        receiver.close()


class _Mine:
    """The attempts that are about one order: other orders of the customer may be placed at the same time."""

    def __init__(self, receiver: Receiver, reference: str) -> None:
        self._receiver = receiver
        self._reference = reference.encode()

    def at(self, path: str) -> list[Delivery]:
        return [one for one in self._receiver.at(path) if self._reference in one.body]

    def count(self, path: str) -> int:
        return len(self.at(path))


def _subscribe(context: Context, url: str) -> dict[str, Any]:
    answer = context.main.post("/webhooks", {"targetUrl": url, "event": "order.created"})
    if answer.status == 400:
        raise Skipped(
            f"The service may not call {url}: allow it there (LARGESSE_WEBHOOK_ALLOWED_NETWORKS), or give --receiver-url."
        )
    subscription = expect.found(answer, 201)
    context.subscribed.append((context.main, str(expect.member(subscription, "id"))))
    return dict(subscription)
