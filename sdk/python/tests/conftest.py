"""A real Largesse with the demo's data (`largesse_server`, from the package itself), called by both clients."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from largesse_client import Largesse
from largesse_client.testing import Server

Ask = Callable[[Callable[[Any], Any]], Any]


@dataclass(frozen=True)
class World:
    """The gifts of the demo that the tests send, and the account that pays."""

    coffee: int
    hamper: int
    curated: int
    custom: int
    template: int
    account: int
    group_account: int


@pytest.fixture(scope="session")
def world(largesse_server: Server) -> World:
    with largesse_server.client() as largesse:
        products = {product.name: product.id for product in largesse.products.list()}
        collections = {c.name: c for c in largesse.collections.list(country="GB")}
        accounts = {account.name: account.id for account in largesse.funding_accounts.list()}
        templates = {template.name: template.id for template in largesse.templates.list()}
        return World(
            coffee=products["Coffee House e-gift"],
            hamper=products["Autumn hamper"],
            curated=next(c.id for c in collections.values() if c.requires_value and not c.allow_custom_value),
            custom=next(c.id for c in collections.values() if not c.requires_value),
            template=templates["Welcome aboard"],
            account=accounts["Acme float"],
            group_account=accounts["People team"],
        )


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest, largesse_server: Server) -> Iterator[Ask]:
    """`ask(lambda c: c.me())` returns the result of one of the two clients; for a list, all items."""
    if request.param == "sync":
        with largesse_server.client() as largesse:
            yield lambda question: _listed(question(largesse))
        return
    with asyncio.Runner() as runner:
        client = largesse_server.async_client()
        yield lambda question: runner.run(_awaited(lambda: question(client)))
        runner.run(client.aclose())


def _listed(answer: Any) -> Any:
    return list(answer) if isinstance(answer, Iterator) else answer


async def _awaited(question: Callable[[], Any]) -> Any:
    answer = question()
    if isinstance(answer, AsyncIterator):
        return [item async for item in answer]
    assert isinstance(answer, Coroutine)
    return await answer


@pytest.fixture(scope="session")
def new_reference() -> Callable[[], str]:
    """Returns external references that no order of the session has."""
    numbers = itertools.count(1)
    return lambda: f"client-test-{next(numbers)}"


class Listener:
    """A server of raw sockets. It calls `handle` with each connection, in a separate thread."""

    def __init__(self, handle: Callable[[socket.socket], None]) -> None:
        self._handle = handle
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._open: set[socket.socket] = set()
        self._threads = ThreadPoolExecutor(64)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.add(connection)
            self._threads.submit(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection:
                self._handle(connection)
        except OSError:
            pass
        finally:
            self._open.discard(connection)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join()
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)  # ends the wait of its reader
        self._threads.shutdown()


def read_message(file: Any) -> bytes:
    """Returns an HTTP message with a Content-Length, or b"" at the end of the connection."""
    head, length = b"", 0
    while (line := file.readline()) not in {b"", b"\r\n"}:
        head += line
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    return head + b"\r\n" + file.read(length) if head else b""


@pytest.fixture
def listen() -> Iterator[Callable[[Callable[[socket.socket], None]], Listener]]:
    """Starts Listeners; they end with the test."""
    listeners: list[Listener] = []

    def start(handle: Callable[[socket.socket], None]) -> Listener:
        listeners.append(Listener(handle))
        return listeners[-1]

    yield start
    for listener in listeners:
        listener.close()


@pytest.fixture
def answer_with(listen: Any) -> Callable[..., Listener]:
    """Starts a server that answers requests with these bytes, one after the other. The last one repeats."""

    def start(*answers: bytes) -> Listener:
        left = list(answers)
        lock = threading.Lock()

        def handle(connection: socket.socket) -> None:
            with connection.makefile("rb") as requests:
                while read_message(requests):
                    with lock:
                        answer = left.pop(0) if len(left) > 1 else left[0]
                    connection.sendall(answer)
                    if b"content-length" not in answer.lower():
                        return

        return listen(handle)

    return start


def http(status: str, media_type: str, body: str, *headers: str) -> bytes:
    """Returns an HTTP answer."""
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {media_type}", f"Content-Length: {len(body.encode())}", *headers]
    return ("\r\n".join(lines) + f"\r\n\r\n{body}").encode()


@pytest.fixture(scope="session")
def http_answer() -> Callable[..., bytes]:
    return http


@pytest.fixture
def drop_answers(listen: Any, largesse_server: Server) -> Callable[[int], Listener]:
    """Starts a proxy that passes on every request, but drops each n-th answer and ends the connection."""
    host, port = largesse_server.base_url.removeprefix("http://").split(":")

    def start(every: int) -> Listener:
        requests = itertools.count(1)

        def handle(client: socket.socket) -> None:
            with (
                client.makefile("rb") as asked,
                socket.create_connection((host, int(port))) as server,
                server.makefile("rb") as answered,
            ):
                while message := read_message(asked):
                    server.sendall(message)
                    answer = read_message(answered)
                    if next(requests) % every == 0:
                        return
                    client.sendall(answer)

        return listen(handle)

    return start


@pytest.fixture
def balance(largesse: Largesse, world: World) -> Callable[[], Decimal]:
    """Returns the balance of the account that pays."""

    def held() -> Decimal:
        return next(a.balance for a in largesse.funding_accounts.list() if a.id == world.account)

    return held


class Receiver:
    """A receiver of webhooks that stores the deliveries."""

    def __init__(self, listen: Any) -> None:
        self.received: list[tuple[dict[str, str], bytes]] = []
        self.url = f"{listen(self._handle).url}/hook"

    def _handle(self, connection: socket.socket) -> None:
        with connection.makefile("rb") as requests:
            while message := read_message(requests):
                head, _, body = message.partition(b"\r\n\r\n")
                lines = head.decode().split("\r\n")[1:]
                self.received.append((dict(line.split(": ", 1) for line in lines if line), body))
                connection.sendall(b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n")


@pytest.fixture
def receiver(listen: Any) -> Receiver:
    return Receiver(listen)


@pytest.fixture(scope="session")
def eventually() -> Callable[[Callable[[], Any]], Any]:
    """Waits until the result of a function is true, and returns it."""

    def wait(condition: Callable[[], Any]) -> Any:
        until_s = time.monotonic() + 30
        while not (value := condition()):
            assert time.monotonic() < until_s, "it did not happen"
            time.sleep(0.02)
        return value

    return wait
