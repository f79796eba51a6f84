"""A receiver as a caller would write it: every delivery is checked by libraries made for its two schemes of signatures.

One scheme is GitHub's (`sha256=` and the hexadecimal HMAC of the raw body), its library `gidgethub`; the other is Standard
Webhooks', with its own library.
"""

import asyncio
from typing import Any

import httpx
import msgspec
import pytest
from gidgethub import ValidationFailure, sansio
from standardwebhooks import Webhook, WebhookVerificationError
from tests.waiting import until
from tests.web.api.conftest import RICH_WORLD, Service, ServiceFactory, start_service
from tests.webhooks.conftest import LOOPBACK, Receiver

from largesse.main import open_worker

__all__ = ["start_service"]

PATIENCE_S = 60.0
RECIPIENTS = [{"email": "zoë@bücher.example", "name": "Zoë 🎁"}, {"email": "sam@example.com", "quantity": 2}]


@pytest.fixture(scope="module")
def service(start_service: ServiceFactory) -> Service:
    return start_service(RICH_WORLD, webhook_allowed_networks=LOOPBACK)


def place_one_of_each(service: Service) -> list[str]:
    """An order from every source and of every form; gives their references."""
    orders: list[tuple[str, str, dict[str, Any]]] = [
        ("gift", "coffee", {"value": 10}),
        ("gift", "coffee", {"value": 5, "codeQuantity": 3, "externalReference": 'Zürich "7" \\ ü'}),
        ("gift", "coffee", {"value": 10, "recipients": RECIPIENTS, "message": "Merci — 谢谢\n</script>"}),
        ("gift", "ramen", {"value": 500, "account": "jpy", "country": "JP"}),
        ("gift", "dates", {"value": 1.25, "account": "kwd", "country": "KW"}),
        ("collection", "treats", {"value": 25, "recipients": RECIPIENTS[1:], "fromName": "Åsa & Co"}),
        ("template", "welcome", {}),
        ("gift", "coffee", {"value": 5, "recipients": RECIPIENTS, "sendAt": "2099-01-01T00:00:00Z"}),
    ]
    answers = [service.send(what, name, **members) for what, name, members in orders]
    for answer in answers:
        assert answer.status_code == 200, answer.text
    return [answer.json()["reference"] for answer in answers]


async def test_a_library_for_the_scheme_accepts_every_delivery_and_the_body_is_the_order(
    service: Service, receiver: Receiver
) -> None:
    client = service.client("hr")

    def subscribe() -> httpx.Response:
        return client.post("/webhooks", json={"targetUrl": receiver.url(), "event": "order.created"})

    subscription = await asyncio.to_thread(subscribe)
    assert subscription.status_code == 201, subscription.text
    secret = subscription.json()["secret"]
    references = await asyncio.to_thread(place_one_of_each, service)
    async with open_worker(service.settings):
        await until(lambda: len(receiver.got) >= len(references), PATIENCE_S)
    page = await asyncio.to_thread(client.get, "/orders?limit=50")
    items = [bytes(item) for item in msgspec.json.decode(page.content, type=list[msgspec.Raw])]
    assert sorted(got.body for got in receiver.got) == sorted(items)
    assert {msgspec.json.decode(item)["reference"] for item in items} == set(references)
    for got in receiver.got:
        signature = got.headers["X-Service-Signature"]
        sansio.validate_event(got.body, signature=signature, secret=secret)
        for body, with_secret in ((got.body + b" ", secret), (got.body, secret + "x")):
            with pytest.raises(ValidationFailure):
                sansio.validate_event(body, signature=signature, secret=with_secret)
        assert Webhook(secret).verify(got.body, got.headers) == msgspec.json.decode(got.body)
        with pytest.raises(WebhookVerificationError):
            Webhook(secret).verify(got.body + b" ", got.headers)
