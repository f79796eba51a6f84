"""Deliveries of webhooks: payload, headers, signature, retries. They need a receiver that the service may call."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time

from largesse_conformance import expect
from largesse_conformance.context import Context
from largesse_conformance.deliveries import RETRIED, deliveries
from largesse_conformance.outcome import Failed
from largesse_conformance.receiver import Delivery
from largesse_conformance.shapes import ORDER_RECORD
from largesse_conformance.suite import add, add_members, check

_USES = ("delivery",)
_TOLERANCE_S = 300

add_members(
    "delivery", "payload of order.created", ORDER_RECORD, lambda context: [deliveries(context).payload()], _USES
)


def _signature(delivery: Delivery, secret: str) -> str:
    return "sha256=" + hmac.new(secret.encode(), delivery.body, hashlib.sha256).hexdigest()


@check(uses=_USES)
def arrives(context: Context) -> None:
    """An order is posted to each subscription, as JSON."""
    for path in ("/ok", "/also"):
        delivery = deliveries(context).first(path)
        expect.equal(delivery.method, "POST", "The method")
        media_type = delivery.headers.get("content-type", "").partition(";")[0]
        expect.equal(media_type, "application/json", "The Content-Type")


@check(uses=_USES)
def event_header(context: Context) -> None:
    """`X-Service-Event` is the name of the event."""
    expect.equal(deliveries(context).first().headers.get("x-service-event"), "order.created", "X-Service-Event")


@check(uses=_USES)
def signature(context: Context) -> None:
    """`X-Service-Signature` is `sha256=` and the lower-case hex HMAC-SHA256 of the raw body, keyed with the secret."""
    experiment = deliveries(context)
    for path in ("/ok", "/also"):
        delivery = experiment.first(path)
        found = delivery.headers.get("x-service-signature", "")
        expected = _signature(delivery, experiment.secret(path))
        expect.expect(
            hmac.compare_digest(found.encode(), expected.encode()),
            "X-Service-Signature is not that of body and secret.",
        )


@check(uses=_USES)
def signature_of_retries(context: Context) -> None:
    """Each attempt is signed."""
    experiment = deliveries(context)
    for delivery in experiment.attempts["/error"]:
        expected = _signature(delivery, experiment.secret("/error"))
        expect.equal(
            delivery.headers.get("x-service-signature") == expected, True, "Whether an attempt's signature is right"
        )


@check(uses=_USES)
def standard_signature(context: Context) -> None:
    """`webhook-signature` signs id, time and body as in Standard Webhooks."""
    experiment = deliveries(context)
    delivery = experiment.first()
    headers = delivery.headers
    signed = f"{headers.get('webhook-id')}.{headers.get('webhook-timestamp')}.".encode() + delivery.body
    try:
        key = base64.b64decode(experiment.secret("/ok").removeprefix("whsec_"))
    except binascii.Error as error:
        raise Failed("The secret is not base64 after `whsec_`.") from error
    expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    expect.expect(
        expected in headers.get("webhook-signature", "").split(" "),
        "webhook-signature is not that of id, time, body and secret.",
    )


@check(uses=_USES)
def timestamp(context: Context) -> None:
    """`webhook-timestamp` is the time of the attempt."""
    found = deliveries(context).first().headers.get("webhook-timestamp", "")
    expect.expect(found.isdecimal(), f"webhook-timestamp is {found!r}.")
    expect.expect(abs(time.time() - int(found)) < _TOLERANCE_S, "webhook-timestamp is minutes from now.")


@check(uses=_USES)
def payload_is_the_record(context: Context) -> None:
    """The payload is the order record that GET /orders lists."""
    experiment = deliveries(context)
    payload, record = experiment.payload(), context.record(experiment.order)
    for member in ORDER_RECORD:
        expect.equal(payload.get(member.name), record.get(member.name), f"`{member.name}` of the payload")


@check(uses=_USES)
def payload_has_no_codes(context: Context) -> None:
    """The payload contains no code, PIN or claim link."""
    experiment = deliveries(context)
    text = experiment.first().body.decode()
    for issued in experiment.order.response["codes"]:
        for name in ("code", "redemptionUrl"):
            expect.expect(issued[name] not in text, f"The payload has the `{name}` of an issued code.")
    expect.expect('"pin"' not in text and '"codes"' not in text, "The payload has a member for codes or PINs.")


def _add_retries() -> None:
    statuses = {"/error": "5xx", "/busy": "429", "/moved": "a redirect"}
    for path in RETRIED:

        def run(context: Context, path: str = path) -> None:
            attempts = deliveries(context).attempts[path]
            expect.equal(len(attempts), 2, "The number of attempts, of which the first was refused for now")

        def same(context: Context, path: str = path) -> None:
            attempts = deliveries(context).attempts[path]
            expect.equal(len({one.body for one in attempts}), 1, "The number of different bodies")
            expect.equal(len({one.headers.get("webhook-id") for one in attempts}), 1, "The number of different ids")

        def backoff(context: Context, path: str = path) -> None:
            attempts = deliveries(context).attempts[path]
            expect.expect(len(attempts) > 1, "There was no second attempt.")
            gap_s = attempts[1].at_s - attempts[0].at_s
            expect.expect(1 <= gap_s <= 30, f"The second attempt came after {gap_s:.1f} seconds, not roughly 4.")

        name = path[1:]
        add(
            f"delivery.retried_after_{name}",
            f"A delivery is retried after {statuses[path]}, until a 2xx.",
            run,
            uses=_USES,
        )
        add(
            f"delivery.same_after_{name}", f"A retry after {statuses[path]} has the same body and id.", same, uses=_USES
        )
        add(
            f"delivery.wait_after_{name}",
            f"The first retry after {statuses[path]} comes after roughly 4 seconds.",
            backoff,
            uses=_USES,
        )


_add_retries()


@check(uses=_USES)
def done_after_2xx(context: Context) -> None:
    """After any 2xx a delivery is done. (At least once: a rare repeat is allowed, three are not.)"""
    for path in ("/ok", "/also"):
        expect.expect(len(deliveries(context).attempts[path]) < 3, "A delivery was repeated although it was accepted.")


@check(uses=_USES)
def dropped_after_4xx(context: Context) -> None:
    """After another 4xx the delivery is dropped."""
    expect.equal(len(deliveries(context).attempts["/refused"]), 1, "The number of attempts")


@check(uses=_USES)
def ended_after_410(context: Context) -> None:
    """After 410 the subscription is deleted."""
    experiment = deliveries(context)
    expect.equal(len(experiment.attempts["/gone"]), 1, "The number of attempts")
    expect.refused(experiment.ending_gone, 404)


@check(uses=_USES)
def none_after_the_end(context: Context) -> None:
    """A subscription that was ended receives nothing."""
    expect.equal(len(deliveries(context).attempts["/ended"]), 0, "The number of attempts")
