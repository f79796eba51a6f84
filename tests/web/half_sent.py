"""Requests whose body does not end: what is answered before it has come."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

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
    memory, until = service.app.services.body_memory, time.monotonic() + 20
    while not at_least <= memory.held_bytes <= at_most:
        assert time.monotonic() < until, memory.held_bytes
        time.sleep(0.01)
