"""Verifies that deliveries of webhooks are genuine.

    event = largesse_client.webhooks.verify(body, headers, secret)
    if event.type == "order.created":
        print(event.order.reference)

Largesse signs a delivery twice. `X-Service-Signature` covers only the body. `webhook-signature` (https://www.standardwebhooks.com) also covers
the id and the time, so that you notice if somebody else sends an old delivery again.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from largesse_client.arguments import refused
from largesse_client.calls import reader
from largesse_client.errors import InvalidSignature, InvalidWebhook, StaleWebhook
from largesse_client.models import AccountLow, GiftEvent, OrderRecord

T = TypeVar("T")

REPLAY_WINDOW_S = 300.0
_PREFIX = "whsec_"
_CONTRACT = ("x-service-signature", "x-service-signature-new")


@dataclass(frozen=True, slots=True)
class Event:
    """A genuine delivery. `id` and `sent_at` are None if it has only the contract's signature.

    Deliveries come at least once. `id` is the same in all attempts of a delivery, and the `id` of an order in all of its events.
    """

    type: str
    id: str | None
    sent_at: datetime | None
    body: bytes

    @property
    def order(self) -> OrderRecord:
        """The order that the event is about. Raises InvalidWebhook for another event."""
        return _read(self, OrderRecord, "an order")

    @property
    def gift(self) -> GiftEvent:
        """The gift that an event such as `gift.claimed` is about. Raises InvalidWebhook for another event."""
        return _read(self, GiftEvent, "a gift")

    @property
    def account(self) -> AccountLow:
        """The account that `account.low` is about. Raises InvalidWebhook for another event."""
        return _read(self, AccountLow, "an account")


def _read(event: Event, shape: type[T], what: str) -> T:
    try:
        return reader(shape)(event.body)
    except msgspec.DecodeError as error:
        raise InvalidWebhook(f"The event {event.type!r} is not about {what}: {error}") from error


def verify(
    body: bytes,
    headers: Mapping[str, str],
    secret: str | Sequence[str],
    *,
    replay_window_s: float | None = REPLAY_WINDOW_S,
) -> Event:
    """Returns the event of a delivery that was signed with the subscription's `secret`, or one of several, at most `replay_window_s` from now.

    `body` is the raw body, before anything parsed it. The letter case of header names does not matter. Every signature in the headers must be
    right, and one must cover the time: otherwise somebody who has seen a delivery could send it again for ever. Only with
    `replay_window_s=None`, `X-Service-Signature` alone is enough. The event's `type` comes from the signed body. A header with another type is
    refused.

    Raises InvalidSignature, StaleWebhook, InvalidWebhook, and InvalidArgument for a body that is not bytes, an invalid secret, or a window
    below 0.
    """
    if not isinstance(body, bytes | bytearray | memoryview):
        raise refused("body", f"must be the raw bytes, not {type(body).__name__}.")
    if replay_window_s is not None and not replay_window_s >= 0:
        raise refused("replay_window_s", f"must be at least 0, or None, not {replay_window_s}.")
    body, secrets = bytes(body), _listed(secret)
    keys = [_key(one) for one in secrets]
    given = {name.lower(): value for name, value in headers.items()}
    sent_at = _check_standard(body, given, keys, replay_window_s) if "webhook-signature" in given else None
    if "x-service-signature" in given:
        _check_contract(body, [given[name] for name in _CONTRACT if name in given], secrets)
    elif sent_at is None:
        raise InvalidSignature("The delivery has no signature.")
    if sent_at is None and replay_window_s is not None:
        raise StaleWebhook(
            "The delivery has only X-Service-Signature, which does not say when it was signed. "
            "Pass replay_window_s=None to accept it anyway."
        )
    name = _name(body, given.get("x-service-event"))
    return Event(name, given.get("webhook-id") if sent_at else None, sent_at, body)


class _Named(msgspec.Struct):
    event: str | None = None


def _name(body: bytes, header: str | None) -> str:
    """Returns the event that the signed body names. No signature covers the header."""
    try:
        name = reader(_Named)(body).event
    except msgspec.DecodeError as error:
        raise InvalidWebhook(f"The body cannot be understood: {error}") from error
    if name is not None and header is not None and name != header:
        raise InvalidWebhook(f"The header X-Service-Event says {header!r}, the body {name!r}.")
    return name or header or ""


def _check_standard(body: bytes, headers: Mapping[str, str], keys: Sequence[bytes], window_s: float | None) -> datetime:
    """Returns when the delivery was signed."""
    delivery_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    signed = _bytes(f"{delivery_id}.{timestamp}.") + body
    expected = [base64.b64encode(hmac.digest(key, signed, hashlib.sha256)) for key in keys]
    given = [text.partition(",") for text in headers["webhook-signature"].split()]
    # Compares all signatures, so that the time does not show which one is right.
    matches = [
        hmac.compare_digest(_bytes(text), one) for version, _, text in given if version == "v1" for one in expected
    ]
    if not any(matches) or not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 11):
        raise InvalidSignature("The webhook-signature does not match this body, id, time and secret.")
    age_s = time.time() - int(timestamp)
    if window_s is not None and abs(age_s) > window_s:
        raise StaleWebhook(f"The delivery was signed {age_s:.0f} s ago; {window_s:g} s are allowed.")
    return datetime.fromtimestamp(int(timestamp), UTC)


def _check_contract(body: bytes, signatures: Sequence[str], secrets: Sequence[str]) -> None:
    """Checks the contract's signature. During a rotation there are two, by the previous and by the new secret."""
    expected = [f"sha256={hmac.digest(secret.encode(), body, hashlib.sha256).hex()}".encode() for secret in secrets]
    matches = [hmac.compare_digest(_bytes(given.strip()), one) for given in signatures for one in expected]
    if not any(matches):
        raise InvalidSignature("The X-Service-Signature does not match this body and secret.")


def _bytes(header: str) -> bytes:
    """Returns the bytes of a header. Some frameworks pass bytes that are not UTF-8 as surrogates."""
    return header.encode(errors="surrogatepass")


def _listed(secret: object) -> list[str]:
    """Returns one or several secrets as a list. Raises InvalidArgument if there is none."""
    if isinstance(secret, str):
        return [secret]
    if not isinstance(secret, Sequence) or isinstance(secret, bytes):
        raise refused("secret", f"must be a secret or a list of them, not {type(secret).__name__}.")
    if not secret:
        raise refused("secret", "is empty.")
    return list(secret)


def _key(secret: object) -> bytes:
    """Returns the bytes of a secret, which is base64. The first secrets had the URL-safe alphabet and no padding."""
    if not isinstance(secret, str) or not secret.startswith(_PREFIX):
        raise refused("secret", f"must be a subscription's secret, which begins with {_PREFIX}.")
    text = secret.removeprefix(_PREFIX).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not key:  # anybody could sign with an empty key
        raise refused("secret", "is incomplete.")
    return key
