"""The headers of a delivery, its signature among them (spec.md, Events)."""

from __future__ import annotations

import hashlib
import hmac
import time

from largesse import __version__

USER_AGENT = f"Largesse/{__version__}"


def signature(secret: bytes, body: bytes) -> str:
    """`sha256=` and the lower-case hex HMAC-SHA256 of the raw body, keyed with the subscription's secret."""
    return f"sha256={hmac.digest(secret, body, hashlib.sha256).hex()}"


def headers(delivery_id: int, event: str, secret: bytes, body: bytes) -> dict[str, str]:
    """The headers of one attempt. `webhook-id` stays the same over all attempts of a delivery."""
    return {
        "Content-Type": "application/json",
        "User-Agent": USER_AGENT,
        "X-Service-Event": event,
        "X-Service-Signature": signature(secret, body),
        "webhook-id": str(delivery_id),
        "webhook-timestamp": str(int(time.time())),
    }
