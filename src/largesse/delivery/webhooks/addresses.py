"""Which addresses are public, judged by a table of our own.

`ipaddress.is_global` follows the IANA registries of the Python it comes with, and lets pass what tunnels or
translates to a private network: NAT64, 6to4, Teredo, IPv4-compatible addresses, deprecated ranges. Here every
block that is not plain global unicast is named, and everything IPv6 outside 2000::/3 is refused whatever it is.

Sources: the IANA IPv4 and IPv6 Special-Purpose Address Registries, the IPv6 Global Unicast Allocations and the
multicast registries, and the metadata services of the large clouds. A network-specific NAT64 prefix
(RFC 6052) looks like any other address; an operator who runs one must keep it from the worker by routing.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

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
    "192.31.196.0/24",  # AS112, answered by the nearest node, perhaps one's own (RFC 7535)
    "192.52.193.0/24",  # AMT relays, likewise (RFC 7450)
    "192.88.99.0/24",  # 6to4 relay anycast, deprecated (RFC 7526)
    "192.168.0.0/16",  # private (RFC 1918)
    "192.175.48.0/24",  # AS112 direct delegation (RFC 7534)
    "198.18.0.0/15",  # benchmarking (RFC 2544)
    "198.51.100.0/24",  # documentation, TEST-NET-2 (RFC 5737)
    "203.0.113.0/24",  # documentation, TEST-NET-3 (RFC 5737)
    "224.0.0.0/4",  # multicast (RFC 5771), MCAST-TEST-NET 233.252.0.0/24 among it
    "240.0.0.0/4",  # reserved (RFC 1112)
    "255.255.255.255/32",  # limited broadcast (RFC 8190)
)

# The only global unicast there is (RFC 4291, section 2.4; IANA allocates from nothing else).
_GLOBAL_UNICAST_IPV6 = IPv6Network("2000::/3")

_SPECIAL_IPV6 = (
    # Inside 2000::/3, and yet not public.
    "2001::/23",  # IETF protocol assignments: Teredo 2001::/32, benchmarking, ORCHID, drone ids (RFC 2928)
    "2001:db8::/32",  # documentation (RFC 3849)
    "2002::/16",  # 6to4: the next 32 bits are an IPv4 address to tunnel to (RFC 3056)
    "2620:4f:8000::/48",  # AS112 direct delegation (RFC 7534)
    "3ffe::/16",  # the 6bone, returned (RFC 3701)
    "3fff::/20",  # documentation (RFC 9637)
    # Outside 2000::/3, where nothing is public. Named so that the table is whole.
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
    """Whether `address` is plain global unicast, so that dialling it reaches the internet and nothing inside."""
    if isinstance(address, IPv4Address):
        return not any(address in block for block in SPECIAL_IPV4)
    if address.scope_id is not None or address not in _GLOBAL_UNICAST_IPV6:
        return False
    return not any(address in block for block in SPECIAL_IPV6)


def is_inside(address: Address, networks: tuple[Network, ...]) -> bool:
    """Whether `address` is inside one of `networks`. An address with a zone is inside none."""
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        return False
    return any(address in network for network in networks)
