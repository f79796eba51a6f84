"""The headers of a delivery, with two signatures: the contract's over the body, and Standard Webhooks' over id, time and body.

The contract's (X-Service-Signature) does not protect from replays. Standard Webhooks' (webhook-signature,
https://www.standardwebhooks.com) does, as it covers the id of the delivery and the time of the attempt.
"""

import base64
import secrets
from datetime import datetime

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC

from largesse import __version__
from largesse.base import clock

USER_AGENT = f"Largesse/{__version__}"
_PREFIX = "whsec_"

# Within the 24 to 64 bytes that Standard Webhooks requires. A multiple of three, so that base64 adds no `=`.
_SECRET_BYTES = 33


def new_secret() -> str:
    """Returns a new signing secret in the form of Standard Webhooks: `whsec_` and the base64 of random bytes."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode("ascii")


def standard_key(secret: bytes) -> bytes:
    """Returns the key of the standard signature: the bytes that a secret's base64 encodes.

    The first secrets were in the URL-safe alphabet and without padding.
    """
    text = secret.removeprefix(_PREFIX.encode())
    return base64.b64decode(text.translate(bytes.maketrans(b"-_", b"+/")) + b"==")


class _Secret:
    """A signing secret, ready for both signatures."""

    def __init__(self, secret: bytes) -> None:
        # To copy it for each message takes a third of the time of `hmac.digest`.
        self._service = HMAC(secret, SHA256())
        self._standard = HMAC(standard_key(secret), SHA256())

    def service_signature(self, body: bytes) -> str:
        """Returns `sha256=` and the lower-case hex HMAC-SHA256 of the raw body, keyed with the secret."""
        code = self._service.copy()
        code.update(body)
        return f"sha256={code.finalize().hex()}"

    def standard_signature(self, delivery_id: int, at: int, body: bytes) -> str:
        """Returns `v1,` and the base64 HMAC-SHA256 of id, time (seconds since 1970) and raw body, joined by full stops."""
        code = self._standard.copy()
        code.update(b"%d.%d." % (delivery_id, at))
        code.update(body)
        return f"v1,{base64.b64encode(code.finalize()).decode('ascii')}"


class Signer:
    """Signs the deliveries of one subscription. During a rotation, it also signs with the `previous` secrets, newest first, separated by spaces.

    Then `webhook-signature` has a signature by each secret, as in Standard Webhooks. `X-Service-Signature` is still by the oldest secret,
    and `X-Service-Signature-New` by the new one. So a receiver can use either secret.
    """

    def __init__(self, secret: bytes, previous: bytes = b"") -> None:
        self._secrets = [_Secret(one) for one in (secret, *previous.split())]

    def headers(self, delivery_id: int, event: str, body: bytes, *, now: datetime | None = None) -> dict[str, str]:
        """Returns the headers of an attempt at the time `now`, by default this machine's. All attempts of a delivery have the same `webhook-id`."""
        at = int((now or clock.now()).timestamp())
        new, *previous = self._secrets
        headers = {
            "Content-Type": "application/json",
            "User-Agent": USER_AGENT,
            "X-Service-Event": event,
            "X-Service-Signature": self._secrets[-1].service_signature(body),
            "webhook-id": str(delivery_id),
            "webhook-timestamp": str(at),
            "webhook-signature": " ".join([one.standard_signature(delivery_id, at, body) for one in self._secrets]),
        }
        return {**headers, "X-Service-Signature-New": new.service_signature(body)} if previous else headers
