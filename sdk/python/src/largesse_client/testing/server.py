"""Starts and ends `largesse demo` in a temporary folder."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from largesse_client.client import AsyncLargesse, Largesse

_KEY = re.compile(r"^ *API key +(\S+)$", re.MULTILINE)
_READY = "Ctrl-C"
_PORTS_TRIED = 3


class ServerError(Exception):
    """Largesse could not be started. The message has its output."""


@dataclass(frozen=True)
class Server:
    """A running Largesse: its address, and a key of the demo's customer Acme, which pays from funding accounts.

    Mail is stored and readable at `/mailbox`, and webhooks may go to addresses of this machine.
    """

    base_url: str
    api_key: str = field(repr=False)

    def client(self, **options: Any) -> Largesse:
        """Returns a client of this server. `options` are those of `Largesse`."""
        return Largesse(self.base_url, self.api_key, **options)

    def async_client(self, **options: Any) -> AsyncLargesse:
        """Returns an asynchronous client of this server. `options` are those of `AsyncLargesse`."""
        return AsyncLargesse(self.base_url, self.api_key, **options)


@contextmanager
def running(
    command: Sequence[str] = (), *, settings: Mapping[str, str] | None = None, start_timeout_s: float = 180.0
) -> Generator[Server, None, None]:
    """Runs a separate Largesse until the block ends.

    `command` runs `largesse`; by default, it is run by this interpreter. `settings` are `LARGESSE_…` variables; those of the environment
    are ignored. A start takes seconds, but on a slow or busy machine a minute and more: `start_timeout_s` is the limit. Raises ServerError.
    """
    command = [*command] or [sys.executable, "-m", "largesse"]
    with tempfile.TemporaryDirectory(prefix="largesse-") as name:
        folder = Path(name)
        for left in reversed(range(_PORTS_TRIED)):
            port = _free_port()
            process = _start(command, folder, port, settings or {})
            try:
                key = _wait_until_ready(process, folder, start_timeout_s)
                if key is not None:
                    yield Server(f"http://127.0.0.1:{port}", key)
                    return
                # Another process may have taken the port: then the next one is tried.
                if not left or "in use" not in _said(folder):
                    raise ServerError(f"{' '.join(command)} demo did not start:\n{_said(folder)}")
            finally:
                _end(process)


def _start(command: Sequence[str], folder: Path, port: int, settings: Mapping[str, str]) -> subprocess.Popen[bytes]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LARGESSE_")}
    environment |= {
        "LARGESSE_DATA_DIR": str(folder / "data"),
        "LARGESSE_WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8",
        "PYTHONUNBUFFERED": "1",
        **settings,
    }
    with (folder / "out").open("wb") as out:
        try:
            return subprocess.Popen(  # noqa: S603 - the caller's command
                [*command, "demo", "--no-history", "--port", str(port)],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        except OSError as error:
            raise ServerError(f"{command[0]} cannot be run: {error}") from error


def _wait_until_ready(process: subprocess.Popen[bytes], folder: Path, timeout_s: float) -> str | None:
    """Returns the API key that the demo prints; None if the demo ended before. Raises ServerError if that takes too long."""
    until_s = time.monotonic() + timeout_s
    while time.monotonic() < until_s:
        has_ended = process.poll() is not None
        said = _said(folder)
        if _READY in said and (found := _KEY.search(said)):
            return found[1]
        if has_ended:
            return None
        time.sleep(0.05)
    raise ServerError(
        f"largesse demo was not ready after {timeout_s:g} s. If this machine is slow, allow more: `start_timeout_s` of running(), or "
        f"with pytest --largesse-start-timeout={2 * timeout_s:g} (largesse_start_timeout in its settings). It said:\n{_said(folder)}"
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the process as an operator would. The embedded database ends with it."""
    process.terminate()
    try:
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _said(folder: Path) -> str:
    return (folder / "out").read_text(encoding="utf-8", errors="replace")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port
