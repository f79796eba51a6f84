from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from largesse.webhooks.targets import SPECIAL_IPV4, SPECIAL_IPV6, is_inside, is_public

# Each block's first and last address, and the addresses outside it that are public themselves.
IPV4_BLOCKS = [
    # block, public below it, public above it
    ("0.0.0.0/8", None, "1.0.0.0"),
    ("10.0.0.0/8", "9.255.255.255", "11.0.0.0"),
    ("100.64.0.0/10", "100.63.255.255", "100.128.0.0"),
    ("127.0.0.0/8", "126.255.255.255", "128.0.0.0"),
    ("168.63.129.16/32", "168.63.129.15", "168.63.129.17"),
    ("169.254.0.0/16", "169.253.255.255", "169.255.0.0"),
    ("172.16.0.0/12", "172.15.255.255", "172.32.0.0"),
    ("192.0.0.0/24", "191.255.255.255", "192.0.1.0"),
    ("192.0.2.0/24", "192.0.1.255", "192.0.3.0"),
    ("192.31.196.0/24", "192.31.195.255", "192.31.197.0"),
    ("192.52.193.0/24", "192.52.192.255", "192.52.194.0"),
    ("192.88.99.0/24", "192.88.98.255", "192.88.100.0"),
    ("192.168.0.0/16", "192.167.255.255", "192.169.0.0"),
    ("192.175.48.0/24", "192.175.47.255", "192.175.49.0"),
    ("198.18.0.0/15", "198.17.255.255", "198.20.0.0"),
    ("198.51.100.0/24", "198.51.99.255", "198.51.101.0"),
    ("203.0.113.0/24", "203.0.112.255", "203.0.114.0"),
    ("224.0.0.0/4", "223.255.255.255", None),
    ("240.0.0.0/4", None, None),
]
LAST = "ffff:ffff:ffff:ffff:ffff:ffff:ffff"
IPV6_BLOCKS = [
    ("::/8", None, None),
    ("::/96", None, None),
    ("::ffff:0:0/96", None, None),
    ("::ffff:0:0:0/96", None, None),
    ("64:ff9b::/96", None, None),
    ("64:ff9b:1::/48", None, None),
    ("100::/64", None, None),
    ("100:0:0:1::/64", None, None),
    ("200::/7", None, None),
    ("400::/6", None, None),
    ("800::/5", None, None),
    ("1000::/4", None, "2000::"),
    ("2001::/23", f"2000:{LAST}", "2001:200::"),
    ("2001::/32", f"2000:{LAST}", None),
    ("2001:db8::/32", "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db9::"),
    ("2002::/16", f"2001:{LAST}", "2003::"),
    ("2620:4f:8000::/48", "2620:4f:7fff:ffff:ffff:ffff:ffff:ffff", "2620:4f:8001::"),
    ("3ffe::/16", f"3ffd:{LAST}", None),
    ("3fff::/20", None, "3fff:1000::"),
    ("4000::/2", f"3fff:{LAST}", None),
    ("5f00::/16", None, None),
    ("8000::/1", None, None),
    ("fc00::/7", None, None),
    ("fe80::/10", None, None),
    ("fec0::/10", None, None),
    ("ff00::/8", None, None),
]


@pytest.mark.parametrize(("block", "below", "above"), IPV4_BLOCKS + IPV6_BLOCKS)
def test_a_block_is_not_public_from_edge_to_edge(block: str, below: str | None, above: str | None) -> None:
    network = IPv6Network(block) if ":" in block else IPv4Network(block)
    middle = network[network.num_addresses // 2]
    assert not is_public(network[0])
    assert not is_public(middle)
    assert not is_public(network[-1])
    for neighbour in (below, above):
        assert neighbour is None or is_public(ip_address(neighbour))


def test_the_tables_hold_what_the_edges_above_test() -> None:
    tested = {block for block, _, _ in IPV4_BLOCKS}
    assert {str(block) for block in SPECIAL_IPV4} - tested == {"255.255.255.255/32"}
    assert {str(block) for block in SPECIAL_IPV6} - {block for block, _, _ in IPV6_BLOCKS} == {"::/128", "::1/128"}


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",  # AWS, Azure, Google, DigitalOcean, Oracle
        "169.254.170.2",  # credentials of AWS container tasks
        "100.100.100.200",  # Alibaba
        "168.63.129.16",  # Azure
        "192.0.0.192",  # Oracle, older
        "fd00:ec2::254",  # AWS
        "fd20:ce::254",  # Google
        "::ffff:169.254.169.254",
        "::169.254.169.254",
        "64:ff9b::169.254.169.254",
        "2002:a9fe:a9fe::",  # 6to4 of 169.254.169.254
        "2001:0:5601:5601::a9fe",  # Teredo
        "fe80::1%eth0",
        "2606:4700:4700::1111%eth0",
    ],
)
def test_metadata_services_and_what_leads_to_them_are_not_public(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", ["1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "2a00:1450::8a"])
def test_the_internet_is_public(address: str) -> None:
    assert is_public(ip_address(address))


@given(st.ip_addresses(v=4))
def test_python_finds_nothing_private_in_what_is_public(address: IPv4Address) -> None:
    if is_public(address):
        assert address.is_global
        assert not address.is_multicast


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_inside_an_ipv6_one_is_never_public(address: IPv4Address) -> None:
    low = int(address)
    for prefix in (0, 0xFFFF << 32, 0x64FF9B << 96):
        assert not is_public(IPv6Address(prefix + low))
    assert not is_public(IPv6Address((0x2002 << 112) + (low << 80)))


def test_an_address_is_inside_the_networks_of_its_own_version() -> None:
    networks = (IPv4Network("127.0.0.0/8"), IPv6Network("fe80::/10"))
    assert is_inside(ip_address("127.255.255.255"), networks)
    assert is_inside(ip_address("fe80::1"), networks)
    assert not is_inside(ip_address("128.0.0.0"), networks)
    assert not is_inside(ip_address("::ffff:127.0.0.1"), networks)
    assert not is_inside(ip_address("fe80::1%eth0"), networks)
