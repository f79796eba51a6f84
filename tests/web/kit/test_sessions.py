"""Cookies that are sealed, end, and cannot be made up or moved."""

from datetime import UTC, datetime, timedelta

import pytest
from starlette.requests import Request
from starlette.responses import Response

from largesse.encryption.vault import Vault
from largesse.web.kit.sessions import (
    form_key,
    give_cookie,
    is_form_of,
    open_cookie,
    page_cookies,
    read_cookie,
    seal_cookie,
)

NOW = datetime(2030, 1, 2, 9, tzinfo=UTC)
ENDS = NOW + timedelta(hours=1)


def test_what_it_is_about_comes_back_until_it_ends(vault: Vault) -> None:
    cookie = seal_cookie(vault, "visit", b"7/1", ENDS)
    assert "7/1" not in cookie
    assert open_cookie(vault, "visit", cookie, NOW) == b"7/1"
    assert open_cookie(vault, "visit", cookie, ENDS - timedelta(seconds=1)) == b"7/1"
    assert open_cookie(vault, "visit", cookie, ENDS) is None


def test_it_is_for_its_purpose_and_installation_alone(vault: Vault) -> None:
    cookie = seal_cookie(vault, "visit", b"7/1", ENDS)
    assert open_cookie(vault, "other", cookie, NOW) is None
    assert open_cookie(Vault([bytes(32)]), "visit", cookie, NOW) is None


@pytest.mark.parametrize("made_up", ["", "x", "AAAA", "ä", "=", "a" * 400, "a" * 401, "../..", "7/1/99999999999"])
def test_made_up_ones_are_none(vault: Vault, made_up: str) -> None:
    assert open_cookie(vault, "visit", made_up, NOW) is None


def test_a_changed_one_is_none(vault: Vault) -> None:
    cookie = seal_cookie(vault, "visit", b"7/1", ENDS)
    for at in range(0, len(cookie) - 2, 5):
        changed = cookie[:at] + ("A" if cookie[at] != "A" else "B") + cookie[at + 1 :]
        assert open_cookie(vault, "visit", changed, NOW) is None


def test_a_form_is_of_one_session(vault: Vault) -> None:
    one, other = (seal_cookie(vault, "visit", b"7/1", ENDS) for _ in range(2))
    assert one != other
    assert is_form_of(vault, one, form_key(vault, one))
    for key in (form_key(vault, other), "", "ä", form_key(vault, one).upper() + "0"):
        assert not is_form_of(vault, one, key)


@pytest.mark.parametrize("is_secure", [True, False])
def test_a_cookie_is_for_its_pages_and_no_script(is_secure: bool) -> None:
    response = Response()
    give_cookie(response, "gift", "v", lasts_s=3600, path="/claim/gift/1", is_secure=is_secure, same_site="strict")
    kept = set(response.headers["set-cookie"].split("; "))
    assert {"gift=v", "HttpOnly", "Max-Age=3600", "Path=/claim/gift/1", "SameSite=strict"} == kept - {"Secure"}
    assert ("Secure" in kept) is is_secure


@pytest.mark.parametrize(
    ("public_url", "base", "cookie"),
    [
        ("https://gifts.example", "", "__Host-app-session=v; HttpOnly; Max-Age=9; Path=/; SameSite=lax; Secure"),
        (
            "https://example.com/gifts",
            "/gifts",
            "app-session=v; HttpOnly; Max-Age=9; Path=/gifts/app; SameSite=lax; Secure",
        ),
        ("http://127.0.0.1:8000", "", "app-session=v; HttpOnly; Max-Age=9; Path=/app; SameSite=lax"),
    ],
)
def test_no_subdomain_can_set_a_cookie_of_an_own_host(public_url: str, base: str, cookie: str) -> None:
    response, cookies = Response(), page_cookies(public_url, base, "/app")
    cookies.give(response, "session", "v", 9)
    assert response.headers["set-cookie"] == cookie
    request = Request({"type": "http", "headers": [(b"cookie", cookie.partition(";")[0].encode())]})
    assert cookies.read(request, "session") == "v"


@pytest.mark.parametrize(
    ("sent", "value"),
    [
        (["app=abc"], "abc"),
        (["a=1; app = abc ;b=2"], "abc"),
        (["a=1", "app=abc"], "abc"),
        (["app=x=y"], "x=y"),
        (["apps=abc; APP=abc; app"], ""),
        (["app=abc; \x85app=planted; \xa0app=planted"], "abc"),
        ([""], ""),
        ([], ""),
        (['app="\\"x\\""'], '"\\"x\\""'),
    ],
)
def test_a_cookie_is_read_as_it_was_sent(sent: list[str], value: str) -> None:
    request = Request({"type": "http", "headers": [(b"cookie", one.encode("latin-1")) for one in sent]})
    assert read_cookie(request, "app") == value
