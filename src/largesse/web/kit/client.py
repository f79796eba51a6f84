"""Where a request comes from."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Any

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
