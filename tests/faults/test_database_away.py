"""The database goes away and comes back, cut off by a proxy between it and the service."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

import aiohttp
import pytest


class Proxy:
    """Passes connections on to a database server, until it is cut."""

    def __init__(self, target_url: str) -> None:
        self._parts = urlsplit(target_url)
        self._server: asyncio.Server | None = None
        self._passing: set[asyncio.StreamWriter] = set()
        self._answerless: set[asyncio.StreamWriter] = set()
        self.at_commit: str | None = (
            None  # break the next connection that commits: before or after the server does
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    @property
    def url(self) -> str:
        """The database's address through the proxy."""
        parts = self._parts
        user = f"{quote(unquote(parts.username or ''))}"
        password = f":{parts.password}" if parts.password else ""
        return f"postgresql://{user}{password}@127.0.0.1:{self.port}{parts.path}?sslmode=disable"

    async def restore(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Refuses new connections and breaks those there are, wherever they stand."""
        assert self._server is not None
        self._server.close()
        for writer in self._passing:
            writer.transport.abort()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            their_reader, their_writer = await self._dial()
            self._passing |= {writer, their_writer}
            await asyncio.gather(
                self._pass_requests(reader, their_writer, writer), self._pass_answers(their_reader, writer)
            )
            self._passing -= {writer, their_writer}
        finally:
            self._tasks.discard(task)

    async def _dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        query = parse_qs(self._parts.query)
        host = query.get("host", [self._parts.hostname or "127.0.0.1"])[0]
        port = int(query.get("port", [self._parts.port or 5432])[0])
        if host.startswith("/"):
            return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        return await asyncio.open_connection(host, port)

    async def _pass_requests(
        self, reader: asyncio.StreamReader, server: asyncio.StreamWriter, client: asyncio.StreamWriter
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if self.at_commit and b"COMMIT" in data:
                    if self.at_commit == "before":
                        client.transport.abort()
                        data = b""
                    self._answerless.add(client)
                    self.at_commit = None
                server.write(data)
                await server.drain()
        server.close()

    async def _pass_answers(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if client in self._answerless:
                    client.transport.abort()
                    break
                client.write(data)
                await client.drain()
        client.close()


@pytest.fixture
async def proxy(clone_database: Any) -> AsyncIterator[Proxy]:
    proxy = Proxy(clone_database())
    await proxy.restore()
    yield proxy
    await proxy.cut()


async def test_while_the_database_is_away_everything_says_so(proxy: Proxy, start_installation: Any) -> None:
    installation = await asyncio.to_thread(start_installation, url=proxy.url)
    service = await asyncio.to_thread(installation.serve)
    headers = {"Authorization": f"Bearer {installation.world['api_keys']['globex-prod']}"}
    body = {
        "productId": installation.id("products", "coffee"),
        "value": 5,
        "codeQuantity": 2,
        "externalReference": "once",
    }
    async with aiohttp.ClientSession(service.url, headers=headers) as session:

        async def ask(method: str, path: str, **more: Any) -> tuple[int, str | None, dict[str, Any]]:
            async with session.request(method, path, **more) as response:
                return response.status, response.headers.get("Retry-After"), await response.json()

        assert (await ask("GET", "/health"))[0] == 200
        await proxy.cut()
        status, _, answer = await ask("GET", "/health")
        assert (status, answer["status"]) == (503, "fail")
        for method, path, more in (
            ("POST", "/send/gift", {"json": body}),
            ("GET", "/me", {}),
            ("GET", "/orders", {}),
        ):
            status, retry_after, answer = await ask(method, path, **more)
            assert (status, retry_after, answer["status"]) == (503, "1", 503), path
        assert "cannot be reached" in installation.run("verify", code=1)
        started = installation.serve(wait=False)
        assert await asyncio.to_thread(started.process.wait, 45) == 1
        assert started.log.read_text().startswith("Error: the database cannot be reached: ")
        assert started.log.read_text().count("\n") == 1
        await proxy.restore()
        assert (await ask("GET", "/health"))[0] == 200
        status, _, answer = await ask("POST", "/send/gift", json=body)
        assert (status, answer["codeCount"]) == (200, 2)
    assert await asyncio.to_thread(service.terminate) == 0


@pytest.mark.parametrize(("at_commit", "status"), [("before", 503), ("after", 200)])
async def test_a_commit_without_an_answer_is_looked_up(
    proxy: Proxy, start_installation: Any, at_commit: str, status: int
) -> None:
    """The caller hears what became of the order, and the reference is used if and only if it exists."""
    installation = await asyncio.to_thread(start_installation, url=proxy.url)
    service = await asyncio.to_thread(installation.serve)
    body = {"productId": installation.id("products", "coffee"), "value": 5, "codeQuantity": 2}
    headers = {"Authorization": f"Bearer {installation.world['api_keys']['globex-prod']}"}
    async with aiohttp.ClientSession(service.url, headers=headers) as session:

        async def send(reference: str) -> tuple[int, dict[str, Any]]:
            async with session.post("/send/gift", json={**body, "externalReference": reference}) as response:
                return response.status, await response.json()

        assert (await send("first"))[0] == 200  # the catalogue is read in a transaction too, once
        proxy.at_commit = at_commit
        answered, first = await send("once")
        assert proxy.at_commit is None
        assert answered == status
        again, second = await send("once")
        assert again == (409 if status == 200 else 200)
        if status == 200:
            assert second["instance"] == f"/orders/{first['reference']}"
            assert len(first["codes"]) == 2
        else:
            assert "nothing was placed" in first["detail"]
    report = await asyncio.to_thread(installation.verify)
    assert report["counted"]["orders"] == 2
    assert await asyncio.to_thread(service.terminate) == 0


@pytest.mark.timeout(600)
async def test_connections_cut_at_any_moment_cost_no_order(
    proxy: Proxy, start_installation: Any, new_load: Any, check: Any, rounds: int, moments: random.Random
) -> None:
    """Some cuts fall into a COMMIT: the service finds out what became of it, and never places again."""
    installation = await asyncio.to_thread(start_installation, url=proxy.url)
    service = await asyncio.to_thread(installation.serve)
    load = new_load(installation)
    async with load.running():
        await load.serve_from(service.url)
        for _ in range(rounds * 5):
            await load.settle(moments.randint(1, 60))
            await asyncio.sleep(moments.uniform(0, 0.01))
            await proxy.cut()
            await proxy.restore()
        await load.settle(50)
    assert load.statuses() <= {200, 409, 503}
    assert all(reply.retry_after for reply in load.replies if reply.status == 503)
    await check(installation, load, service)
    assert await asyncio.to_thread(service.terminate) == 0
