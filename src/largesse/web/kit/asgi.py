"""The types of ASGI, the network address of a client, JSON answers, and how they are sent."""

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, MutableMapping
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Any, Protocol

import msgspec

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_CACHED_ADDRESSES = 10_000


def client_address(scope: Mapping[str, Any]) -> str | None:
    """Returns the network address of the client; behind a trusted proxy, the address that the proxy names.

    The server trusts `X-Forwarded-For` of the proxies in `FORWARDED_ALLOW_IPS`, by default those of this machine. The address is in the
    form that PostgreSQL reads as `inet`: without an IPv6 zone, and with IPv4 as such. None for a Unix socket, and if a proxy names no address.
    """
    client = scope.get("client")
    return _normal(client[0]) if client else None


@lru_cache(_CACHED_ADDRESSES)
def _normal(host: str) -> str | None:
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return str(address)


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


InBrowser = Callable[
    [Scope, Reply], Reply
]  # returns the reply to an error as the caller reads it: as JSON, or as a page

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
