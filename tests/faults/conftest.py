"""Real processes for the fault tests: an installation, the services that serve it, and clients that never give up.

docs/testing.md says how to run the long forms.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from largesse.database import postmaster

# How often the service is killed, the database restarted and the connection cut: few times in the suite, more on demand.
ROUNDS = int(os.environ.get("FAULT_ROUNDS", "3"))
SEED = int(os.environ.get("FAULT_SEED", "20"))
CLIENTS = 16
PATIENCE_S = 45.0  # until something that must happen counts as not happening

BALANCE = 5_000_000
WORLD = f"""
customers:
  - key: acme
    name: Acme Ltd
    plan: enterprise
    funding: balance
    service_accounts: [{{key: hr-bot, name: HR bot}}]
    api_keys:
      - {{key: acme-prod, service_account: hr-bot, environment: production}}
      - {{key: acme-other, service_account: hr-bot, environment: production}}
    funding_accounts:
      - {{key: gbp, name: Acme float, master: true, currency: GBP, environment: production, balance: {BALANCE}.00}}
    templates:
      - {{key: welcome, name: Welcome, product: coffee, value: 10, country: GB, message: Welcome!}}
  - key: globex
    name: Globex GmbH
    plan: pro
    funding: invoiced
    service_accounts: [{{key: rewards, name: Rewards}}]
    api_keys: [{{key: globex-prod, service_account: rewards, environment: production}}]
products:
  - {{key: coffee, name: Coffee House, digital: true, currency: GBP, countries: [GB], denominations: [5, 10, 25]}}
  - {{key: hamper, name: Hamper, digital: false, currency: GBP, cost: 35, markup_percent: 10, postage: {{GB: 4.95}}, vat_percent: {{GB: 20}}}}
collections:
  - {{key: treats, name: Treats, country: GB, currency: GBP, value_points: [10, 25], products: [coffee]}}
"""

# `largesse` with every log at its most talkative.
DEBUGGED = """
import functools, logging
from largesse import cli
from largesse.cli import service
service.configure_logs = functools.partial(service.configure_logs, level=logging.DEBUG)
cli.main(prog_name="largesse")
"""


@dataclass
class Installation:
    """A data directory or an external database with a world in it, and the commands that work on it."""

    folder: Path
    environ: dict[str, str]
    world: dict[str, Any] = field(default_factory=dict)  # what `load --json` printed
    services: list[Service] = field(default_factory=list)

    @classmethod
    def embedded(cls, folder: Path) -> Installation:
        return cls(folder, {"LARGESSE_DATA_DIR": str(folder / "data")})

    @classmethod
    def external(cls, folder: Path, url: str) -> Installation:
        return cls(folder, {"LARGESSE_DATABASE_URL": url, "LARGESSE_MASTER_KEY": "5e" * 32})

    @property
    def is_embedded(self) -> bool:
        return "LARGESSE_DATA_DIR" in self.environ

    def run(self, *arguments: str, code: int = 0) -> str:
        """The output of a command, which must end with `code`."""
        done = subprocess.run(
            [sys.executable, "-m", "largesse", *arguments],
            env=self._environ(),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == code, (arguments, done.stdout, done.stderr)
        return done.stdout if code == 0 else done.stderr

    @classmethod
    def copied(cls, folder: Path, filled: Installation) -> Installation:
        """An embedded installation like `filled`, which nobody uses just now."""
        subprocess.run(["cp", "-a", f"{filled.folder}/.", str(folder)], check=True, timeout=PATIENCE_S)
        return cls(folder, {"LARGESSE_DATA_DIR": str(folder / "data")}, filled.world)

    def fill(self, world: str = WORLD) -> None:
        """Migrates and loads the world."""
        (self.folder / "world.yaml").write_text(world)
        self.run("migrate")
        self.world = json.loads(self.run("load", "world.yaml", "--json"))

    def serve(
        self,
        *,
        wait: bool = True,
        extra: Sequence[str] = (),
        debug: bool = False,
        program: str = "",
        open_files: int | None = None,
    ) -> Service:
        """A serving process; with `wait`, one that answers; with `debug`, one that logs all there is to log.

        `program` is Python that runs the command in its own way; `open_files` is the hard limit of files it may open.
        """
        program = program or (DEBUGGED if debug else "")
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        log = self.folder / f"serve-{len(self.services)}.log"
        with log.open("wb") as stream:
            process = subprocess.Popen(
                [
                    *(("sh", "-c", f'ulimit -n {open_files} && exec "$@"', "sh") if open_files else ()),
                    sys.executable,
                    *(("-c", program) if program else ("-m", "largesse")),
                    "serve",
                    "--port",
                    str(port),
                    *extra,
                ],
                env=self._environ() | ({"PYTHONASYNCIODEBUG": "1"} if debug else {}),
                cwd=self.folder,
                stdout=stream,
                stderr=stream,
            )
        service = Service(process, port, log)
        self.services.append(service)
        if wait:
            service.wait_until_serving()
        return service

    def postmaster(self) -> postmaster.Postmaster | None:
        """The embedded server that is alive now."""
        cluster = Path(self.environ["LARGESSE_DATA_DIR"]).resolve() / "postgres"
        server = postmaster.read(cluster)
        return server if server and postmaster.is_alive(server, cluster) else None

    def verify(self) -> dict[str, Any]:
        """The report of `largesse verify`, which must find nothing."""
        report: dict[str, Any] = json.loads(self.run("verify", "--json"))
        assert report["findings"] == []
        return report

    def id(self, kind: str, key: str) -> int:
        number: int = self.world["ids"][kind][key]
        return number

    def _environ(self) -> dict[str, str]:
        return {**os.environ, **self.environ}


@dataclass
class Service:
    """One `largesse serve`."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def wait_until_serving(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.log.read_text()
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                time.sleep(0.02)
                continue
            return
        raise AssertionError(f"not serving: {self.log.read_text()}")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def terminate(self) -> int:
        """Its exit code after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)


@dataclass(frozen=True)
class Reply:
    """What came back for one request, when it was sent (monotonic), and how long it took; status 0: the connection broke."""

    number: int
    sent_at: float
    took_s: float
    status: int
    body: dict[str, Any]
    retry_after: str | None


class Load:
    """Clients that place numbered orders of every kind, each again and again until it is known to be placed.

    Order n carries the external reference `order-n`, so that a repeated one is answered 409 once it exists.
    """

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._numbers = itertools.count(1)
        self._changed = asyncio.Condition()
        self.url: str | None = None  # None: nobody serves, clients wait
        self.started: set[int] = set()
        self.settled: dict[int, Reply] = {}  # 200, or 409 when an answer was lost
        self.replies: list[Reply] = []
        self.stopping = False
        self.pause_s = 0.0  # of a client after each order

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
                await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE_S + hang_up_s)
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
                elif reply.status in {401, 402}:
                    break
                else:
                    await asyncio.sleep(0.02)
            await asyncio.sleep(self.pause_s)

    async def _address(self) -> str | None:
        """Where to send, once there is somewhere; None when there will be nowhere any more."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.url is not None or self.stopping)
            return self.url

    async def _send(self, session: aiohttp.ClientSession, url: str, number: int) -> Reply:
        path, key, body = order(self._installation, number)
        sent_at = time.monotonic()
        try:
            async with session.post(
                f"{url}{path}", json=body, headers={"Authorization": f"Bearer {key}"}
            ) as response:
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
        (
            "/send/template",
            "acme-prod",
            {"templateId": installation.id("templates", "welcome"), **two, **account},
        ),
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


@pytest.fixture(scope="session")
def filled_installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """Made once, to be copied."""
    installation = Installation.embedded(tmp_path_factory.mktemp("filled"))
    installation.fill()
    return installation


@pytest.fixture
def start_installation(
    tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Installation]]:
    """Makes an installation with the world in it: embedded, or on the external server when one is given.

    Every process it starts is ended with the test.
    """
    made: list[Installation] = []

    def start(*, embedded: bool | None = None, url: str | None = None, world: str = WORLD) -> Installation:
        if embedded is None:
            embedded = "LARGESSE_TEST_DATABASE_URL" not in os.environ and url is None
        if embedded:
            made.append(Installation.copied(tmp_path, request.getfixturevalue("filled_installation")))
        else:
            made.append(Installation.external(tmp_path, url or request.getfixturevalue("clone_database")()))
            made[-1].fill(world)
        return made[-1]

    yield start
    for installation in made:
        for service in installation.services:
            if service.process.poll() is None:
                service.kill()
        if installation.is_embedded and installation.postmaster():
            installation.run("keys", "list")  # joins the server left behind, and stops it as its last user


@pytest.fixture
def moments() -> random.Random:
    """Where the faults of a test fall."""
    return random.Random(SEED)


@pytest.fixture
def rounds() -> int:
    return ROUNDS


@pytest.fixture
def new_load() -> type[Load]:
    return Load


@pytest.fixture
def check() -> Callable[..., Any]:
    return check_orders
