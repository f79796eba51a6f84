"""The types of ASGI, and the network address of a client."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Any

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
