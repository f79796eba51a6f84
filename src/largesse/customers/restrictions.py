"""Restrictions of keys and service accounts: scopes, networks and limits.

    read       everything that only reads: the catalogue, templates, accounts, orders and their progress
    send       orders and quotes, cancellations, resends
    codes      codes and PINs in answers: orders of code batches, and reading those again
    webhooks   subscriptions and their deliveries
    contacts   the people a company sends to: reading and changing them

A key has all of these unless it is restricted. `GET /me` needs none.
"""

import ipaddress
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

import msgspec

from largesse.base.errors import NetworkNotAllowed, ScopeRequired
from largesse.base.money import label
from largesse.base.settings import Network
from largesse.customers.principal import Principal

READ, SEND, CODES, WEBHOOKS, CONTACTS = SCOPES = ("read", "send", "codes", "webhooks", "contacts")
MOST_NETWORKS = 100  # networks per key


class Limit(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a service account may order in one currency, in minor units. None means no limit."""

    largest_order_minor: int | None = None
    daily_minor: int | None = None  # per day in UTC

    def texts(self, currency: str) -> dict[str, str]:
        """Returns the limit as commands show it."""
        return {
            "largest_order": _amount_text(self.largest_order_minor, currency),
            "daily": _amount_text(self.daily_minor, currency),
        }


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Limit]).decode


@lru_cache(maxsize=1_000)
def read_limits(limits: str | None) -> Mapping[str, Limit]:
    """Returns the limits of a service account by currency, as read from the database."""
    return {} if limits is None else _decode(limits)


def write_limits(limits: Mapping[str, Limit]) -> str | None:
    """Returns limits by currency as the database stores them, without empty ones."""
    kept = {currency: limit for currency, limit in sorted(limits.items()) if limit != Limit()}
    return _encode(kept).decode() if kept else None


def stored_scopes(scopes: Collection[str]) -> list[str] | None:
    """Returns the scopes of a key in their usual order; None for all scopes."""
    kept = [scope for scope in SCOPES if scope in scopes]
    return kept if 0 < len(kept) < len(SCOPES) else None


def scopes_text(scopes: Sequence[str] | None) -> str:
    """Returns the scopes of a key as the audit log shows them."""
    return "everything" if scopes is None else ", ".join(scopes)


def networks_text(networks: Sequence[Network] | None) -> str:
    """Returns the allowed networks of a key as the audit log shows them."""
    return "everywhere" if networks is None else ", ".join(map(str, networks))


def _amount_text(minor: int | None, currency: str) -> str:
    return f"any amount of {currency}" if minor is None else label(minor, currency)


def require_scope(principal: Principal, scope: str) -> None:
    """Raises ScopeRequired unless the key has the scope."""
    if principal.scopes is not None and scope not in principal.scopes:
        raise ScopeRequired(f"This API key may not be used for `{scope}`, only for {_listed(principal.scopes)}.")


def require_network(principal: Principal, address: str | None) -> None:
    """Raises NetworkNotAllowed if the key is restricted to networks that do not contain `address`."""
    if principal.networks is not None and not _is_within(address, principal.networks):
        raise NetworkNotAllowed(f"This API key may not be used from {address or 'an unknown address'}.")


def _is_within(address: str | None, networks: Sequence[Network]) -> bool:
    try:
        found = ipaddress.ip_address(address or "")
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return any(found in network for network in networks)


def _listed(scopes: Sequence[str]) -> str:
    return ", ".join(f"`{scope}`" for scope in SCOPES if scope in scopes)
