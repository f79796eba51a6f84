"""Decides which addresses are public, by our own table, and which webhook targets are allowed.

`ipaddress.is_global` has the IANA registries of its Python version, and accepts addresses that tunnel or translate
to a private network: NAT64, 6to4, Teredo, IPv4-compatible addresses, deprecated ranges. This table has every block
that is not plain global unicast. IPv6 addresses outside 2000::/3 are refused in any case.

Sources: the IANA IPv4 and IPv6 Special-Purpose Address Registries, the IPv6 Global Unicast Allocations and the
multicast registries, and the metadata services of the large clouds. A network-specific NAT64 prefix
(RFC 6052) looks like any other address. An operator who uses one must keep it from the worker by routing.

A webhook target is a URL. One that two programs could read differently is refused. The host is stored in the form in which it is dialled.
`permits` checks the addresses of the host when a subscription is created, and the delivery checks the address of its socket again.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from urllib.parse import urlsplit

import idna
import msgspec

from largesse.base.errors import InvalidRequest

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_SPECIAL_IPV4 = (
    "0.0.0.0/8",  # this network; Linux dials itself (RFC 791, RFC 1122)
    "10.0.0.0/8",  # private (RFC 1918)
    "100.64.0.0/10",  # shared by carrier-grade NAT (RFC 6598); Alibaba's metadata is 100.100.100.200
    "127.0.0.0/8",  # loopback (RFC 1122)
    "168.63.129.16/32",  # Azure's wire server, reachable from inside every machine there
    "169.254.0.0/16",  # link-local (RFC 3927); the metadata service of most clouds is 169.254.169.254
    "172.16.0.0/12",  # private (RFC 1918)
    "192.0.0.0/24",  # IETF protocol assignments (RFC 6890), DS-Lite, NAT64 discovery, older Oracle metadata
    "192.0.2.0/24",  # documentation, TEST-NET-1 (RFC 5737)
    "192.31.196.0/24",  # AS112, answered by the nearest node, perhaps an internal one (RFC 7535)
    "192.52.193.0/24",  # AMT relays, also anycast (RFC 7450)
    "192.88.99.0/24",  # 6to4 relay anycast, deprecated (RFC 7526)
    "192.168.0.0/16",  # private (RFC 1918)
    "192.175.48.0/24",  # AS112 direct delegation (RFC 7534)
    "198.18.0.0/15",  # benchmarking (RFC 2544)
    "198.51.100.0/24",  # documentation, TEST-NET-2 (RFC 5737)
    "203.0.113.0/24",  # documentation, TEST-NET-3 (RFC 5737)
    "224.0.0.0/4",  # multicast (RFC 5771), with MCAST-TEST-NET 233.252.0.0/24
    "240.0.0.0/4",  # reserved (RFC 1112)
    "255.255.255.255/32",  # limited broadcast (RFC 8190)
)

# IANA allocates global unicast addresses only from this block (RFC 4291, section 2.4).
_GLOBAL_UNICAST_IPV6 = IPv6Network("2000::/3")

_SPECIAL_IPV6 = (
    # Inside 2000::/3, but not public.
    "2001::/23",  # IETF protocol assignments: Teredo 2001::/32, benchmarking, ORCHID, drone ids (RFC 2928)
    "2001:db8::/32",  # documentation (RFC 3849)
    "2002::/16",  # 6to4: the next 32 bits are an IPv4 address to tunnel to (RFC 3056)
    "2620:4f:8000::/48",  # AS112 direct delegation (RFC 7534)
    "3ffe::/16",  # the 6bone, returned (RFC 3701)
    "3fff::/20",  # documentation (RFC 9637)
    # Outside 2000::/3, where nothing is public. Listed to make the table complete.
    "::/128",  # unspecified (RFC 4291)
    "::1/128",  # loopback (RFC 4291)
    "::/96",  # IPv4-compatible, deprecated (RFC 4291)
    "::ffff:0:0/96",  # IPv4-mapped: the kernel dials the IPv4 address (RFC 4291)
    "::ffff:0:0:0/96",  # IPv4-translated (RFC 2765)
    "64:ff9b::/96",  # NAT64, well-known prefix (RFC 6052)
    "64:ff9b:1::/48",  # NAT64, local use (RFC 8215)
    "100::/64",  # discard only (RFC 6666)
    "100:0:0:1::/64",  # dummy prefix (RFC 9780)
    "200::/7",  # OSI NSAP, deprecated (RFC 4048)
    "5f00::/16",  # segment routing SIDs (RFC 9602)
    "fc00::/7",  # unique local (RFC 4193); the metadata of AWS is fd00:ec2::254
    "fe80::/10",  # link-local (RFC 4291)
    "fec0::/10",  # site-local, deprecated (RFC 3879)
    "ff00::/8",  # multicast (RFC 4291)
)

SPECIAL_IPV4 = tuple(IPv4Network(block) for block in _SPECIAL_IPV4)
SPECIAL_IPV6 = tuple(IPv6Network(block) for block in _SPECIAL_IPV6)


def is_public(address: Address) -> bool:
    """Returns whether `address` is plain global unicast, so that dialling it reaches the internet and nothing internal."""
    if isinstance(address, IPv4Address):
        return not any(address in block for block in SPECIAL_IPV4)
    if address.scope_id is not None or address not in _GLOBAL_UNICAST_IPV6:
        return False
    return not any(address in block for block in SPECIAL_IPV6)


def is_inside(address: Address, networks: tuple[Network, ...]) -> bool:
    """Returns whether `address` is inside one of `networks`. An address with a zone is inside none."""
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        return False
    return any(address in network for network in networks)


MAX_URL_CHARACTERS = 2048
RESOLVE_TIMEOUT_S = 3.0

# Returns the addresses of a host name, for a customer. Raises OSError if there are none.
LookUp = Callable[[str, int], Awaitable[Sequence[Address]]]

_URL = re.compile(r"(?P<scheme>https?)://(?P<authority>[^/?#]+)(?P<path>/[^?#]*)?(?P<query>\?[^#]*)?", re.IGNORECASE)
_AUTHORITY = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^\[\]:]+)(?::(?P<port>[1-9][0-9]{0,4}))?")
# RFC 3986: the characters of a path and a query. A percent sign must begin a triplet.
_PATH_AND_QUERY = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/?]|%[0-9A-Fa-f]{2})*")
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
# Resolvers read a name as an IPv4 address if its last label is a number, in any base.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_LOCAL_SUFFIXES = (".localhost", ".localdomain", ".local", ".internal", ".home.arpa")


class Target(msgspec.Struct, frozen=True):
    """A webhook target in the form in which it is dialled. `host` is an address or a lower-case ASCII name without a final dot."""

    url: str  # the URL as the caller wrote it
    scheme: str  # https or http
    host: str
    port: int
    path_and_query: str
    address: Address | None  # the host, if it is an address

    @property
    def origin(self) -> str:
        """Only the scheme, the host and the port of the URL, as the rest may contain a secret."""
        return f"{self.scheme}://{urlsplit(self.url).netloc}"

    @property
    def only_allowed(self) -> bool:
        """Whether it may only be in the allowed networks: plain http, or a local name."""
        return self.scheme == "http" or (self.address is None and _is_local(self.host))


def parse_target(url: str, allowed_networks: tuple[Network, ...]) -> Target:
    """Returns the target of `url`. Raises InvalidRequest with the rule that `target_url` breaks.

    Plain http, local names and addresses that are not public are accepted only if they may be in `allowed_networks`.
    """
    target = _parse(url)
    if target.address is not None:
        if not permits(target, target.address, allowed_networks):
            raise _refused(target)
    elif target.only_allowed and not allowed_networks:
        raise _refused(target)
    return target


async def check_target(
    target: Target, allowed_networks: tuple[Network, ...], look_up: LookUp, customer_id: int
) -> None:
    """Looks up a target's name for a customer. Raises InvalidRequest unless every address is permitted.

    Accepts a public name that does not resolve within RESOLVE_TIMEOUT_S, as the delivery checks its socket.
    """
    if target.address is not None:
        return  # checked when it was parsed
    try:
        async with asyncio.timeout(RESOLVE_TIMEOUT_S):
            addresses = await look_up(target.host, customer_id)
    except (OSError, TimeoutError):
        addresses = []
    if not addresses and target.only_allowed:
        raise _refused(target)
    if not all(permits(target, address, allowed_networks) for address in addresses):
        raise _refused(target)


def permits(target: Target, address: Address, allowed_networks: tuple[Network, ...]) -> bool:
    """Returns whether `address` may be dialled for `target`."""
    if is_inside(address, allowed_networks):
        return True
    return not target.only_allowed and is_public(address)


def _parse(url: str) -> Target:
    if len(url) > MAX_URL_CHARACTERS:
        raise InvalidRequest(f"`target_url` must be at most {MAX_URL_CHARACTERS} characters.")
    if any(c == "\\" or c.isspace() or not c.isprintable() for c in url):
        raise InvalidRequest("`target_url` must not contain blanks, control characters or backslashes.")
    parts = _URL.fullmatch(url)
    if parts is None:
        raise InvalidRequest("`target_url` must be an https address without a fragment: https://example.com/hook.")
    path_and_query = (parts["path"] or "/") + (parts["query"] or "")
    if not _PATH_AND_QUERY.fullmatch(path_and_query):
        raise InvalidRequest("`target_url` must percent-encode what RFC 3986 does not allow in a path or query.")
    if "@" in parts["authority"]:
        raise InvalidRequest("`target_url` must not contain a user name or password.")
    authority = _AUTHORITY.fullmatch(parts["authority"])
    if authority is None or int(authority["port"] or 443) > 65535:
        raise InvalidRequest("`target_url` must have a host and, if any, a port from 1 to 65535.")
    scheme = parts["scheme"].lower()
    host, address = _read_host(authority["host"])
    port = int(authority["port"] or (443 if scheme == "https" else 80))
    return Target(url, scheme, host, port, path_and_query, address)


def _read_host(text: str) -> tuple[str, Address | None]:
    """Returns the host in the form in which it is dialled, and also as an address if it is one."""
    if text.startswith("["):
        return _read_address(
            IPv6Address, text[1:-1], "`target_url` must have a valid IPv6 address between its brackets."
        )
    if "%" in text:
        raise InvalidRequest("`target_url` must not percent-encode its host.")
    name = _to_ascii(text)
    name = name.removesuffix(".")
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        # Octal, hexadecimal and short forms, and leading zeros are refused.
        return _read_address(IPv4Address, name, "`target_url` must write an IPv4 address as four decimal numbers.")
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise InvalidRequest("`target_url` must have a valid host name.")
    return name, None


def _read_address(kind: type[IPv4Address | IPv6Address], text: str, refusal: str) -> tuple[str, Address]:
    try:
        address = kind(text)
    except ValueError:
        raise InvalidRequest(refusal) from None
    return str(address), address


def _to_ascii(text: str) -> str:
    """Returns the host in lower-case ASCII (UTS 46, as browsers read it): full-width digits become digits, IDNs become xn--."""
    if text.isascii():
        return text.lower()
    try:
        return idna.encode(text, uts46=True, std3_rules=True).decode("ascii").lower()
    except (idna.IDNAError, UnicodeError):
        raise InvalidRequest("`target_url` must have a valid host name.") from None


def _is_local(name: str) -> bool:
    return "." not in name or name.endswith(_LOCAL_SUFFIXES)


def _refused(target: Target) -> InvalidRequest:
    if target.scheme != "https":
        return InvalidRequest("`target_url` must be an https address.")
    return InvalidRequest("`target_url` must be a publicly reachable address.")
