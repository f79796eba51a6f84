"""What is read of a request: the parameters of its address, each kind on both sides of its limits, and where it comes from."""

from datetime import date
from typing import Any

import pytest
from starlette.requests import Request

from largesse.base.errors import NotFound
from largesse.web.kit.asgi import client_address
from largesse.web.kit.query import INT32, INT64, Day, Line, Month, Query, Whole, require_fit_path

DECLARED = {"q": Line(5), "id": Whole(100), "big": Whole(INT64), "day": Day(), "month": Month()}


def read(raw: bytes) -> Query:
    return Query(raw, DECLARED)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"q=12345", "12345"),
        (b"q=123456", "12345"),
        (b"q=a%00b%0d%0ac", "abc"),
        (b"q=a&q=b", "a"),
        (b"q=%ff", "\ufffd"),
        (b"q", ""),
        (b"", ""),
        (b"x=1&" * 499 + b"q=a", "a"),
        (b"x=1&" * 500 + b"q=a", ""),
    ],
)
def test_a_line(raw: bytes, text: str) -> None:
    assert read(raw).text("q") == text


@pytest.mark.parametrize(
    ("given", "number"),
    [
        ("0", 0), ("100", 100), ("101", None), ("007", 7), ("0007", None), ("-1", None), ("-0", None), ("+1", None), ("1.0", None),
        ("1e2", None), ("%D9%A3", None), ("%C2%B2", None), ("NaN", None), ("%2000", None), ("", None),
    ],
)  # fmt: skip
def test_a_whole_number(given: str, number: int | None) -> None:
    query = read(f"id={given}".encode())
    assert query.number("id") == number
    assert query.is_wrong("id") == (number is None and given != "")


def test_the_largest_number() -> None:
    assert read(b"big=%d" % INT64).number("big", INT64) == INT64
    assert read(b"big=%d" % INT64).number("big") == INT32  # a list begins at the highest id
    assert read(b"big=%d" % (INT64 + 1)).number("big", INT64) is None


@pytest.mark.parametrize(
    ("given", "day"),
    [
        ("2026-11-30", date(2026, 11, 30)),
        ("0001-01-01", date(1, 1, 1)),
        ("2026-11-31", None),
        ("20261130", None),
        ("2026-W48-1", None),
        ("2026-11-30T00:00", None),
    ],
)
def test_a_day(given: str, day: date | None) -> None:
    assert read(f"day={given}".encode()).day("day") == day


@pytest.mark.parametrize(
    ("given", "day"),
    [
        ("2026-11", date(2026, 11, 1)),
        ("2000-01", date(2000, 1, 1)),
        ("2199-12", date(2199, 12, 1)),
        ("1999-12", None),
        ("2200-01", None),
        ("2026-13", None),
        ("2026-11-30", None),
    ],
)
def test_a_month(given: str, day: date | None) -> None:
    assert read(f"month={given}".encode()).day("month") == day


def test_what_is_not_declared_is_not_there() -> None:
    query = read(b"q=a&other=b&id=x&id=7")
    assert query.pairs == [("q", "a"), ("id", "x"), ("id", "7")]
    with pytest.raises(AssertionError, match="other is not declared"):
        query.text("other")


@pytest.mark.parametrize(
    ("value", "is_fit"),
    [("a", True), ("a" * 400, True), ("a" * 401, False), ("a\x00", False), (INT64, True), (INT64 + 1, False)],
)
def test_a_parameter_of_the_path(value: Any, is_fit: bool) -> None:
    request = Request({"type": "http", "path_params": {"name": value}})
    if is_fit:
        require_fit_path(request)
    else:
        with pytest.raises(NotFound):
            require_fit_path(request)


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
