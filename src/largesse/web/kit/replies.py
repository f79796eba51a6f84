"""JSON answers, and how they are sent."""

from collections.abc import Coroutine, Iterable
from typing import Any, Protocol

import msgspec

from largesse.web.kit.requests import Scope, Send

encode_json = msgspec.json.Encoder().encode


Answer = tuple[int, bytes, bytes]  # the status, the header lines and the body of an answer


class Writer(Protocol):
    """The connection of a request. It gets one answer, written at once or from a task."""

    def write_answer(self, answer: Answer) -> None:
        """Writes the answer."""

    def answer_in_task(self, answer: Coroutine[Any, Any, Answer]) -> None:
        """Runs a coroutine in a task, and writes the answer that it returns."""

    def close(self) -> None:
        """Closes the connection without an answer."""


class Reply(msgspec.Struct, frozen=True):
    """An answer: its body and media type, status, and further headers in lower case."""

    body: bytes
    status: int = 200
    media_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


_COMMON = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))


def head_of(reply: Reply, request_id: bytes) -> list[tuple[bytes, bytes]]:
    """Returns the headers of an answer for ASGI."""
    headers = [(b"content-length", str(len(reply.body)).encode()), *_COMMON, (b"x-request-id", request_id)]
    if reply.body:
        headers.append((b"content-type", reply.media_type.encode()))
    for name, value in reply.headers:
        headers.append((name.encode("latin-1"), value.encode("latin-1")))
    return headers


def head_lines(reply: Reply, request_id: bytes) -> bytes:
    """Returns the headers of `head_of` as lines of HTTP/1.1. Faster for a reply with a body and without headers of its own."""
    if reply.headers or not reply.body:
        return lines_of(head_of(reply, request_id))
    return _USUAL_LINES % (len(reply.body), request_id, reply.media_type.encode())


def lines_of(head: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Returns headers as lines of HTTP/1.1."""
    return b"".join([b"%b: %b\r\n" % header for header in head])


_USUAL_LINES = b"content-length: %%d\r\n%bx-request-id: %%b\r\ncontent-type: %%b\r\n" % lines_of(_COMMON)


async def send_reply(reply: Reply, request_id: bytes, scope: Scope, send: Send) -> None:
    """Sends an answer. An answer to HEAD has no body."""
    head = head_of(reply, request_id)
    await send({"type": "http.response.start", "status": reply.status, "headers": head})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else reply.body})
