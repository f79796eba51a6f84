"""The next release is rolled out under load, beside this one: no request fails, and no order is lost (docs/upgrades)."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

import asyncpg
import httpx
import pytest
from tests.distributed import IS_DISTRIBUTED
from tests.faults.installation import Installation
from tests.walks import tree
from tests.walks.rolling import next_release, release_after

STARTS_S = 60.0
CLIENTS = 4

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(IS_DISTRIBUTED, reason="the revisions change one server alone"),
]

_MANIFEST = """
import asyncio, sys, asyncpg
from largesse.db.manifest import read_manifest, write_manifest
async def write():
    connection = await asyncpg.connect(sys.argv[1])
    write_manifest(await read_manifest(connection))
asyncio.run(write())
"""


class Release:
    """The code in a tree, whose services listen on a port that they share."""

    def __init__(self, folder: Path, installation: Installation, port: int) -> None:
        self._folder = folder
        self._installation = installation
        self._port = port
        self._environ = {**os.environ, **installation.environ, "PYTHONPATH": str(folder / "src")}

    def run(self, *arguments: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self._installation.folder,
            env=self._environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, f"{arguments}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout + done.stderr

    def serve(self) -> subprocess.Popen[bytes]:
        """A serving process, once it answers."""
        address = f"\0largesse-rolling-{os.getpid()}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
            ready.bind(address)
            ready.settimeout(STARTS_S)
            process = subprocess.Popen(
                [sys.executable, "-m", "largesse", "serve", "--port", str(self._port), "--reuse-port", "--with-worker"],
                cwd=self._installation.folder,
                env={**self._environ, "NOTIFY_SOCKET": f"@{address[1:]}"},
            )
            try:
                assert ready.recv(100) == b"READY=1"
            except BaseException:
                process.kill()
                raise
        return process


class Load:
    """Clients that place orders and read them again, each time on a new connection, until they are told to stop."""

    def __init__(self, url: str, world: dict[str, Any]) -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {world['api_keys']['acme-prod']}"}
        self._body = {"productId": world["ids"]["products"]["coffee"], "value": 5} | {
            "accountId": world["ids"]["funding_accounts"]["gbp"],
            "recipients": [{"email": "ada@example.com"}, {"email": "b@example.com"}],
        }
        self._stopping = False
        self._clients: list[asyncio.Task[None]] = []
        self.placed: set[str] = set()
        self.failed: list[str] = []

    async def __aenter__(self) -> Self:
        self._clients = [asyncio.create_task(self._ask_on(number)) for number in range(CLIENTS)]
        await self.goes_on()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stopping = True
        await asyncio.gather(*self._clients)

    async def goes_on(self) -> None:
        """Returns once more orders were placed."""
        wanted = len(self.placed) + 10 * CLIENTS
        while len(self.placed) < wanted:
            assert self.failed == []
            await asyncio.sleep(0.05)

    async def _ask_on(self, client: int) -> None:
        number = 0
        while not self._stopping:
            number += 1
            try:
                async with httpx.AsyncClient(base_url=self._url, headers=self._headers, timeout=60) as asking:
                    answer = await asking.post(
                        "/send/gift", json=self._body | {"externalReference": f"{client}-{number}"}
                    )
                    assert answer.status_code == 200, answer.text
                    self.placed.add(answer.json()["reference"])
                    reference = answer.json()["reference"]
                    for path in (
                        "/orders?pageSize=5",
                        f"/orders/{reference}",
                        f"/orders/{reference}/deliveries",
                        "/me",
                    ):
                        read = await asking.get(path)
                        assert read.status_code == 200, read.text
            except (httpx.TransportError, AssertionError) as error:
                self.failed.append(repr(error))
                return


@pytest.mark.long
async def test_the_next_release_is_rolled_out_beside_this_one(tmp_path: Path, database_url: str) -> None:
    installation = Installation.external(tmp_path, database_url)
    await asyncio.to_thread(installation.fill)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    ours = Release(tree.ROOT, installation, port)
    following = Release(next_release(tmp_path / "next"), installation, port)
    last = Release(release_after(tmp_path / "after"), installation, port)
    services = [await asyncio.to_thread(ours.serve)]
    try:
        async with Load(f"http://127.0.0.1:{port}", installation.world) as load:
            await asyncio.to_thread(following.run, "-m", "largesse", "migrate")
            await load.goes_on()
            # This release starts on the new schema, too: a process may fail, and be started again, while it is rolled out.
            services += [await asyncio.to_thread(ours.serve), await asyncio.to_thread(following.serve)]
            for leaving in services[:2]:
                leaving.send_signal(signal.SIGTERM)
                assert await asyncio.to_thread(leaving.wait, STARTS_S) == 0
                await load.goes_on()
            await asyncio.to_thread(last.run, "-m", "largesse", "migrate")
            await load.goes_on()
            services.append(await asyncio.to_thread(last.serve))
            services[2].send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(services[2].wait, STARTS_S) == 0
            await load.goes_on()
        assert load.failed == []
        assert "newer than this release" in await asyncio.to_thread(ours.run, "-m", "largesse", "keys", "list", code=1)
    finally:
        for service in services:
            service.terminate()
            service.wait(STARTS_S)
    assert await references(database_url) == load.placed
    await asyncio.to_thread(last.run, "-c", _MANIFEST, database_url)
    report = json.loads(await asyncio.to_thread(last.run, "-m", "largesse", "verify", "--json"))
    assert report["findings"] == []
    assert report["counted"]["orders"] == len(load.placed)


async def references(url: str) -> set[str]:
    connection = await asyncpg.connect(url)
    try:
        return {row["reference"] for row in await connection.fetch("SELECT reference FROM orders")}
    finally:
        await connection.close()
