"""Callers that speak HTTP by hand, to a service in this process and to one in a process of its own."""

import json
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.faults.installation import Installation
from tests.web.api.conftest import own_service, problem, service, staging, start_service

__all__ = ["own_service", "problem", "service", "staging", "start_service"]

PATIENCE_S = 30.0


@dataclass(frozen=True)
class Answer:
    """One response; header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes = b""

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Wire:
    """One connection on which bytes are sent as they are."""

    def __init__(self, url: str, *, receive_buffer: int | None = None) -> None:
        parts = urlsplit(url)
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect((parts.hostname, parts.port))
        self._stream = self.socket.makefile("rb")

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def answer(self) -> Answer | None:
        """The next response; None when the connection has ended instead."""
        found = self.head()
        if found is None:
            return None
        return replace(found, body=self.read(int(found.headers.get("content-length", 0))))

    def read(self, size: int) -> bytes:
        return self._stream.read(size)

    def head(self) -> Answer | None:
        """The head of the next response."""
        try:
            first = self._stream.readline()
        except ConnectionResetError:
            return None
        if not first:
            return None
        headers = {}
        while line := self._stream.readline().rstrip(b"\r\n"):
            name, _, value = line.partition(b":")
            headers[name.decode().lower()] = value.strip().decode()
        status = int(first.split()[1])
        return Answer(status, headers)

    def ask(self, data: bytes) -> Answer:
        """Sends `data` and gives the response."""
        self.send(data)
        answer = self.answer()
        assert answer is not None, "the connection ended without an answer"
        return answer

    def drip(self, data: bytes, *, every_s: float) -> None:
        """Sends `data` again and again, until the connection has ended."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            try:
                self.send(data)
            except OSError:
                return
            time.sleep(every_s)
        raise AssertionError(f"open for {PATIENCE_S} s")

    def close(self) -> None:
        self._stream.close()
        self.socket.close()


@pytest.fixture
def wire() -> Iterator[Callable[..., Wire]]:
    """`wire(url)`: a connection, closed with the test."""
    wires = []

    def connect(url: str, **options: Any) -> Wire:
        wires.append(Wire(url, **options))
        return wires[-1]

    yield connect
    for one in wires:
        one.close()


def get(path: str, *headers: str) -> bytes:
    """The bytes of a GET."""
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode()


def chunked(path: str, body: bytes, *headers: str, trailers: tuple[str, ...] = (), size: int = 1 << 20) -> bytes:
    """The bytes of a POST whose body comes in chunks of at most `size`, followed by `trailers`."""
    head = "\r\n".join([f"POST {path} HTTP/1.1", "Host: localhost", "Transfer-Encoding: chunked", *headers, "", ""])
    after = "\r\n".join(["0", *trailers, "", ""])
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return head.encode() + b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + after.encode()


@pytest.fixture(scope="module")
def installation(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """An installation on the tests' server, for processes of its own; they end with the module."""
    installation = Installation.external(tmp_path_factory.mktemp("installation"), module_database_url)
    installation.fill()
    yield installation
    for one in installation.services:
        if one.process.poll() is None:
            one.kill()


@pytest.fixture
def log_of() -> Callable[[Path], list[dict[str, Any]]]:
    """The lines of a log, read."""

    def read(path: Path) -> list[dict[str, Any]]:
        return [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")]

    return read
