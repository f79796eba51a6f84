"""Chaos: everything that may break, breaks, at drawn moments, while clients order, mail goes out and webhooks are delivered.

Two machines, each with a serving process and a worker, reach the database on a network (a proxy) of their own. What a service
manager does is done here: a process that ended is started again.
"""

import asyncio
import contextlib
import os
import random
import re
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from tests.faults.proxy import Proxy

PATIENCE_S = 120.0  # until what must happen counts as not happening
_RESTART_AFTER_S = 0.2
_MESSAGE_ID = re.compile(rb"^Message-ID:\s*(<[^>]+>)", re.IGNORECASE | re.MULTILINE)


@dataclass
class Slot:
    """One `largesse serve` or `largesse worker`, started again whenever it ends."""

    command: str
    installation: Any
    proxy: Proxy
    name: str
    process: asyncio.subprocess.Process | None = None
    url: str | None = None  # while it serves
    starts: int = 0
    is_stopped: bool = False
    _keeping: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._keeping = asyncio.create_task(self._keep())

    async def end(self) -> int:
        """Its exit code after SIGTERM."""
        assert self._keeping is not None
        self._keeping.cancel()
        await asyncio.gather(self._keeping, return_exceptions=True)
        assert self.process is not None
        self.signal(signal.SIGTERM)
        return await asyncio.wait_for(self.process.wait(), PATIENCE_S)

    async def kill(self) -> None:
        if self._keeping is not None:
            self._keeping.cancel()
        if self.process is not None:
            self.signal(signal.SIGKILL)
            await self.process.wait()

    def signal(self, number: int) -> None:
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(number)

    def log(self) -> str:
        return (self.installation.folder / f"{self.name}.log").read_text()

    async def _keep(self) -> None:
        while True:
            with socket.create_server(("127.0.0.1", 0)) as probe:
                port = probe.getsockname()[1]
            arguments = ["--port", str(port)] if self.command == "serve" else []
            with (self.installation.folder / f"{self.name}.log").open("ab") as log:
                self.process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    *("-m", "largesse", self.command, *arguments),
                    env={**os.environ, **self.installation.environ, "LARGESSE_DATABASE_URL": self.proxy.url},
                    cwd=self.installation.folder,
                    stdout=log,
                    stderr=log,
                )
            self.starts += 1
            serving = asyncio.create_task(self._serve(port)) if self.command == "serve" else None
            try:
                await self.process.wait()
            finally:
                if serving is not None:
                    serving.cancel()
                self.url = None
            self.is_stopped = False
            await asyncio.sleep(_RESTART_AFTER_S)

    async def _serve(self, port: int) -> None:
        """Lets clients know once it takes connections."""
        while self.url is None:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                self.url = f"http://127.0.0.1:{port}"
            await asyncio.sleep(0.02)


@dataclass
class Chaos:
    """The slots, their networks, and what is done to them. `faults` counts it."""

    slots: list[Slot]
    proxies: list[Proxy]
    moments: random.Random
    longest_s: float  # of anything that stands still
    faults: Counter[str] = field(default_factory=Counter)
    _lasting: set[asyncio.Task[None]] = field(default_factory=set)

    async def rage(self, seconds: float, kinds: list[str]) -> None:
        """Breaks one thing after another for so long; then lets everything work again."""
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at:
            await asyncio.sleep(self.moments.uniform(0.2, 1.5))
            await self._break(self.moments.choice(kinds), ends_at)
        for task in self._lasting:
            task.cancel()
        await asyncio.gather(*self._lasting, return_exceptions=True)
        for proxy in self.proxies:
            await proxy.restore()

    async def _break(self, kind: str, ends_at: float) -> None:
        proxy = self.moments.choice(self.proxies)
        lasts_s = min(self.moments.uniform(0.1, self.longest_s), max(ends_at - time.monotonic(), 0.1))
        match kind.split():
            case ["kill", command]:
                slot = self._any(command)
                if slot.process is None or slot.process.returncode is not None:
                    return
                slot.signal(signal.SIGKILL)
            case ["stop", command]:
                slot = self._any(command)
                if slot.is_stopped:
                    return
                self._while(self._stop(slot, lasts_s))
            case ["cut"]:
                await proxy.cut()
                await asyncio.sleep(self.moments.uniform(0.0, 0.5))
                await proxy.restore()
            case ["commit", where]:
                proxy.at_commit = where  # type: ignore[assignment]
            case ["swallow"]:
                proxy.swallow()
            case ["silence"]:
                self._while(self._silence(proxy, lasts_s))
        self.faults[kind] += 1

    def _any(self, command: str) -> Slot:
        return self.moments.choice([slot for slot in self.slots if slot.command == command])

    def _while(self, lasting: Awaitable[None]) -> None:
        task = asyncio.ensure_future(lasting)
        self._lasting.add(task)
        task.add_done_callback(self._lasting.discard)

    async def _stop(self, slot: Slot, lasts_s: float) -> None:
        """A machine that stands still, and goes on as if nothing had been."""
        slot.is_stopped = True
        slot.signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(lasts_s)
        finally:
            slot.signal(signal.SIGCONT)
            slot.is_stopped = False

    async def _silence(self, proxy: Proxy, lasts_s: float) -> None:
        """A network that swallows what is said on the connections there are, and on those made meanwhile."""
        proxy.swallow(new=True)
        try:
            await asyncio.sleep(lasts_s)
        finally:
            await proxy.restore()


def crowd_of(load: type[Any]) -> type[Any]:
    """`Load` whose clients go to whichever slot serves, drawn anew for each request."""

    class Crowd(load):  # type: ignore[misc]
        slots: Sequence[Slot] = ()
        moments = random.Random(0)

        async def _address(self) -> str:
            while True:
                if urls := [slot.url for slot in self.slots if slot.url is not None]:
                    return self.moments.choice(urls)
                await asyncio.sleep(0.02)

    return Crowd


async def subscribe(installation: Any, url: str, key: str, target: str) -> None:
    headers = {"Authorization": f"Bearer {installation.world['api_keys'][key]}"}
    body = {"targetUrl": target, "event": "order.created"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(f"{url}/webhooks", json=body) as response,
    ):
        assert response.status == 201, await response.text()


def mails_by_recipient(envelopes: list[Any]) -> dict[str, Counter[bytes]]:
    """How often each message came, by recipient and Message-ID."""
    got: dict[str, Counter[bytes]] = {}
    for envelope in envelopes:
        found = _MESSAGE_ID.search(envelope.original_content)
        assert found is not None
        for recipient in envelope.rcpt_tos:
            got.setdefault(recipient, Counter())[found[1]] += 1
    return got


def slots_of(installation: Any, proxies: Sequence[Proxy]) -> list[Slot]:
    """The serving process and the worker of each machine."""
    return [
        Slot(command, installation, proxy, f"{command}-{number}")
        for number, proxy in enumerate(proxies)
        for command in ("serve", "worker")
    ]


async def start_all(slots: Sequence[Slot]) -> None:
    """Starts them, and waits until all that serve do."""
    for slot in slots:
        slot.start()
    await until(lambda: all(slot.url for slot in slots if slot.command == "serve"), lambda: "not serving")


async def until(question: Callable[[], bool], otherwise: Callable[[], str]) -> None:
    """Waits until `question` is answered with true; says `otherwise` when that does not happen."""
    deadline = time.monotonic() + PATIENCE_S
    while not question():
        assert time.monotonic() < deadline, otherwise()
        await asyncio.sleep(0.1)
