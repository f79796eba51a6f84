"""Requests whose body does not end, or later: what is answered before it has come, and once it has."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import urlsplit

from tests.connections.conftest import Answer, Wire
from tests.waiting import wait_until
from tests.web.api.conftest import Service


@contextmanager
def half_sent(service: Service, path: str, begins: bytes, *, whole: int, **headers: str) -> Iterator[socket.socket]:
    """A connection on which the head and the beginning of a body of `whole` bytes have been sent."""
    at = urlsplit(service.url)
    given = {"Host": at.netloc, "Content-Length": str(whole), **headers}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in given.items())
    with socket.create_connection((at.hostname or "", at.port or 0), timeout=20) as connection:
        connection.sendall(f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode() + begins)
        yield connection


def head_of_answer(connection: socket.socket) -> str:
    """The head of the answer that comes on a connection, in lower case."""
    answer = b""
    while b"\r\n\r\n" not in answer:
        received = connection.recv(65_536)
        assert received, "the connection ended without an answer"
        answer += received
    return answer.partition(b"\r\n\r\n")[0].decode().lower()


def await_held(service: Service, at_least: int, at_most: int = 2**40) -> None:
    """Waits until bodies hold so many bytes."""
    wait_until(lambda: at_least <= service.app.services.body_memory.held_bytes <= at_most)


def in_two(
    service: Service, secret: str, path: str, body: Any, between: Callable[[], object], *, method: str = "POST"
) -> Answer:
    """The answer to a request whose body follows once the service has found the key and waits for it, and `between` was called."""
    data = json.dumps(body).encode()
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: {urlsplit(service.url).netloc}\r\nAuthorization: Bearer {secret}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\nExpect: 100-continue\r\n\r\n"
    )
    with closing(Wire(service.url)) as wire:
        wire.send(head.encode())
        waiting = wire.head()
        assert waiting is not None
        assert waiting.status == 100, wire.read(int(waiting.headers["content-length"]))
        wire.send(data[:10])
        between()
        return wire.ask(data[10:])
