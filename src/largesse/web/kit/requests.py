"""Requests: the types of ASGI, the exchange of whole requests, and the address of a client.

Most requests come in one piece and are answered in one piece. For them a connection of ours offers an exchange, an extension of the ASGI
scope: the whole body, and a function that writes the whole answer. It saves the coroutine that waits for messages, its timeout, and a
second check of headers that we wrote. An application that does not know it, or finds none, uses `receive` and `send`.
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
    """A whole request, and the function that answers it at once."""

    body: bytearray
    # Writes status, header lines and body. Returns False, and writes nothing, if the connection cannot take a whole answer now.
    answer: Callable[[int, bytes, bytes], bool]


def exchange_of(scope: Scope) -> Exchange | None:
    """Returns the exchange of a request; None if its body is not whole yet, or another server runs the application."""
    extensions = scope.get("extensions")
    exchange: Exchange | None = extensions.get(NAME) if extensions else None
    return exchange


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
