"""Where a request comes from, in a form that PostgreSQL reads."""

import pytest

from largesse.web.kit.requests import client_address


@pytest.mark.parametrize(
    ("client", "address"),
    [
        (("203.0.113.9", 1234), "203.0.113.9"),
        (("2001:DB8:0::1", 1234), "2001:db8::1"),
        (("fe80::1%eth0", 1234), "fe80::1"),
        (("::ffff:203.0.113.9", 1234), "203.0.113.9"),
        (("unknown", 0), None),
        (("203.0.113.9, 10.0.0.1", 0), None),
        (("1'; DROP TABLE orders", 0), None),
        (("", 0), None),
        (None, None),
    ],
)
def test_the_address_is_normal_or_none(client: tuple[str, int] | None, address: str | None) -> None:
    assert client_address({"client": client}) == address


def test_a_socket_without_addresses_has_none() -> None:
    assert client_address({}) is None
