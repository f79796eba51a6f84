"""An installation of real processes: its database, its services, and the commands that work on it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
from tests.background import run as run_here
from tests.chained import chain_of

from largesse.db import postmaster
from largesse.db.migrate import upgrade
from largesse.seed.load import load_seed
from largesse.seed.reading import parse_seed

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
import logging
from largesse import cli
from largesse.cli import service
configure = service.configure_logs
def log_all(log_format):
    configure(log_format, level=logging.DEBUG)
    logging.getLogger("asyncio").debug("all there is to log is logged")
service.configure_logs = log_all
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
        """Migrates and loads the world; what needs no process of its own is done in this one."""
        (self.folder / "world.yaml").write_text(world)
        if not self.is_embedded:
            key = bytes.fromhex(self.environ["LARGESSE_MASTER_KEY"])
            self.world = run_here(_fill(self.environ["LARGESSE_DATABASE_URL"], key, world))
            return
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


async def _fill(url: str, master_key: bytes, world: str) -> dict[str, Any]:
    """What `load --json` would print."""
    await upgrade(url)
    connection = await asyncpg.connect(url)
    try:
        chain = await chain_of(connection, master_key)
        loaded = await load_seed(connection, chain, parse_seed(world.encode(), "world.yaml"))
    finally:
        await connection.close()
    told: dict[str, Any] = json.loads(loaded.to_json())
    return told


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
