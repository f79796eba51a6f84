# ruff: noqa: RUF001 - full-width digits are what some of these tests are about
"""Targets of webhooks: how they are read, and which addresses are public."""

import asyncio
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.webhooks.conftest import answering, no_names

from largesse.base.errors import InvalidRequest
from largesse.webhooks import targets
from largesse.webhooks.targets import (
    SPECIAL_IPV4,
    SPECIAL_IPV6,
    Address,
    check_target,
    is_inside,
    is_public,
    parse_target,
)

NOTHING_ALLOWED: tuple[()] = ()
LOOPBACK = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))


@pytest.mark.parametrize(
    ("url", "host", "path_and_query"),
    [
        ("https://example.com", "example.com", "/"),
        ("HTTPS://EXAMPLE.com/Hook?A=b", "example.com", "/Hook?A=b"),
        ("https://example.com?a=b", "example.com", "/?a=b"),
        ("https://example.com:443/a%20b//../c", "example.com", "/a%20b//../c"),
        ("https://example.com./", "example.com", "/"),
        ("https://hooks_1.example.com/", "hooks_1.example.com", "/"),
        ("https://bücher.example/", "xn--bcher-kva.example", "/"),
        ("https://BÜCHER。example/", "xn--bcher-kva.example", "/"),
        ("https://faß.example/", "xn--fa-hia.example", "/"),
        ("https://1.1.1.1/", "1.1.1.1", "/"),
        ("https://１．１．１．１/", "1.1.1.1", "/"),
        ("https://[2606:4700:4700:0::1111]/", "2606:4700:4700::1111", "/"),
    ],
)
def test_a_target_is_kept_as_it_will_be_dialled(url: str, host: str, path_and_query: str) -> None:
    target = parse_target(url, NOTHING_ALLOWED)
    assert (target.url, target.scheme, target.host, target.port) == (url, "https", host, 443)
    assert target.path_and_query == path_and_query
    assert not target.only_allowed


@pytest.mark.parametrize("port", [1, 22, 80, 442, 444, 8443, 65535])
@pytest.mark.parametrize("host", ["example.com", "1.1.1.1", "[2606:4700:4700::1111]"])
def test_a_target_may_have_any_port(host: str, port: int) -> None:
    target = parse_target(f"https://{host}:{port}/", NOTHING_ALLOWED)
    assert (target.scheme, target.port) == ("https", port)
    assert not target.only_allowed


# Ways of writing 127.0.0.1 and its like, and hosts that are none: each is normalised and judged, or refused as it stands.
LOOPBACK_WRITTEN = [
    "127.0.0.1", "127.0.0.1.", "127.1", "127.0.1", "2130706433", "0177.0.0.1", "0177.1", "017700000001", "0x7f.1",
    "0x7F000001", "0x7f.0x0.0x0.0x1", "127.0.0.0x1", "0x7f.0.0.01", "00127.0.0.1", "127.000.000.001",
    "１２７.０.０.１", "１２７．１", "127。0。0。1", "①②⑦.0.0.①", "127.0.0.1%00", "%31%32%37.0.0.1", "127.0.0.256", "127.0.0.1.1",
    "127.0.0.", "1.2.3.4.5", "example.0x1", "example.1", "4294967295", "4294967296", "0", "0x", "[::1]", "[::]",
    "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]", "[fe80::1%25eth0]", "[fe80::1%eth0]", "[2606:4700::1%25eth0]", "[::1", "::1", "[127.0.0.1]",
    "[v1.fe80]", "localhost", "LOCALHOST", "localhost.", "ｌocalhost", "a.localhost", "printer.local", "db.internal",
    "router.home.arpa", "localhost.localdomain", "intranet", "xn--", "exa mple.com", "-a.example", "a..example",
    ".example.com", "example.com..", ".", "a" * 64 + ".example", "a." * 127 + "ab", "exam%70le.com", "ex\u00adample。",
]  # fmt: skip


@pytest.mark.parametrize("host", LOOPBACK_WRITTEN)
def test_no_way_of_writing_an_inner_host_passes(host: str) -> None:
    for port in ("", ":443", ":8443"):
        with pytest.raises(InvalidRequest, match="`target_url`"):
            parse_target(f"https://{host}{port}/", NOTHING_ALLOWED)


@pytest.mark.parametrize(
    "url",
    [
        "", "/", "example.com", "//example.com", "https:", "https:example.com", "https:/example.com", "https://", "https:///x",
        "http://example.com/", "ftp://example.com/", "file:///etc/passwd", "javascript:alert(1)", "gopher://example.com/",
        "https://user@example.com/", "https://user:pass@example.com/", "https://example.com@127.0.0.1/", "https://@example.com/",
        "https://example.com#@127.0.0.1/", "https://example.com/#x", "https://example.com#", "https://example.com\\@127.0.0.1/",
        "https:\\\\example.com\\", "https://example.com/\\x", " https://example.com/", "https://example.com/ ",
        "https://exam\tple.com/", "https://example.com/\r\nX: y", "https://example.com/\0", "https://example.com/\x7f",
        "https://example.com/\N{NO-BREAK SPACE}", "https://example.com/\N{ZERO WIDTH SPACE}", "https://example.com/\N{RIGHT-TO-LEFT OVERRIDE}",
        "https://example.com:/", "https://example.com:0/", "https://example.com:65536/", "https://example.com:443443/",
        "https://example.com:080/", "https://example.com:0443/", "http://example.com:443/", "http://example.com:8443/",
        "https://example.com:+443/", "https://example.com:４４３/", "https://example.com:443:443/", "https://example.com:x/",
        "https://example.com/é", "https://example.com/%", "https://example.com/%zz", "https://example.com/<>", "https://example.com/[1]",
        "https://exa<mple.com/", "https://exa\"mple.com/", "https://[2606:4700::1]x/", "https://x[2606:4700::1]/",
    ],
)  # fmt: skip
def test_what_is_no_plain_https_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequest, match="`target_url`"):
        parse_target(url, NOTHING_ALLOWED)


def test_a_url_holds_at_most_2048_characters() -> None:
    base = "https://example.com/"
    assert parse_target(base + "a" * (2048 - len(base)), NOTHING_ALLOWED)
    with pytest.raises(InvalidRequest, match="2048"):
        parse_target(base + "a" * (2049 - len(base)), NOTHING_ALLOWED)


@given(st.text(max_size=60))
def test_any_text_is_either_a_target_or_refused(text: str) -> None:
    for url in (text, f"https://{text}/", f"https://example.com/{text}"):
        try:
            target = parse_target(url, NOTHING_ALLOWED)
        except InvalidRequest as error:
            assert "target_url" in error.detail  # noqa: PT017 - either outcome is right
        else:
            assert target.host.isascii()
            assert target.path_and_query.isascii()
            assert target.path_and_query.startswith("/")


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:8080/", "http://127.0.0.1/", "https://127.0.0.1:8443/", "https://127.0.0.1/", "http://[::1]:9/"],
)
def test_addresses_inside_the_allowed_networks_pass_on_any_port(url: str) -> None:
    assert parse_target(url, LOOPBACK).address in {ip_address("127.0.0.1"), ip_address("::1")}
    with pytest.raises(InvalidRequest):
        parse_target(url, NOTHING_ALLOWED)


@pytest.mark.parametrize("url", ["http://1.1.1.1/", "http://1.1.1.1:8443/", "https://10.0.0.1/", "http://2130706433/"])
def test_allowed_networks_allow_nothing_outside_them(url: str) -> None:
    with pytest.raises(InvalidRequest, match="`target_url`"):
        parse_target(url, LOOPBACK)


@pytest.mark.parametrize(
    ("allowed", "url", "addresses", "accepted"),
    [
        (NOTHING_ALLOWED, "https://example.com/", ["1.1.1.1"], True),
        (NOTHING_ALLOWED, "https://example.com/", ["1.1.1.1", "2606:4700::1"], True),
        (NOTHING_ALLOWED, "https://example.com/", ["1.1.1.1", "10.0.0.1"], False),
        (NOTHING_ALLOWED, "https://example.com/", ["2606:4700::1", "fe80::1%eth0"], False),
        (NOTHING_ALLOWED, "https://example.com/", ["::ffff:1.1.1.1"], False),
        (NOTHING_ALLOWED, "https://example.com/", ["127.0.0.1"], False),
        (NOTHING_ALLOWED, "https://example.com/", [], True),
        (LOOPBACK, "http://localhost:8080/", ["127.0.0.1", "::1"], True),
        (LOOPBACK, "http://localhost:8080/", ["127.0.0.1", "::2"], False),
        (LOOPBACK, "http://example.com/", ["127.0.0.1"], True),
        (LOOPBACK, "http://example.com/", ["1.1.1.1"], False),
        (LOOPBACK, "http://example.com/", ["127.0.0.1", "1.1.1.1"], False),
        (LOOPBACK, "https://example.com:8443/", ["1.1.1.1"], True),
        (LOOPBACK, "https://example.com:8443/", ["127.0.0.2"], True),
        (LOOPBACK, "https://receiver/", ["127.0.0.1"], True),
        (LOOPBACK, "https://receiver/", ["1.1.1.1"], False),
        (LOOPBACK, "http://example.com/", [], False),
        (LOOPBACK, "https://receiver/", [], False),
        (LOOPBACK, "https://example.com/", ["127.0.0.1", "1.1.1.1"], True),
    ],
)
async def test_a_name_passes_when_all_its_addresses_are_public_or_allowed(
    allowed: tuple[IPv4Network | IPv6Network, ...], url: str, addresses: list[str], accepted: bool
) -> None:
    target = parse_target(url, allowed)
    if accepted:
        await check_target(target, allowed, answering(*addresses), 1)
        return
    with pytest.raises(InvalidRequest, match="`target_url`"):
        await check_target(target, allowed, answering(*addresses), 1)


async def test_a_public_name_that_does_not_resolve_passes() -> None:
    await check_target(parse_target("https://example.com/", NOTHING_ALLOWED), NOTHING_ALLOWED, no_names, 1)


async def test_a_resolver_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "RESOLVE_TIMEOUT_S", 0.01)

    async def hanging(host: str, customer_id: int) -> Sequence[Address]:
        await asyncio.Event().wait()
        raise AssertionError

    await check_target(parse_target("https://example.com/", NOTHING_ALLOWED), NOTHING_ALLOWED, hanging, 1)


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
