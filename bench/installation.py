"""A fresh installation for a benchmark: data directory, embedded PostgreSQL, a world, and processes that serve it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import asyncpg

from bench import processes
from largesse.base.settings import load_settings
from largesse.db import postmaster
from largesse.db.embedded import EmbeddedServer
from largesse.db.migrate import upgrade
from largesse.encryption.chain import Chain
from largesse.encryption.chain_keys import open_chains
from largesse.encryption.vault import load_vault
from largesse.seed.load import LoadedSeed, load_seed
from largesse.seed.reading import parse_seed

REFERENCE = "reference"  # the database of the references that have the product's own tables
_START_LIMIT_S = 60.0
_STOP_LIMIT_S = 60.0
LARGESSE = str(Path(sys.executable).with_name("largesse"))


class Failed(Exception):
    """A benchmark that measured nothing: something answered wrongly or did not start."""


@dataclass(frozen=True, slots=True)
class Server:
    """A serving process, with its children where it has some."""

    url: str
    pid: int

    def get(self, path: str, key: str | None = None) -> bytes:
        """The body of a GET. Raises Failed for any other status than 200."""
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + path, headers=headers)) as answer:
                body: bytes = answer.read()
                return body
        except urllib.error.HTTPError as error:
            raise Failed(f"GET {path}: {error.code} {error.read()[:300]!r}") from None


class Installation:
    """One data directory with its server running; `url` is its database, `reference_url` one for the reference.

    Both databases have the same schema, indexes and world, on one server with one set of settings.
    """

    def __init__(
        self, folder: Path, world: str, peaks_mib: list[float], postgres_settings: Mapping[str, str] | None = None
    ) -> None:
        self.folder = folder
        self.data_dir = folder / "data"
        self._peaks_mib = peaks_mib
        self._server = EmbeddedServer(self.data_dir, extra_settings=postgres_settings)
        self._world = parse_seed(world.encode(), "world")
        self.ids: dict[str, dict[str, int]] = {}
        self.keys: dict[str, str] = {}
        self.extra_environment: dict[str, str] = {}

    @property
    def url(self) -> str:
        return self._server.url()

    @property
    def reference_url(self) -> str:
        return self.url_of(REFERENCE)

    def url_of(self, database: str) -> str:
        """Another database of the same server."""
        return self._server.url(database)

    @property
    def socket_dir(self) -> str:
        return parse_qs(urlsplit(self.url).query)["host"][0]

    @property
    def postgres_pid(self) -> int:
        server = postmaster.read(self.data_dir / "postgres")
        if server is None:
            raise Failed("PostgreSQL is not running")
        return server.pid

    @property
    def environment(self) -> dict[str, str]:
        """What the product's commands are given: this data directory and nothing of the caller's settings."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LARGESSE_")}
        return {**kept, "LARGESSE_DATA_DIR": str(self.data_dir), **self.extra_environment}

    def open(self) -> None:
        """Starts PostgreSQL, migrates, and loads the world."""
        self._server.acquire()
        self._load(self.url)

    def close(self) -> None:
        """Stops PostgreSQL."""
        self._server.release()

    def make_reference(self) -> None:
        """Creates the reference's database, migrated and loaded like the product's."""
        self.sql(f'CREATE DATABASE "{REFERENCE}"')
        self._load(self.reference_url)

    def sql(self, query: str, *arguments: Any, url: str | None = None) -> list[asyncpg.Record]:
        """Runs one statement on the product's database, or the one named."""
        return self.connected(lambda connection: connection.fetch(query, *arguments, timeout=3600), url)

    def connected(
        self, work: Callable[[asyncpg.Connection[asyncpg.Record]], Coroutine[Any, Any, Any]], url: str | None = None
    ) -> Any:
        """What `work` makes of a connection of its own."""

        async def run() -> Any:
            connection = await asyncpg.connect(url or self.url)
            try:
                return await work(connection)
            finally:
                await connection.close()

        return asyncio.run(run())

    @contextmanager
    def serve(self, *, processes_count: int = 1) -> Iterator[Server]:
        """`largesse serve`, as an operator starts it."""
        port = free_port()
        command = [LARGESSE, "serve", "--port", str(port), "--processes", str(processes_count)]
        with self._serving(command, port) as server:
            yield server

    def serve_with(self, *, max_orders: int | None = None) -> AbstractContextManager[Server]:
        """The same through bench/server.py: with another bound on a batch, and with answers of fixed bytes."""
        return self.serve_module("bench.server", *(() if max_orders is None else (str(max_orders),)))

    @contextmanager
    def serve_module(self, module: str, *arguments: str) -> Iterator[Server]:
        """A module that serves on the port it is given first."""
        port = free_port()
        with self._serving([sys.executable, "-m", module, str(port), *arguments], port) as server:
            yield server

    def verify(self) -> str:
        """What `largesse verify` says; Failed where it does not end with 0."""
        return self.command("verify").strip()

    def command(self, *arguments: str) -> str:
        """What a command of the product prints. Raises Failed where it does not end with 0."""
        done = subprocess.run([LARGESSE, *arguments], env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failed(f"largesse {arguments[0]}: {done.stdout}{done.stderr}")
        return done.stdout

    def _load(self, url: str) -> None:
        asyncio.run(upgrade(url))
        loaded = self.connected(self._load_world, url)
        if url == self.url:
            self.ids = {kind: dict(ids) for kind, ids in loaded.ids.items()}
            self.keys = dict(loaded.api_keys)

    async def _load_world(self, connection: asyncpg.Connection[asyncpg.Record]) -> LoadedSeed:
        return await load_seed(connection, await self.chain(connection), self._world)

    async def chain(self, connection: asyncpg.Connection[asyncpg.Record]) -> Chain:
        """The chain of the ledger's entries."""
        vault = load_vault(load_settings(self.environment))
        return (await open_chains(connection, vault, keep=True)).entries

    @contextmanager
    def _serving(self, command: list[str], port: int) -> Iterator[Server]:
        log = self.folder / f"serve-{port}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(command, env=self.environment, stdout=output, stderr=output)
        try:
            server = Server(f"http://127.0.0.1:{port}", process.pid)
            wait_until_answers(server.url, process, log)
            yield server
            self._peaks_mib.append(processes.peak_mib(process.pid))
        finally:
            stop(process)
        if process.returncode not in {0, -signal.SIGTERM}:
            raise Failed(f"{command} ended with {process.returncode}: {log.read_text()[-2000:]}")


@contextmanager
def installation(
    world: str, peaks_mib: list[float], postgres_settings: Mapping[str, str] | None = None
) -> Iterator[Installation]:
    """An installation in a folder of its own, which is removed at the end.

    `postgres_settings` are for profiles and experiments; benchmarks measure the product's own.
    """
    folder = Path(tempfile.mkdtemp(prefix="largesse-bench-"))
    folder.chmod(0o711)  # as root, PostgreSQL runs as another user
    made = Installation(folder, world, peaks_mib, postgres_settings)
    try:
        made.open()
        try:
            yield made
        finally:
            made.close()
    finally:
        shutil.rmtree(folder)


def free_port() -> int:
    """A loopback port nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def wait_until_answers(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Waits for the first 200 of GET /health. Raises Failed when the process ends or takes too long."""
    deadline = time.monotonic() + _START_LIMIT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:
                json.load(answer)
                return
        except OSError:
            time.sleep(0.005)
    raise Failed(f"the server does not answer: {log.read_text()[-2000:]}")


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ends a process as an operator would, and waits for it."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_STOP_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
