"""Real deliveries of a service, and deliveries that were changed in every way."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from largesse_client import errors, models, webhooks

Delivery = tuple[dict[str, str], bytes, str]


@pytest.fixture
def delivered(largesse, world, receiver, eventually) -> Delivery:
    """Returns the headers and the body of an order's delivery, and the secret."""
    made = largesse.webhooks.create(receiver.url)
    order = largesse.send.gift(world.coffee, value=5, code_quantity=1, account_id=world.account)
    eventually(lambda: receiver.received)
    headers, body = receiver.received[0]
    largesse.webhooks.delete(made.id)
    assert order.reference.encode() in body
    return headers, body, made.secret


def contract(headers: dict[str, str]) -> dict[str, str]:
    """Returns only the contract's headers."""
    return {name: value for name, value in headers.items() if not name.lower().startswith("webhook-")}


def standard(headers: dict[str, str]) -> dict[str, str]:
    """Returns only the headers of Standard Webhooks."""
    return {name: value for name, value in headers.items() if name.lower().startswith("webhook-")}


def test_a_genuine_delivery(largesse, delivered: Delivery) -> None:
    headers, body, secret = delivered
    for given in (headers, {k.lower(): v for k, v in headers.items()}, {k.upper(): v for k, v in headers.items()}):
        event = largesse.webhooks.verify(body, given, secret)
        assert (event.type, event.id, event.body) == ("order.created", headers["webhook-id"], body)
        assert event.sent_at is not None
        assert abs(event.sent_at.timestamp() - time.time()) < 60
    assert event.order == largesse.orders.newest(limit=1)[0]
    assert event.order.delivery_mode is models.DeliveryMode.MANUAL
    assert webhooks.verify(bytearray(body), standard(headers), secret).order == event.order


def test_while_a_secret_is_rotated_either_verifies(largesse, receiver, eventually) -> None:
    made = largesse.webhooks.create(receiver.url)
    rotated = largesse.webhooks.rotate_secret(made.id)
    largesse.webhooks.test(made.id)
    eventually(lambda: receiver.received)
    headers, body = receiver.received[0]
    for secret in (made.secret, rotated.secret):
        for given in (headers, contract(headers)):
            assert webhooks.verify(body, given, secret, replay_window_s=None).type == "order.created"
    other = webhooks._PREFIX + base64.b64encode(b"x" * 33).decode()
    for secrets in ([made.secret, rotated.secret], (other, rotated.secret)):
        assert webhooks.verify(body, headers, secrets).type == "order.created"
        assert webhooks.verify(body, contract(headers), secrets, replay_window_s=None).type == "order.created"
    for wrong in (other, [other, other]):
        with pytest.raises(errors.InvalidSignature):
            webhooks.verify(body, headers, wrong)
    largesse.webhooks.delete(made.id)


def test_an_event_is_read_as_what_it_is_about() -> None:
    gift = {
        "id": "evt_1", "event": "gift.claimed", "reference": "F", "customerId": 1, "number": 2, "recipient": None,
        "occurredAt": "2030-01-02T09:00:00Z",
    }  # fmt: skip
    account = {
        "id": "evt_2", "event": "account.low", "customerId": 1, "accountId": 3, "accountName": "Float", "currency": "GBP",
        "balance": 40.10, "below": 50, "occurredAt": "2030-01-02T09:00:00Z",
    }  # fmt: skip
    claimed, low = (
        webhooks.Event(body["event"], None, None, msgspec.json.encode({**body, "more": 1})) for body in (gift, account)
    )
    assert (claimed.gift.number, claimed.gift.recipient) == (2, None)
    assert (low.account.account_id, low.account.balance) == (3, Decimal("40.1"))
    for read in (lambda: claimed.order, lambda: claimed.account, lambda: low.gift, lambda: low.order):
        with pytest.raises(errors.InvalidWebhook, match="is not about a"):
            read()


def test_the_contracts_signature_alone_says_no_instant(delivered: Delivery) -> None:
    headers, body, secret = delivered
    with pytest.raises(errors.StaleWebhook, match="replay_window_s=None"):
        webhooks.verify(body, contract(headers), secret)
    event = webhooks.verify(body, contract(headers), secret, replay_window_s=None)
    assert (event.type, event.id, event.sent_at) == ("order.created", None, None)


@pytest.mark.parametrize("keep", [dict, contract, standard])
def test_what_was_changed_is_refused(delivered: Delivery, keep: Any) -> None:
    headers, body, secret = delivered
    given = keep(headers)
    other = webhooks._PREFIX + base64.b64encode(b"x" * 33).decode()
    for changed_body, changed_secret in ((body + b" ", secret), (body[:-1], secret), (b"", secret), (body, other)):
        with pytest.raises(errors.InvalidSignature):
            webhooks.verify(changed_body, given, changed_secret, replay_window_s=None)
    for name in given:
        if name.lower() not in {"x-service-event", "content-type", "user-agent", "host", "content-length"}:
            for value in ("", "x", "\u00e9", "v1,\udcff", given[name] + "0", "v1,", "sha256="):
                if name.lower() in {"x-service-signature"} | {n for n in given if n.startswith("webhook-")}:
                    with pytest.raises(errors.InvalidSignature):
                        webhooks.verify(body, {**given, name: value}, secret, replay_window_s=None)


def test_one_wrong_signature_beside_a_right_one_is_refused(delivered: Delivery) -> None:
    headers, body, secret = delivered
    with pytest.raises(errors.InvalidSignature, match="X-Service-Signature"):
        webhooks.verify(body, {**headers, "X-Service-Signature": "sha256=" + "0" * 64}, secret)
    with pytest.raises(errors.InvalidSignature, match="webhook-signature"):
        webhooks.verify(body, {**headers, "webhook-signature": "v1,AAAA"}, secret)


def test_the_name_is_that_of_the_signed_body(delivered: Delivery) -> None:
    headers, body, secret = delivered
    given = {name.lower(): value for name, value in headers.items()}
    assert webhooks.verify(body, standard(headers), secret).type == "order.created"
    with pytest.raises(errors.InvalidWebhook, match=r"says 'gift.claimed', the body 'order.created'"):
        webhooks.verify(body, {**given, "x-service-event": "gift.claimed"}, secret)
    with pytest.raises(errors.InvalidWebhook, match="cannot be understood"):
        webhooks.verify(b"x", signed(SECRET, b"x", str(int(time.time()))), SECRET)


def test_one_of_several_standard_signatures_is_enough(delivered: Delivery) -> None:
    """As while a secret is rotated. Unknown versions are ignored."""
    headers, body, secret = delivered
    several = f"v1a,AAAA v1,AAAA {headers['webhook-signature']}"
    assert webhooks.verify(body, {**headers, "webhook-signature": several}, secret).id


def test_nothing_signed(delivered: Delivery) -> None:
    _, body, secret = delivered
    with pytest.raises(errors.InvalidSignature, match="no signature"):
        webhooks.verify(body, {"X-Service-Event": "order.created"}, secret, replay_window_s=None)


def signed(secret: str, body: bytes, at: str, delivery_id: str = "7") -> dict[str, str]:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.digest(key, f"{delivery_id}.{at}.".encode() + body, hashlib.sha256)
    return {
        "webhook-id": delivery_id,
        "webhook-timestamp": at,
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


SECRET = "whsec_" + base64.b64encode(bytes(33)).decode()


@pytest.mark.parametrize("age_s", [-310, 310, 10**9, -(10**9)])
def test_an_old_delivery_is_stale(age_s: int) -> None:
    headers = signed(SECRET, b"{}", str(int(time.time()) - age_s))
    with pytest.raises(errors.StaleWebhook):
        webhooks.verify(b"{}", headers, SECRET)
    assert webhooks.verify(b"{}", headers, SECRET, replay_window_s=None).sent_at
    assert webhooks.verify(b"{}", headers, SECRET, replay_window_s=abs(age_s) + 60).sent_at


@pytest.mark.parametrize("window_s", [float("nan"), -1.0])
def test_a_window_that_is_none_is_refused(window_s: float) -> None:
    with pytest.raises(errors.InvalidArgument, match="replay_window_s"):
        webhooks.verify(b"{}", signed(SECRET, b"{}", "1000"), SECRET, replay_window_s=window_s)


@pytest.mark.parametrize("at", ["", "now", "-1", "1e9", "9" * 12, "1 "])
def test_an_instant_that_is_none(at: str) -> None:
    with pytest.raises(errors.InvalidSignature):
        webhooks.verify(b"{}", signed(SECRET, b"{}", at), SECRET, replay_window_s=None)


@pytest.mark.parametrize("age_s", [0, 290, -290])
def test_within_the_window(age_s: int) -> None:
    assert webhooks.verify(b"{}", signed(SECRET, b"{}", str(int(time.time()) - age_s)), SECRET).id == "7"


def test_secrets_of_the_first_releases() -> None:
    """They are in the URL-safe alphabet, without padding."""
    raw = b"\xfb\xff" * 16
    old = "whsec_" + base64.urlsafe_b64encode(raw).decode().rstrip("=")
    new = "whsec_" + base64.b64encode(raw).decode()
    assert webhooks.verify(b"{}", signed(new, b"{}", str(int(time.time()))), old)


def test_an_event_of_something_else() -> None:
    event = webhooks.verify(b"{}", signed(SECRET, b"{}", str(int(time.time()))), SECRET)
    with pytest.raises(errors.InvalidWebhook, match="not about an order"):
        _ = event.order
