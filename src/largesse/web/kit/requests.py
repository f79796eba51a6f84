"""The types of ASGI, as far as they are used here.

What a connection of ours offers beside ASGI's messages: a body that has come whole, and an answer that leaves whole.

Most requests come in one piece and are answered in one. Those need no coroutine that waits for messages, no time-out, and no second
look at headers that we have written ourselves. It is an extension of the scope, as ASGI calls it: who does not know it uses `receive` and
`send` as ever, and so does whoever finds none.

Where a request comes from.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Any, TypedDict

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


NAME = "largesse.exchange"


class Exchange(TypedDict):
    """A request that is whole, and how to answer it at once."""

    body: bytearray
    # Writes status, lines of headers and body, unless the connection can take no whole answer now: then False, and nothing was written.
    answer: Callable[[int, bytes, bytes], bool]


def exchange_of(scope: Scope) -> Exchange | None:
    """The exchange of a request; None where its body has still to come, or the server is another."""
    extensions = scope.get("extensions")
    exchange: Exchange | None = extensions.get(NAME) if extensions else None
    return exchange


_KEPT = 10_000


def client_address(scope: Mapping[str, Any]) -> str | None:
    """The network address of who sent a request, as the server tells it: behind a trusted proxy, what that one says.

    The server believes `X-Forwarded-For` of the proxies in `FORWARDED_ALLOW_IPS`, by default those of this machine.
    Normal, so that PostgreSQL reads it as `inet`: without an IPv6 zone, and IPv4 as such. None where it is no address,
    which a proxy may say and a Unix socket has none.
    """
    client = scope.get("client")
    return _normal(client[0]) if client else None


@lru_cache(_KEPT)
def _normal(host: str) -> str | None:
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return str(address)
