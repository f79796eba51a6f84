"""The Security page: password, second step, sessions, how pages are written, and what a customer asks of everybody."""

import base64
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser, SignIn, acme_with, link_for

from largesse.customers.second_step import _totp
from largesse.customers.sign_in_links import new_link
from largesse.customers.sign_in_store import find_person_id

PASSWORD = "four plain words here"
WORLD = acme_with(ada="admin", bea="admin", cem="member", dan="member", eve="member")


@pytest.fixture
def service(own_service: Service) -> Service:
    """A service with a new database for each test: a second step of one test would be asked for in another."""
    return own_service


@contextmanager
def later(service: Service, passed: str) -> Iterator[None]:
    """As if that much time had passed."""
    service.sql("UPDATE clock SET ahead_by = ahead_by + $1::text::interval", passed)
    try:
        yield
    finally:
        service.sql("UPDATE clock SET ahead_by = '0'")


def with_password(service: Service, email: str) -> Browser:
    browser, link = Browser(service), link_for(service, email, "invitation")
    assert browser.submit(link, password=PASSWORD).status_code == 303
    return browser


def enter(service: Service, email: str, password: str = PASSWORD) -> Browser:
    browser = Browser(service)
    browser.page = browser.submit("/app/sign-in", email=email, password=password)
    return browser


def code_of(service: Service, secret: bytes, offset_s: int = 0) -> str:
    now_s = service.sql("SELECT extract(epoch FROM clock_now())::float8")[0][0]
    return _totp(secret).generate(now_s + offset_s).decode()


def without_second_steps(service: Service) -> None:
    service.sql("UPDATE people SET totp = NULL")
    service.sql("DELETE FROM recovery_codes")


def set_up(service: Service, browser: Browser) -> tuple[bytes, list[str]]:
    """Sets an app up; its secret, and the recovery codes that were shown."""
    page = browser.get("/app/security/app")
    secret = base64.b32decode(re.findall(r'class="secret">([A-Z2-7 ]+)<', page.text)[0].replace(" ", ""))
    sealed = re.findall(r'name="secret" value="([0-9a-f]+)"', page.text)[0]
    wrong = browser.post("/app/security/app", secret=sealed, code="000000")
    assert wrong.status_code == 422
    shown = browser.post("/app/security/app", secret=sealed, code=code_of(service, secret))
    assert shown.status_code == 200
    return secret, re.findall(r"<li><code>([\w-]+)</code>", shown.text)


def test_with_a_second_step_a_password_alone_shows_nothing(service: Service) -> None:
    secret, codes = set_up(service, with_password(service, "ada@acme.example"))
    browser = enter(service, "ada@acme.example")
    before = browser.cookies["__Host-app-session"]
    for path in ("/app", "/app/people", "/app/security", "/app/customers"):
        assert browser.get(path).headers["location"].startswith("/app/second-step?next=")
    browser.sees("/app/second-step?next=%2Fapp%2Fpeople", "lost your device", "ask the operator for a link")
    assert browser.post("/app/second-step", code="000000", next="/app").status_code == 422
    answer = browser.post("/app/second-step", code=code_of(service, secret, 30), next="/app/people")
    assert answer.headers["location"] == "/app/people"
    assert browser.get("/app/people").status_code == 200
    assert browser.cookies["__Host-app-session"] != before
    assert Browser(service, cookies={"__Host-app-session": before}).get("/app").status_code == 303
    # Without the app, by a recovery code, once; a link of the operator asks for it, too.
    for expected in (303, 422):
        link, other = link_for(service, "ada@acme.example"), Browser(service)
        other.submit(link)
        assert other.submit("/app/second-step", code=codes[0], next="").status_code == expected


def test_codes_that_are_guessed_are_counted(service: Service) -> None:
    set_up(service, with_password(service, "bea@acme.example"))
    statuses = []
    for _ in range(11):
        browser = enter(service, "bea@acme.example")
        statuses.append(browser.submit("/app/second-step", code="000000").status_code)
    assert statuses == [422] * 10 + [429]


def test_what_matters_asks_again_after_a_while(service: Service) -> None:
    cem = with_password(service, "cem@acme.example")
    with later(service, "11 minutes"):
        cem.get("/app/security")
        asked = cem.get("/app/security/app")
        assert asked.headers["location"] == "/app/prove?next=%2Fapp%2Fsecurity%2Fapp"
        cem.get("/app/prove?next=%2Fapp%2Fsecurity%2Fapp")
        assert cem.post("/app/prove", next="/app/security/app").status_code == 200, "no proof is none"
        assert cem.post("/app/prove", proof="wrong", next="/app/security/app").status_code == 422
        proved = cem.post("/app/prove", proof=PASSWORD, next="/app/security/app")
        assert proved.headers["location"] == "/app/security/app"
        other = enter(service, "cem@acme.example")
        assert cem.submit("/app/security", "/app/security/password", password="short").status_code == 422
        assert cem.post("/app/security/password", password="another four words").status_code == 303
        assert cem.get("/app").status_code == 200
        assert other.get("/app").status_code == 303, "other sessions end"
    assert enter(service, "cem@acme.example").page.status_code == 403
    assert enter(service, "cem@acme.example", "another four words").page.status_code == 303


def test_a_new_password_ends_the_links_that_would_replace_it(service: Service) -> None:
    """Somebody who could read the person's mail for a while may have asked for one, and not used it yet."""
    cem = with_password(service, "cem@acme.example")

    async def mailed(connection: Any) -> str:
        person_id = await find_person_id(connection, "cem@acme.example")
        return await new_link(connection, "reset", person_id=person_id, is_mailed=True)

    links = [f"/app/link/{service.ask(mailed)}", link_for(service, "cem@acme.example")]
    invitation = link_for(service, "bea@acme.example", "invitation")
    assert cem.submit("/app/security", "/app/security/password", password="another four words").status_code == 303
    assert [Browser(service).get(link).status_code for link in (*links, invitation)] == [404, 404, 200]


def test_sessions_are_listed_and_taken_back(service: Service) -> None:
    one = with_password(service, "dan@acme.example")
    two = Browser(
        service, headers={"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}
    )
    two.submit("/app/sign-in", email="dan@acme.example", password=PASSWORD)
    stranger = with_password(service, "eve@acme.example")
    page = one.get("/app/security")
    assert "Firefox, Linux" in one.text
    assert two.host in one.text
    [ending] = set(re.findall(r"/app/security/sessions/(\d+)/end", page.text))
    stranger.submit("/app/security", f"/app/security/sessions/{ending}/end")
    assert two.get("/app").status_code == 200, "only one's own"
    one.submit("/app/security", f"/app/security/sessions/{ending}/end")
    assert two.get("/app").status_code == 303
    three = enter(service, "dan@acme.example")
    one.submit("/app/security", "/app/security/sessions/end")
    assert three.get("/app").status_code == 303
    assert one.get("/app").status_code == 200


def test_pages_are_written_as_somebody_wishes(service: Service, sign_in: SignIn) -> None:
    eve = sign_in("eve@acme.example")
    assert eve.submit("/app/security", "/app/security/preferences", language="de", zone="Moon/Base").status_code == 422
    eve.get("/app/security")
    eve.get("/app/security")
    assert '<option value="Asia/Tokyo">' in eve.page.text
    assert eve.post("/app/security/preferences", language="de", zone="Asia/Tokyo").status_code == 303
    assert "Zeiten in Asia/Tokyo" in eve.read("/app")
    eve.get("/app/security")
    page = eve.get("/app/security")
    assert page.headers["content-language"] == "de"
    assert "Sicherheit" in eve.text
    assert "Asia/Tokyo" in page.text
    eve.submit("/app/security", "/app/security/preferences", language="", zone="")
    assert eve.get("/app").headers["content-language"] == "en"


def test_people_change_their_own_name(service: Service, sign_in: SignIn) -> None:
    eve = sign_in("eve@acme.example")
    for typed in ("", " ", "x" * 101, "E\u202eve"):
        assert eve.submit("/app/security", "/app/security/name", name=typed).status_code == 422
    for _ in range(2):  # the second time, it is the same name
        assert eve.submit("/app/security", "/app/security/name", name=" Eve O'Neill & Co ").status_code == 303
    assert "Eve O&#39;Neill &amp; Co" in eve.get("/app/security").text
    assert service.sql("SELECT name FROM users WHERE email = 'eve@acme.example'")[0][0] == "Eve O'Neill & Co"
    assert service.sql("SELECT count(*) FROM users WHERE name = 'Eve O''Neill & Co'")[0][0] == 1
    entries = service.sql("SELECT subject, environment, before, after FROM audit_events WHERE act = 'person.renamed'")
    assert len(entries) == 1
    assert (entries[0]["subject"], entries[0]["environment"]) == ("eve@acme.example", None)
    ada = sign_in("ada@acme.example")
    assert "changed their name from Eve to Eve O'Neill & Co" in ada.read("/app/audit").replace("&#39;", "'")
    assert "Eve O'Neill & Co" in ada.read("/app/people").replace("&#39;", "'")


def test_a_customer_asks_everybody_for_a_second_step(service: Service, sign_in: SignIn) -> None:
    without_second_steps(service)
    service.sql("DELETE FROM sign_in_allowances")
    ada, eve = sign_in("ada@acme.example"), sign_in("eve@acme.example")
    assert eve.submit("/app/security", "/app/security/required", required="yes").status_code == 403
    ada.submit("/app/security", "/app/security/required", required="yes")
    assert eve.get("/app").status_code == 200, "first the administrator's own"
    set_up(service, ada)
    ada.submit("/app/security", "/app/security/required", required="yes")
    for path in ("/app", "/app/people"):
        assert eve.get(path).headers["location"] == "/app/security"
    assert "requires a second step to sign in" in eve.read("/app/security")
    set_up(service, eve)
    assert eve.get("/app").status_code == 200
    ada.submit("/app/security", "/app/security/required", required="no")
    without_second_steps(service)
    assert sign_in("dan@acme.example").get("/app").status_code == 200
