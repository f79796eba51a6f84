"""Load on an installation: clients that repeat what was not answered, and what must hold of their orders."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from tests.faults.installation import BALANCE, PATIENCE_S, Installation, Service

CLIENTS = 16
_ENDS_S = 120.0  # until clients have settled what they began, on a machine that is busy with something else


@dataclass(frozen=True)
class Reply:
    """What came back for one request, when it was sent (monotonic), and how long it took; status 0: the connection broke."""

    number: int
    sent_at: float
    took_s: float
    status: int
    body: dict[str, Any]
    retry_after: str | None


# The path, the API key and the body of an order, by its number.
Ordering = Callable[[Installation, int], tuple[str, str, dict[str, Any]]]


class Load:
    """Clients that place numbered orders of every kind, each again and again until it is known to be placed.

    Order n carries the external reference `order-n`, so that a repeated one is answered 409 once it exists. `ordering` makes others.
    """

    def __init__(self, installation: Installation, ordering: Ordering | None = None) -> None:
        self._installation = installation
        self._ordering = ordering or order
        self._numbers = itertools.count(1)
        self._changed = asyncio.Condition()
        self.url: str | None = None  # None: nobody serves, clients wait
        self.started: set[int] = set()
        self.settled: dict[int, Reply] = {}  # 200, or 409 when an answer was lost
        self.replies: list[Reply] = []
        self.stopping = False
        self.pause_s = 0.0  # of a client after each order
        # Until it sends one again: sooner, and what is to come up again would share the processors with who only asks whether it has.
        self.retry_s = 0.15

    @asynccontextmanager
    async def running(self, clients: int = CLIENTS, *, hang_up_s: float = PATIENCE_S) -> AsyncIterator[None]:
        """Load for as long as the block; then each client ends with what it has begun.

        A client hangs up after `hang_up_s` without an answer.
        """
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=hang_up_s)
        ) as session:
            tasks = [asyncio.create_task(self._client(session)) for _ in range(clients)]
            try:
                yield
                self.stopping = True
                await self.serve_from(self.url)
                await asyncio.wait_for(asyncio.gather(*tasks), _ENDS_S + hang_up_s)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def serve_from(self, url: str | None) -> None:
        """Where clients send from now on."""
        async with self._changed:
            self.url = url
            self._changed.notify_all()

    async def settle(self, more: int) -> None:
        """Waits until `more` further orders are known to be placed."""
        wanted = len(self.settled) + more
        async with self._changed:
            await asyncio.wait_for(self._changed.wait_for(lambda: len(self.settled) >= wanted), PATIENCE_S)

    def statuses(self) -> set[int]:
        return {reply.status for reply in self.replies}

    async def _client(self, session: aiohttp.ClientSession) -> None:
        while not self.stopping:
            number = next(self._numbers)
            self.started.add(number)
            while number not in self.settled and (url := await self._address()):
                reply = await self._send(session, url, number)
                if reply.status in {200, 409}:
                    async with self._changed:
                        self.settled[number] = reply
                        self._changed.notify_all()
                elif reply.status in {401, 402, 403}:
                    break
                else:
                    await asyncio.sleep(self.retry_s)
            await asyncio.sleep(self.pause_s)

    async def _address(self) -> str | None:
        """Where to send, once there is somewhere; None when there will be nowhere any more."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.url is not None or self.stopping)
            return self.url

    async def _send(self, session: aiohttp.ClientSession, url: str, number: int) -> Reply:
        path, key, body = self._ordering(self._installation, number)
        sent_at = time.monotonic()
        try:
            async with session.post(f"{url}{path}", json=body, headers={"Authorization": f"Bearer {key}"}) as response:
                status, body = response.status, await response.json()
                retry_after = response.headers.get("Retry-After")
        except (aiohttp.ClientError, OSError):
            status, body, retry_after = 0, {}, None
        reply = Reply(number, sent_at, time.monotonic() - sent_at, status, body, retry_after)
        self.replies.append(reply)
        return reply


def order(installation: Installation, number: int) -> tuple[str, str, dict[str, Any]]:
    """The path, the API key and the body of order `number`: every kind in turn."""
    keys = installation.world["api_keys"]
    coffee = {"productId": installation.id("products", "coffee"), "value": 10}
    two = {"recipients": [{"email": f"a{number}@example.com"}, {"email": "b@example.com", "quantity": 2}]}
    common = {"externalReference": f"order-{number}"}
    account = {**common, "accountId": installation.id("funding_accounts", "gbp")}
    kinds: Sequence[tuple[str, str, dict[str, Any]]] = (
        ("/send/gift", "acme-prod", {**coffee, **two, **account}),
        ("/send/gift", "acme-prod", {**coffee, **account, "codeQuantity": 3}),
        (
            "/send/collection",
            "acme-prod",
            {"collectionId": installation.id("collections", "treats"), "value": 25, **two, **account},
        ),
        ("/send/gift", "globex-prod", {**coffee, **two, **common}),
        ("/send/gift", "acme-prod", {"productId": installation.id("products", "hamper"), **two, **account}),
        ("/send/template", "acme-prod", {"templateId": installation.id("templates", "welcome"), **two, **account}),
        # Large enough for the lane of its own.
        ("/send/gift", "globex-prod", {**coffee, **common, "codeQuantity": 150 if number % 5 == 0 else 1}),
    )
    path, key, body = kinds[number % len(kinds)]
    return path, keys[key], body


async def check_orders(installation: Installation, load: Load, service: Service) -> None:
    """What must hold whatever happened: each order settled is there whole, once, and nothing else is."""
    assert load.started == load.settled.keys()
    report = await asyncio.to_thread(installation.verify)
    assert report["counted"]["orders"] == len(load.started)
    spent_minor = lines = 0
    async with aiohttp.ClientSession(service.url) as session:
        for number, reply in load.settled.items():
            _, key, body = order(installation, number)
            headers = {"Authorization": f"Bearer {key}"}
            path = reply.body["instance"] if reply.status == 409 else f"/orders/{reply.body['reference']}"
            async with session.get(path, headers=headers) as response:
                assert response.status == 200, number
                stored = await response.json()
            if reply.status == 200:
                assert stored == reply.body
            assert stored["externalReference"] == body["externalReference"]
            assert len(stored["codes"]) == body.get("codeQuantity", 0)
            lines += stored["codeCount"]
            if "accountId" in body:
                spent_minor += round(stored["totalCost"] * 100)
        headers = {"Authorization": f"Bearer {installation.world['api_keys']['acme-prod']}"}
        async with session.get("/funding-accounts", headers=headers) as response:
            (account,) = await response.json()
    assert round(account["balance"] * 100) == BALANCE * 100 - spent_minor
    assert report["counted"]["lines"] == lines
