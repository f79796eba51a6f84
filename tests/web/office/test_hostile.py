"""Every address and every form of the back office with what nobody types: no fault of ours, and every page is reached by links."""

import re

import pytest
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser
from tests.web.hostile import VALUES
from tests.web.office.conftest import add_staff, staff_in
from tests.web.office.test_routes import GUARDED, LEFT_OUT

from largesse.web.console.page_routes import PARAMETERS, PageRoute
from largesse.web.office.routes import ROUTES

# Fields that forms of the back office have, and one that none has.
FIELDS = ("email", "name", "role", "code", "password", "proof", "next", "reason", "price", "amount", "unknown")


@pytest.fixture(scope="module")
def owner(service: Service) -> Browser:
    return staff_in(service, "owner")


def filled(route: PageRoute, value: str) -> str:
    """The address of a route with a value in each place; numbers are digits for the router."""
    text = re.sub(r"\{\w+:int\}", "2147483648", route.path)
    return re.sub(r"\{\w+(:path)?\}", lambda _: value or "0", text)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_no_parameter_of_a_page_is_a_fault_of_ours(owner: Browser) -> None:
    pages = [route for route in ROUTES if route.method == "GET" and route.path not in LEFT_OUT]
    for value in VALUES.values():
        query = "&".join(f"{name}={value[:300]}" for name in (*PARAMETERS, "unknown"))
        for route in pages:
            address = f"{filled(route, value[:300])}?{query}"
            answer = owner.get(address)
            assert answer.status_code < 500, (address, answer.text)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_no_field_of_a_form_is_a_fault_of_ours(owner: Browser) -> None:
    values = ["", "\x00", "x" * 5_000, "9" * 400, "-1", "<script>alert(1)</script>", "\u202e", "0001-01-01", "1e400"]
    for at, route in enumerate(route for route in GUARDED if route.method == "POST" and not route.takes_files):
        for value in values[at % 3 :: 3]:
            answer = owner.submit("/office/security", filled(route, "1"), **dict.fromkeys(FIELDS, value))
            assert answer.status_code < 500, (route.path, value[:20], answer.text)
            assert "<script>alert(1)" not in answer.text, route.path


def test_a_form_of_another_site_or_without_our_token_changes_nothing(owner: Browser) -> None:
    owner.get("/office/security")  # no refused form spends its token
    for route in GUARDED:
        if route.method != "POST" or route.takes_files:
            continue
        assert owner.post(filled(route, "1"), token="x").status_code == 403, route.path
        owner.headers["Sec-Fetch-Site"] = "cross-site"
        try:
            assert owner.post(filled(route, "1")).status_code == 403, route.path
        finally:
            del owner.headers["Sec-Fetch-Site"]
    assert owner.post("/office/find", by="email", sought="x").status_code in {200, 303, 422}, "its token is still good"


@pytest.mark.long
@pytest.mark.timeout(300)
def test_each_page_of_the_menu_and_of_the_core_is_reached_by_links(owner: Browser) -> None:
    """No link leads nowhere either."""
    seen, waiting = set[str](), ["/office"]
    while waiting:
        address = waiting.pop()
        path = address.partition("#")[0]
        if path in seen or len(seen) > 200:
            continue
        seen.add(path)
        answer = owner.get(path)
        assert answer.status_code in {200, 303}, path
        if answer.headers.get("content-type", "").startswith("text/html"):
            waiting += [link for link in owner.links if re.match(r"/office(?!/assets)", link)]
    reached = {path.partition("?")[0] for path in seen}
    menu = {route.path for route in ROUTES if route.group}
    core = {"/office/security", "/office/security/app", "/office/security/passkeys/new"}
    assert menu - reached == set()
    has_app = "/office/security/app"  # not offered to who has one
    assert core - reached <= {has_app}
    assert any(re.fullmatch(r"/office/staff/\d+", path) for path in reached)


def test_an_address_typed_at_the_web_application_uses_up_no_try_here(service: Service) -> None:
    """Otherwise anybody could keep staff out, also of a back office that is open to few networks."""
    staff_id = add_staff(service, "support")
    for typed in (f"code/{staff_id}", f"staff/code/{staff_id}", "staff/support@largesse.example"):
        stranger = Browser(service)
        stranger.get("/app/sign-in")
        answers = [stranger.post("/app/sign-in", email=typed, password=f"wrong {n}").status_code for n in range(11)]
        assert answers == [403] * 10 + [429]
    staff_in(service, "support")
    browser = Browser(service)
    browser.get("/office/sign-in")
    assert browser.post("/office/sign-in", email="support@largesse.example", password="wrong").status_code == 403
