"""A network that swallows what is said, in the middle of a transaction, and tells nobody."""

import asyncio
import os
import socket
import sys
import time
from dataclasses import dataclass
from typing import Any

import aiohttp
import asyncpg
import pytest
from tests.faults.installation import Installation
from tests.faults.proxy import Proxy
from tests.waiting import until

ANSWERED_WITHIN_S = 15.0
# Whoever measures is on the same machine as all that is measured, and may be late itself.
LATE_S = 3.0
READS = ("/me", "/products", "/collections", "/templates", "/funding-accounts", "/orders", "/users", "/health")


@dataclass(frozen=True)
class Callers:
    """A customer's callers on several services: what they ask, the answers' statuses, and the seconds those took."""

    session: aiohttp.ClientSession
    installation: Installation

    async def ask(self, url: str, method: str, path: str, **more: Any) -> tuple[int, float]:
        began = time.monotonic()
        async with self.session.request(method, url + path, **more) as response:
            await response.read()
            assert response.status != 503 or path == "/health" or response.headers["Retry-After"]
            return response.status, time.monotonic() - began

    async def send(self, url: str, reference: str, **more: Any) -> tuple[int, float]:
        body = {
            "productId": self.installation.id("products", "coffee"),
            "value": 5,
            "accountId": self.installation.id("funding_accounts", "gbp"),
            "externalReference": reference,
            **({"codeQuantity": 1} | more),
        }
        return await self.ask(url, "POST", "/send/gift", json=body)

    async def send_until_placed(self, url: str, reference: str) -> float:
        """Sends an order again and again; the seconds until it was placed."""
        began = time.monotonic()
        while True:
            status, _ = await self.send(url, reference)
            if status == 200:
                return time.monotonic() - began
            await asyncio.sleep(0.1)


@pytest.mark.long
async def test_nobody_waits_long_for_a_silent_database_nor_for_what_it_left_locked(
    clone_database: Any, start_installation: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """One process loses its network with a customer's account locked. Its callers hear so; another process serves them."""
    url = clone_database()
    installation = await asyncio.to_thread(start_installation, url=url)
    healthy = await asyncio.to_thread(installation.serve)
    proxy = Proxy(url)
    await proxy.restore()
    installation.environ["LARGESSE_DATABASE_URL"] = proxy.url
    cut_off = await asyncio.to_thread(installation.serve)
    headers = {"Authorization": f"Bearer {installation.world['api_keys']['acme-prod']}"}
    timeout = aiohttp.ClientTimeout(total=60)
    async with aiohttp.ClientSession(headers=headers, timeout=timeout) as session:
        callers = Callers(session, installation)
        ask, send = callers.ask, callers.send

        assert (await send(cut_off.url, "first"))[0] == 200
        proxy.at_commit = "swallowed"
        held = asyncio.create_task(send(cut_off.url, "held"))
        await asyncio.wait_for(proxy.broken.wait(), 60)
        proxy.swallow(new=True)
        asked = [ask(cut_off.url, "GET", path) for path in READS for _ in range(3)]
        asked += [send(cut_off.url, f"more-{number}") for number in range(12)]
        asked += [send(cut_off.url, f"large-{number}", codeQuantity=150) for number in range(3)]
        waited = asyncio.create_task(callers.send_until_placed(healthy.url, "elsewhere"))
        answers = await asyncio.gather(held, *asked)
        slowest = max(took for _, took in answers)
        locked = await waited
        with capsys.disabled():
            sys.stdout.write(
                f"\nsilence: answers within {slowest:.1f} s, the customer served elsewhere after {locked:.1f} s\n"
            )
        assert {status for status, _ in answers} == {503}
        assert slowest < ANSWERED_WITHIN_S + LATE_S
        assert locked < ANSWERED_WITHIN_S + LATE_S

        await proxy.restore()
        assert await callers.send_until_placed(cut_off.url, "held") < ANSWERED_WITHIN_S + LATE_S
    assert await asyncio.to_thread(cut_off.terminate) == 0
    assert await asyncio.to_thread(healthy.terminate) == 0
    installation.environ["LARGESSE_DATABASE_URL"] = url
    report = await asyncio.to_thread(installation.verify)
    assert report["counted"]["orders"] == 3
    await proxy.cut()


@pytest.mark.long
async def test_who_starts_on_a_network_that_falls_silent_gives_up_soon(
    clone_database: Any, start_installation: Any
) -> None:
    """And is started again by whoever watches it: not ten minutes later, as a command would."""
    url = clone_database()
    installation = await asyncio.to_thread(start_installation, url=url)
    proxy = Proxy(url)
    await proxy.restore()
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    holder = await asyncpg.connect(url)
    holding = holder.transaction()
    await holding.start()
    await holder.execute("SELECT pg_advisory_xact_lock(hashtext('largesse/master_keys'))")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "largesse", "serve", "--port", str(port)),
        env={**os.environ, **installation.environ, "LARGESSE_DATABASE_URL": proxy.url},
        stderr=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        # In this database: other tests' processes may wait for the same of theirs.
        waits = """
            SELECT count(*) FROM pg_locks JOIN pg_database AS d ON d.oid = database
            WHERE d.datname = current_database() AND locktype = 'advisory' AND NOT granted
        """
        await until(lambda: holder.fetchval(waits))
        proxy.swallow()
        await holding.rollback()
        began = time.monotonic()
        _, told = await asyncio.wait_for(process.communicate(), 60)
        assert time.monotonic() - began < ANSWERED_WITHIN_S
        assert (process.returncode, b"Error: the database" in told) == (1, True)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        await holder.close()
        await proxy.cut()
