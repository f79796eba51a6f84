"""The service in production without a mail server, as an operator meets it: started, ordered from, given a server."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.faults.installation import Installation, Service
from tests.mail.conftest import PostOffice
from tests.waiting import until


@pytest.mark.long
async def test_gifts_are_held_until_a_mail_server_is_set_and_then_arrive_once(
    database_url: str, tmp_path: Path
) -> None:
    installation = Installation.external(tmp_path, database_url)
    installation.fill()
    office = PostOffice()
    await office.start()
    client = httpx.AsyncClient(
        headers={"Authorization": f"Bearer {installation.world['api_keys']['globex-prod']}"}, timeout=30
    )
    try:
        service = installation.serve(extra=["--with-worker"])
        gift = {
            "productId": installation.id("products", "coffee"),
            "value": 5,
            "recipients": [{"email": "sam@example.com"}],
        }
        placed = await client.post(f"{service.url}/send/gift", json=gift)
        assert placed.status_code == 200, placed.text
        reference = placed.json()["reference"]
        unwanted = (await client.post(f"{service.url}/send/gift", json=gift)).json()["reference"]

        held = await _until_state(client, service, reference, "held")
        assert (held["sentAt"], held["attempts"], held["reason"]) == (None, 0, "no mail server is set")
        await _until_state(client, service, unwanted, "held")
        assert (await client.post(f"{service.url}/orders/{unwanted}/cancel")).status_code == 200
        await _until_state(client, service, unwanted, "cancelled")
        assert service.terminate() == 0
        [doubt] = [line for line in _log(service) if line.get("setting") == "LARGESSE_SMTP_URL"]
        assert (doubt["level"], doubt["event"]) == ("warning", "setting_doubtful")
        assert "held" in doubt["doubt"]

        installation.environ["LARGESSE_SMTP_URL"] = office.url
        service = installation.serve(extra=["--with-worker"])
        sent = await _until_state(client, service, reference, "sent")
        assert sent["sentAt"] is not None
        assert sent["reason"] is None
        await asyncio.sleep(3)  # longer than the worker waits before it looks for held mail again
        assert [envelope.rcpt_tos for envelope in office.got] == [["sam@example.com"]]
        assert service.terminate() == 0
        assert not [line for line in _log(service) if line.get("setting") == "LARGESSE_SMTP_URL"]
    finally:
        for one in installation.services:
            one.kill()
        await client.aclose()
        await office.close()


async def _until_state(client: httpx.AsyncClient, service: Service, reference: str, state: str) -> Any:
    """What is told of the order's one recipient, once its mail is in that state."""
    told: Any = None

    async def reached() -> bool:
        nonlocal told
        [told] = (await client.get(f"{service.url}/orders/{reference}/deliveries")).json()
        return bool(told["state"] == state)

    await until(reached)
    return told


def _log(service: Service) -> list[Any]:
    return [json.loads(line) for line in service.log.read_text().splitlines()]
