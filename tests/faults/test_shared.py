"""Several processes on one installation at once, and a key deleted under them."""

import asyncio
import time
from typing import Any

import aiohttp
import pytest


@pytest.mark.long
async def test_a_deleted_key_serves_no_request_begun_later(start_installation: Any) -> None:
    installation = start_installation()
    services = [await asyncio.to_thread(installation.serve) for _ in range(2)]
    secret = installation.world["api_keys"]["acme-other"]
    (key_id,) = [line.split()[0] for line in installation.run("keys", "list").splitlines() if "acme/acme-other" in line]
    body = {
        "productId": installation.id("products", "coffee"),
        "value": 5,
        "codeQuantity": 1,
        "accountId": installation.id("funding_accounts", "gbp"),
    }
    replies: list[tuple[float, int]] = []
    ended_at: list[float] = []
    enough = asyncio.Event()

    async def hammer(session: aiohttp.ClientSession, url: str) -> None:
        after = 0
        while after < 20:
            sent_at = time.monotonic()
            async with session.post(f"{url}/send/gift", json=body) as response:
                await response.read()
            replies.append((sent_at, response.status))
            if response.status == 200 and len(replies) > 100:
                enough.set()
            if ended_at and sent_at > ended_at[0]:
                after += 1

    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {secret}"}) as session:
        clients = [asyncio.create_task(hammer(session, service.url)) for service in services for _ in range(8)]
        await asyncio.wait_for(enough.wait(), 45)
        await asyncio.to_thread(installation.run, "keys", "delete", key_id)
        ended_at.append(time.monotonic())
        await asyncio.wait_for(asyncio.gather(*clients), 45)
    assert {status for _, status in replies} == {200, 401}
    assert {status for sent_at, status in replies if sent_at > ended_at[0]} == {401}
    placed = sum(status == 200 for _, status in replies)
    report = await asyncio.to_thread(installation.verify)
    assert report["counted"]["orders"] == placed


@pytest.mark.long
async def test_two_services_and_a_load_share_an_installation(start_installation: Any) -> None:
    installation = start_installation()
    services = [installation.serve(wait=False) for _ in range(2)]
    loading = asyncio.create_task(asyncio.to_thread(installation.run, "load", "world.yaml"))
    for service in services:
        await asyncio.to_thread(service.wait_until_serving)
    secret = installation.world["api_keys"]["globex-prod"]
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {secret}"}) as session:

        async def send(url: str, number: int) -> tuple[int, int]:
            body = {
                "productId": installation.id("products", "coffee"),
                "value": 5,
                "codeQuantity": 1,
                "externalReference": f"same-{number}",
            }
            async with session.post(f"{url}/send/gift", json=body) as response:
                await response.read()
                return number, response.status

        sent = [send(service.url, number) for number in range(60) for service in services for _ in range(2)]
        answers = await asyncio.gather(*sent)
        await loading
        for number in range(60):
            statuses = sorted(status for which, status in answers if which == number)
            assert statuses == [200, 409, 409, 409]
        report = await asyncio.to_thread(installation.verify)
        assert report["counted"]["orders"] == 60
        first, second = services
        assert await asyncio.to_thread(first.terminate) == 0
        assert await send(second.url, 99) == (99, 200)
    assert await asyncio.to_thread(second.terminate) == 0
    if installation.is_embedded:
        assert installation.postmaster() is None
