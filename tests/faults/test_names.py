"""Webhook targets whose names are never answered: the others of the process notice nothing, and it ends at once."""

import asyncio
import signal
from typing import Any

import aiohttp
import pytest
from tests.waiting import until
from tests.webhooks.nameserver import name_server

HANGING = 24
ORDERS = 40

# `largesse` with names asked of a server of the test's. A look-up takes 15 seconds, and a thread that went on asking would keep the process for 150.
ASKING = """
import functools, sys
from largesse import cli, main
from largesse.webhooks import resolver
resolver.LONGEST_S, resolver._TRY_S = 15.0, 10.0
main.Resolver = functools.partial(main.Resolver, nameservers=["{address}"])
cli.main(prog_name="largesse")
"""


@pytest.mark.long
async def test_names_that_hang_hold_up_neither_other_customers_nor_the_end(start_installation: Any) -> None:
    installation = start_installation()
    keys = installation.world["api_keys"]
    async with name_server() as server:
        program = ASKING.format(address=server.address)
        service = await asyncio.to_thread(installation.serve, program=program)
        async with aiohttp.ClientSession(service.url, connector=aiohttp.TCPConnector(limit=0)) as session:

            async def post(path: str, key: str, body: dict[str, Any]) -> int:
                async with session.post(path, json=body, headers={"X-Api-Key": keys[key]}) as response:
                    await response.read()
                    return response.status

            def subscribe(first: int, count: int) -> list[asyncio.Task[int]]:
                return [
                    asyncio.create_task(
                        post(
                            "/webhooks",
                            "acme-prod",
                            {"targetUrl": f"https://{number}.silent.example/", "event": "order.created"},
                        )
                    )
                    for number in range(first, first + count)
                ]

            hanging = subscribe(0, HANGING)
            await until(lambda: len(server.asked) >= 16, 45)  # which is as many as one customer may have under way
            order = {"productId": installation.id("products", "coffee"), "value": 5, "codeQuantity": 1}
            placed = [post("/send/gift", "globex-prod", order) for _ in range(ORDERS)]
            assert await asyncio.gather(*placed) == [200] * ORDERS
            assert not any(task.done() for task in hanging)
            assert await asyncio.gather(*hanging) == [201] * HANGING, "the delivery will judge its socket"

            late = subscribe(HANGING, 8)
            await asyncio.sleep(0.1)
            service.process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(service.process.wait, 60) == 0
            await asyncio.gather(*late, return_exceptions=True)
    assert "Traceback" not in service.log.read_text()
