"""Both signatures as receivers check them: the standard one with the scheme's own library."""

import base64
import hashlib
import hmac
import re
import time
from datetime import timedelta

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from largesse.base import clock
from largesse.webhooks.signing import Signer, new_secret

BODY = '{"id":1,"fromName":"Zoë"}'.encode()


@pytest.mark.parametrize("_", range(20))
def test_the_library_accepts_what_was_signed_with_a_new_secret(_: int) -> None:
    secret = new_secret()
    headers = Signer(secret.encode()).headers(7, "order.created", BODY)
    assert Webhook(secret).verify(BODY, headers) == {"id": 1, "fromName": "Zoë"}
    with pytest.raises(WebhookVerificationError):
        Webhook(new_secret()).verify(BODY, headers)


def test_the_standard_signature_covers_id_instant_and_body() -> None:
    secret = new_secret()
    headers = Signer(secret.encode()).headers(7, "order.created", BODY)
    assert headers["webhook-id"] == "7"
    assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60
    assert re.fullmatch(r"v1,[A-Za-z0-9+/]{43}=", headers["webhook-signature"])
    later = str(int(headers["webhook-timestamp"]) + 1)
    for body, changed in ((BODY + b" ", {}), (BODY, {"webhook-id": "8"}), (BODY, {"webhook-timestamp": later})):
        with pytest.raises(WebhookVerificationError):
            Webhook(secret).verify(body, {**headers, **changed})


def test_a_replay_is_refused() -> None:
    secret = new_secret()
    then = clock.now() - timedelta(minutes=10)
    headers = Signer(secret.encode()).headers(7, "order.created", BODY, now=then)
    with pytest.raises(WebhookVerificationError, match="too old"):
        Webhook(secret).verify(BODY, headers)


def test_the_contracts_signature_is_keyed_with_the_whole_secret() -> None:
    secret = new_secret()
    headers = Signer(secret.encode()).headers(7, "order.created", BODY)
    mac = hmac.new(secret.encode(), BODY, hashlib.sha256).hexdigest()
    assert headers["X-Service-Signature"] == f"sha256={mac}"
    assert headers["X-Service-Event"] == "order.created"


@pytest.mark.parametrize("key", [b"\xfb\xff\xfe" * 10 + b"\xfb\xff", bytes(32), bytes(range(224, 256))])
def test_a_secret_in_the_alphabet_of_the_first_releases(key: bytes) -> None:
    secret = "whsec_" + base64.urlsafe_b64encode(key).decode().rstrip("=")
    headers = Signer(secret.encode()).headers(7, "order.created", BODY)
    assert Webhook(key).verify(BODY, headers, json_parse=False) is None
    as_the_guide_says = secret.removeprefix("whsec_").replace("-", "+").replace("_", "/") + "="
    assert Webhook(as_the_guide_says).verify(BODY, headers, json_parse=False) is None


def test_while_a_secret_is_rotated_either_verifies() -> None:
    new, previous = new_secret(), new_secret()
    headers = Signer(new.encode(), previous.encode()).headers(7, "order.created", BODY)
    for secret in (new, previous):
        assert Webhook(secret).verify(BODY, headers) == {"id": 1, "fromName": "Zoë"}
    with pytest.raises(WebhookVerificationError):
        Webhook(new_secret()).verify(BODY, headers)
    for header, secret in (("X-Service-Signature", previous), ("X-Service-Signature-New", new)):
        assert headers[header] == f"sha256={hmac.new(secret.encode(), BODY, hashlib.sha256).hexdigest()}"
    assert "X-Service-Signature-New" not in Signer(new.encode()).headers(7, "order.created", BODY)


def test_secrets_differ() -> None:
    assert len({new_secret() for _ in range(100)}) == 100
