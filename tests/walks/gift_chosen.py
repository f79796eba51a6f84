"""What holds where gift_chosen.patch is applied; test_patches runs this in a patched copy of the tree."""

import asyncio
import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from tests.web.api.conftest import RICH_WORLD, Service, ServiceFactory, start_service
from tests.web.claim.conftest import Recipient
from tests.webhooks.conftest import LOOPBACK, Receiver, receiver

import largesse
from largesse.main import open_worker

__all__ = ["receiver", "start_service"]

PATIENCE_S = 60.0
ZEROS = "evt_000000000000000000000000"


@pytest.fixture(scope="module")
def service(start_service: ServiceFactory) -> Service:
    return start_service(RICH_WORLD, webhook_allowed_networks=LOOPBACK)


def claim_one_of_two(service: Service, url: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Subscribes `url`, places a batch of two codes and claims the second; gives the subscription and the order."""
    client = service.client("hr")
    subscription = client.post("/webhooks", json={"targetUrl": url, "event": "gift.chosen"})
    assert subscription.status_code == 201, subscription.text
    order = service.send("gift", "coffee", value=10, codeQuantity=2).json()
    Recipient(service).gift(order["codes"][1])
    sample = client.post(f"/webhooks/{subscription.json()['id']}/test")
    assert sample.status_code == 202, sample.text
    return subscription.json(), order


async def test_a_chosen_gift_is_told(service: Service, receiver: Receiver) -> None:
    assert Path(largesse.__file__).is_relative_to(Path(__file__).parents[2]), "the code of the copy"
    subscription, order = await asyncio.to_thread(claim_one_of_two, service, receiver.url())
    async with open_worker(service.settings), asyncio.timeout(PATIENCE_S):
        while len(receiver.got) < 2:  # noqa: ASYNC110 - the receiver only collects
            await asyncio.sleep(0.01)
    assert {got.headers["X-Service-Event"] for got in receiver.got} == {"gift.chosen"}
    assert all(got.is_signed_with(subscription["secret"]) for got in receiver.got)
    sample, told = sorted((json.loads(got.body) for got in receiver.got), key=lambda body: body["id"] != ZEROS)
    occurred_at = told.pop("occurredAt")
    assert told.pop("id") != ZEROS
    assert told == {
        "event": "gift.chosen",
        "reference": order["reference"],
        "customerId": sample["customerId"],
        "number": 2,
        "recipient": None,
    }
    assert (sample["id"], sample["event"]) == (ZEROS, "gift.chosen")

    document = (await asyncio.to_thread(service.client().get, "/openapi-events.json")).json()
    content = document["webhooks"]["gift.chosen"]["post"]["requestBody"]["content"]["application/json"]
    whole = {**content["schema"], "components": document["components"]}
    jsonschema_rs.Draft202012Validator(whole, validate_formats=True).validate(
        {**told, "id": "x", "occurredAt": occurred_at}
    )
    page = await asyncio.to_thread(service.client().get, "/docs")
    assert 'href="#giftChosen"' in page.text
    assert 'id="schema-GiftEvent"' in page.text
