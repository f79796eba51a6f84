"""Passkeys as a second step: made, asked for, listed and removed; what is no answer to what was asked lets nobody in."""

import json
import re
from dataclasses import replace

import pytest
from tests.chained import actor_on
from tests.web.api.conftest import Service
from tests.web.console.authenticator import PRESENT, SoftPasskey, asked
from tests.web.console.conftest import Browser, acme_with, link_for
from tests.web.console.test_security import code_of, enter, later, set_up, with_password

from largesse.customers.members import reset
from largesse.customers.passkeys import RelyingParty
from largesse.db.pool import Database
from largesse.encryption.vault import Vault

PEOPLE = ("ada", "bea", "cem", "dan", "eve", "fay", "gus", "hal", "ida")
WORLD = acme_with(**dict.fromkeys(PEOPLE, "admin"))


@pytest.fixture
def service(own_service: Service) -> Service:
    """A service with a new database for each test: a second step of one test would be asked for in another."""
    return own_service


def added(browser: Browser, passkey: SoftPasskey, name: str = "My laptop") -> list[str]:
    """Adds a passkey; the recovery codes that were shown."""
    page = browser.get("/app/security/passkeys/new")
    answer = browser.post("/app/security/passkeys", name=name, passkey=passkey.make(asked(page.text)))
    assert answer.status_code in {200, 303}, answer.text
    return re.findall(r"<li><code>([\w-]+)</code>", answer.text)


def stepped(service: Service, email: str, answer: str | None = None, **more: str) -> Browser:
    """Somebody who gave their password, and then that answer of a passkey, or a code."""
    browser = enter(service, email)
    browser.get("/app/second-step")
    fields = more if answer is None else {"passkey": answer}
    browser.page = browser.post("/app/second-step", next="/app/people", **fields)
    return browser


def test_a_passkey_is_asked_for_beside_the_password(service: Service) -> None:
    ada, passkey = with_password(service, "ada@acme.example"), SoftPasskey()
    other = enter(service, "ada@acme.example")
    codes = added(ada, passkey, "<b>My laptop</b>")
    assert len(codes) == 10, "the first second step comes with recovery codes"
    assert other.get("/app").status_code == 303, "other sessions end"
    page = ada.get("/app/security")
    assert "&lt;b&gt;My laptop" in page.text
    assert "never used" in ada.text

    browser = enter(service, "ada@acme.example")
    before = browser.cookies["__Host-app-session"]
    assert browser.get("/app/people").headers["location"].startswith("/app/second-step")
    options = asked(browser.get("/app/second-step").text)
    assert options["rpId"] == "gifts.example"
    assert options["userVerification"] == "required"
    assert len(options["allowCredentials"]) == 1
    answer = passkey.sign(options)
    assert browser.post("/app/second-step", passkey=answer, next="/app/people").headers["location"] == ("/app/people")
    assert browser.get("/app/people").status_code == 200
    assert browser.cookies["__Host-app-session"] != before
    assert "last used" in ada.read("/app/security")
    assert re.search(r"ada@acme.example .*?Set up", ada.read("/app/people")), "others see that she has one"
    # Without it, by a recovery code.
    assert stepped(service, "ada@acme.example", code=codes[0]).page.status_code == 303
    assert stepped(service, "ada@acme.example", code=codes[0]).page.status_code == 422
    acts = service.sql("SELECT act, after FROM audit_events WHERE act LIKE 'person.passkey%'")
    assert [row["act"] for row in acts] == ["person.passkey_added"]


def test_what_was_asked_is_answered_once_and_soon(service: Service) -> None:
    bea, passkey = with_password(service, "bea@acme.example"), SoftPasskey()
    added(bea, passkey)
    browser = enter(service, "bea@acme.example")
    first = asked(browser.get("/app/second-step").text)
    assert asked(browser.get("/app/second-step").text) == first, "pages side by side ask for the same"
    wrong = replace(passkey, rp_id="evil.example").sign(first)
    assert browser.post("/app/second-step", passkey=wrong, next="").status_code == 422
    browser.get("/app/second-step")
    passkey.count += 1
    assert browser.post("/app/second-step", passkey=passkey.sign(first), next="").status_code == 422
    again = asked(browser.get("/app/second-step").text)
    assert again["challenge"] != first["challenge"]
    answer = passkey.sign(again)
    with later(service, "11 minutes"):
        assert browser.post("/app/second-step", passkey=answer, next="").status_code == 422
    service.sql("DELETE FROM sign_in_allowances")  # which were counted in the time to come
    # What another session was asked is nothing that this one was.
    thief = enter(service, "bea@acme.example")
    thief.get("/app/second-step")
    theirs = passkey.sign(asked(browser.get("/app/second-step").text))
    assert thief.post("/app/second-step", passkey=theirs, next="").status_code == 422
    assert browser.post("/app/second-step", passkey=theirs, next="").status_code == 303


@pytest.mark.parametrize(
    "wrong",
    [
        {"origin": "https://evil.example"},
        {"origin": "https://gifts.example:8443"},
        {"origin": "http://gifts.example"},
        {"rp_id": "example"},
        {"flags": PRESENT},
        {"flags": 0},
        {"id": b"another one's id"},
    ],
    ids=str,
)
def test_what_a_passkey_never_said_is_refused(service: Service, wrong: dict) -> None:
    service.sql("DELETE FROM sign_in_allowances")
    known = service.sql("SELECT EXISTS (SELECT FROM people WHERE email = 'cem@acme.example')")[0][0]
    if not known:
        added(with_password(service, "cem@acme.example"), CEMS)
    browser = enter(service, "cem@acme.example")
    options = asked(browser.get("/app/second-step").text)
    answer = replace(CEMS, count=1_000, **wrong).sign(options)
    refused = browser.post("/app/second-step", passkey=answer, next="")
    assert refused.status_code == 422
    assert "That is not correct" in refused.text
    # Nor is one made so.
    gus = with_password(service, "gus@acme.example")
    options = asked(gus.get("/app/security/passkeys/new").text)
    if "id" not in wrong:
        made = replace(SoftPasskey(), **wrong).make(options)
        assert gus.post("/app/security/passkeys", name="Mine", passkey=made).status_code == 422
        assert not service.sql(
            "SELECT FROM passkeys k JOIN people p ON p.id = k.person_id WHERE p.email = 'gus@acme.example'"
        )


CEMS = SoftPasskey()


@pytest.mark.parametrize(
    "garbage",
    [
        "{}",
        "[]",
        "no JSON",
        '{"id": 3}',
        json.dumps({"id": "AA", "rawId": "AA", "type": "public-key", "response": {}}),
        "[" * 5_000,
    ],
)
def test_garbage_is_refused_and_counted(service: Service, garbage: str) -> None:
    service.sql("DELETE FROM sign_in_allowances")
    hal = with_password(service, "hal@acme.example")
    if not service.sql("SELECT FROM recovery_codes r JOIN people p ON p.id = r.person_id WHERE email LIKE 'hal@%'"):
        added(hal, SoftPasskey())
        hal.get("/app/security/passkeys/new")
        assert hal.post("/app/security/passkeys", name="Mine", passkey=garbage).status_code == 422
    statuses = [stepped(service, "hal@acme.example", garbage).page.status_code for _ in range(2)]
    assert statuses == [422] * 2


def test_answers_that_are_guessed_are_counted(service: Service) -> None:
    dan = with_password(service, "dan@acme.example")
    added(dan, SoftPasskey())
    statuses = [stepped(service, "dan@acme.example", "{}").page.status_code for _ in range(11)]
    assert statuses == [422] * 10 + [429]


def test_a_copy_is_noticed_by_its_count(service: Service) -> None:
    eve, passkey = with_password(service, "eve@acme.example"), SoftPasskey(count=7)
    added(eve, passkey)

    def tried(one: SoftPasskey) -> int:
        browser = enter(service, "eve@acme.example")
        answer = one.sign(asked(browser.get("/app/second-step").text))
        return browser.post("/app/second-step", passkey=answer, next="").status_code

    copy = replace(passkey)
    assert tried(passkey) == 303
    assert tried(copy) == 422, "its count has not gone on"
    assert tried(passkey) == 303
    uncounted = SoftPasskey(counts=False)
    added(eve, uncounted, "Synced")
    assert [tried(uncounted), tried(uncounted)] == [303, 303]


def test_app_and_passkeys_stand_beside_each_other_and_the_last_takes_the_codes_along(service: Service) -> None:
    fay, passkey = with_password(service, "fay@acme.example"), SoftPasskey()
    secret, codes = set_up(service, fay)
    assert len(codes) == 10
    assert added(fay, passkey) == [], "codes that were shown hold on"
    browser = enter(service, "fay@acme.example")
    page = browser.get("/app/second-step")
    assert "Code from your authenticator app" in page.text
    assert "data-options" in page.text
    assert browser.post("/app/second-step", code=code_of(service, secret, 30), next="").status_code == 303
    fay.submit("/app/security", "/app/security/app/off")
    assert "10 recovery codes are left" in fay.read("/app/security")
    page = enter(service, "fay@acme.example").get("/app/second-step").text
    assert "Recovery code" in page
    assert "Code from your authenticator app" not in page
    [path] = re.findall(r"/app/security/passkeys/\d+/remove", fay.get("/app/security").text)
    ida = with_password(service, "ida@acme.example")
    assert ida.submit("/app/security", path).status_code == 404, "only one's own"
    assert fay.post(path).status_code == 303
    assert enter(service, "fay@acme.example").get("/app").status_code == 200
    left = service.sql(
        "SELECT FROM recovery_codes r JOIN people p ON p.id = r.person_id WHERE p.email = 'fay@acme.example'"
    )
    assert not left
    assert service.sql("SELECT count(*) FROM audit_events WHERE act = 'person.passkey_removed'")[0][0] == 1


def reset_person(service: Service, email: str) -> str:
    """Does what `users reset --second-step` does, and returns the path of its link."""

    async def work(database: Database, vault: Vault) -> str:
        return await reset(await actor_on(database, vault), email, second_step=True, mails=False)

    return f"/app/link/{service.on_pool(work)}"


def test_what_matters_is_proved_by_a_passkey_and_reset_forgets_it(service: Service) -> None:
    ida, passkey = with_password(service, "ida@acme.example"), SoftPasskey()
    added(ida, passkey)
    ida.get("/app/security/passkeys/new")
    again = replace(passkey).make(asked(ida.page.text))
    assert ida.post("/app/security/passkeys", name="Twice", passkey=again).status_code == 422
    with later(service, "11 minutes"):
        ida.page = ida.submit("/app/security", "/app/security/recovery-codes")
        answer = passkey.sign(asked(ida.page.text))
        shown = ida.post("/app/security/recovery-codes", proof="", passkey=answer)
        assert "Your recovery codes" in shown.text
    link = reset_person(service, "ida@acme.example")
    assert not service.sql(
        "SELECT FROM passkeys k JOIN people p ON p.id = k.person_id WHERE p.email = 'ida@acme.example'"
    )
    assert enter(service, "ida@acme.example").page.status_code == 403, "the old password ends with it"
    ida = Browser(service)
    assert ida.submit(link, password="a new password of Ida's").status_code == 303
    assert ida.get("/app").status_code == 200


def test_there_are_ten_at_most(service: Service) -> None:
    link = link_for(service, "gus@acme.example")
    gus = Browser(service)
    gus.submit(link)
    for number in range(10):
        added(gus, SoftPasskey(), f"Key {number}")
    page = gus.get("/app/security/passkeys/new")
    refused = gus.post("/app/security/passkeys", name="Eleven", passkey=SoftPasskey().make(asked(page.text)))
    assert refused.status_code == 422
    assert "Remove one first" in refused.text


@pytest.mark.parametrize(
    ("public_url", "origin"),
    [
        ("http://127.0.0.1:8000", "http://localhost:8000"),
        ("https://gifts.example", "https://gifts.example"),
        ("https://gifts.example:443/gifts", "https://gifts.example"),
        ("https://gifts.example:8443", "https://gifts.example:8443"),
        ("http://192.0.2.1:8000", None),
        ("http://[2001:db8::1]:8000", None),
    ],
)
def test_passkeys_are_for_the_name_of_the_public_address(public_url: str, origin: str | None) -> None:
    party = RelyingParty(public_url)
    assert party.has_name == (origin is not None)
    if origin is not None:
        assert party._origin == origin
