"""Guessing passwords over HTTP: next to none is tried, the owner is kept out of nothing, and nobody learns which address is known."""

import os
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from ipaddress import IPv4Address

import pytest
from argon2 import PasswordHasher, extract_parameters
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser, acme_with
from tests.web.console.test_security import PASSWORD, later, set_up, with_password, without_second_steps

GUESSES = int(os.environ.get("GUESSES", "40"))
AT_ONCE = 8
TRIED, REFILL_S = 10, 90  # by one address at once, and until there is one more
OF_A_NETWORK = 60

WORLD = acme_with(ada="admin", bea="admin", cyd="admin")


@pytest.fixture(autouse=True)
def fresh(service: Service) -> None:
    service.sql("DELETE FROM sign_in_allowances")


def guess(service: Service, emails: list[str], hosts: list[str]) -> Counter[int]:
    """Guesses a password for each address, each from a network; what was answered, and how often."""
    door = Browser(service)
    door.get("/app/sign-in")
    token, cookies = door.token, dict(door.cookies)

    def one(number: int) -> int:
        browser = Browser(service, host=hosts[number], cookies=dict(cookies))
        return browser.post(
            "/app/sign-in", token=token, email=emails[number], password=f"guess number {number}"
        ).status_code

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return Counter(pool.map(one, range(len(emails))))


def now(service: Service) -> datetime:
    moment: datetime = service.sql("SELECT clock_now()")[0][0]
    return moment


def enter(browser: Browser, email: str, password: str = PASSWORD) -> int:
    return browser.submit("/app/sign-in", email=email, password=password).status_code


def networks(count: int) -> list[str]:
    return [str(IPv4Address("10.0.0.1") + number) for number in range(count)]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("email", ["ada@acme.example", "nobody@acme.example"])
def test_guesses_from_everywhere_are_not_even_tried(service: Service, email: str) -> None:
    own = with_password(service, "ada@acme.example")
    own.submit("/app", "/app/sign-out")
    began = now(service)
    answers = guess(service, [email] * GUESSES, networks(GUESSES))
    passed = (now(service) - began).total_seconds()
    assert set(answers) == {403, 429}
    assert TRIED <= answers[403] <= TRIED + 1 + passed / REFILL_S
    sys.stdout.write(f"{GUESSES} guesses at {email} in {passed:.0f} s: {dict(answers)}\n")
    if email == "ada@acme.example":
        assert enter(Browser(service), email) == 429, "a browser that is new to her waits"
        assert enter(own, email) == 303, "she gets in where she was before"
        with later(service, f"{REFILL_S + 1} seconds"):
            assert enter(Browser(service), email) == 303, "and soon everywhere"


def test_who_guesses_in_a_network_keeps_nobody_there_out_of_the_browser_they_use(service: Service) -> None:
    ada = with_password(service, "ada@acme.example")
    _, codes = set_up(service, ada)
    ada.submit("/app", "/app/sign-out")
    service.sql("DELETE FROM sign_in_allowances")
    ada.host = "192.0.2.10"
    tried = guess(service, [f"nobody{number}@acme.example" for number in range(70)], [ada.host] * 70)
    assert set(tried) == {403, 429}
    assert enter(Browser(service, host=ada.host), "ada@acme.example") == 429, "a browser that is new there waits"
    assert enter(ada, "ada@acme.example", "not her password") == 403
    assert enter(ada, "ada@acme.example") == 303
    assert ada.submit("/app/second-step", code=codes[0]).status_code == 303
    assert enter(Browser(service, host=ada.host), "bea@acme.example", "a guess") == 429, "nothing was given back"
    without_second_steps(service)


def test_who_gets_in_uses_up_nothing_of_their_network(service: Service) -> None:
    """The people of an office share its address, and sign in at nine."""
    ada = with_password(service, "ada@acme.example")
    _, codes = set_up(service, ada)
    service.sql("DELETE FROM sign_in_allowances")
    for code, status in ((codes[0], 303), ("wrong", 422)):
        browser = Browser(service, host="192.0.2.9")
        assert enter(browser, "ada@acme.example") == 303
        assert browser.submit("/app/second-step", code=code).status_code == status
    without_second_steps(service)
    left = service.sql("SELECT max(remaining) FROM sign_in_allowances")[0][0]
    assert OF_A_NETWORK - 1 <= left < OF_A_NETWORK, "but for the wrong code"


def test_who_guesses_codes_with_the_password_keeps_its_owner_out_of_nothing(service: Service) -> None:
    """Otherwise nobody could change a password that somebody else has learnt."""
    ada = with_password(service, "ada@acme.example")
    _, codes = set_up(service, ada)
    with later(service, "11 minutes"):
        device, answers = {}, []
        for _ in range(TRIED + 2):
            other = Browser(service, cookies=dict(device))
            assert enter(other, "ada@acme.example") == 303
            answers.append(other.submit("/app/second-step", code="000000").status_code)
            device = {"__Host-app-device": other.cookies["__Host-app-device"]}
        assert answers == [422] * TRIED + [429] * 2, (
            "a browser in which the password alone was right has none of its own"
        )
        ada.get("/app/prove?next=%2Fapp%2Fsecurity")
        assert ada.post("/app/prove", proof=codes[0], next="/app/security").status_code == 303
        assert ada.submit("/app/security", "/app/security/password", password="another four words").status_code == 303
        ada.submit("/app", "/app/sign-out")
        assert enter(ada, "ada@acme.example", "another four words") == 303
        assert ada.submit("/app/second-step", code=codes[1]).status_code == 303
        # The tests after this one sign her in with the password of before.
        assert ada.submit("/app/security", "/app/security/password", password=PASSWORD).status_code == 303
    without_second_steps(service)


def test_an_address_typed_without_the_password_uses_up_none_of_somebodys_codes(service: Service) -> None:
    cyd = with_password(service, "cyd@acme.example")
    _, codes = set_up(service, cyd)
    [[person_id]] = service.sql("SELECT id FROM people WHERE email = 'cyd@acme.example'")
    answers = guess(service, [f"code/{person_id}"] * (TRIED + 2), networks(TRIED + 2))
    assert answers[429] > 0, "all tries of what was typed are used up"
    other = Browser(service)
    assert enter(other, "cyd@acme.example") == 303
    assert other.submit("/app/second-step", code=codes[0]).status_code == 303
    without_second_steps(service)


@pytest.mark.skipif(GUESSES < 100, reason="the long form: GUESSES=10000")
def test_one_network_guesses_at_no_more_than_a_few_addresses(service: Service) -> None:
    emails = [f"p{number}@acme.example" for number in range(GUESSES)]
    answers = guess(service, emails, ["192.0.2.7"] * GUESSES)
    assert set(answers) == {403, 429}
    assert OF_A_NETWORK <= answers[403] <= OF_A_NETWORK + 60


@pytest.mark.slow
def test_a_browser_of_somebody_else_has_no_tries_of_its_own(service: Service) -> None:
    bea = with_password(service, "bea@acme.example")
    bea.submit("/app", "/app/sign-out")
    with_password(service, "ada@acme.example")
    answers = [enter(bea, "ada@acme.example", "not hers") for _ in range(TRIED + 2)]
    assert answers == [403] * TRIED + [429] * 2
    own = [enter(bea, "bea@acme.example", "not the right one") for _ in range(TRIED + 2)]
    assert own == [403] * TRIED + [429] * 2, "nor without end where it is known"


def test_whether_an_address_is_known_shows_in_no_time(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """A password is compared once, with a hash of the same costs, whoever it is said to be of."""
    with_password(service, "ada@acme.example")
    service.sql("UPDATE people SET password = NULL WHERE email = 'bea@acme.example'")
    compared: list[str] = []
    verify = PasswordHasher.verify
    monkeypatch.setattr(
        PasswordHasher, "verify", lambda own, stored, typed: compared.append(stored) or verify(own, stored, typed)
    )
    for email in ("ada@acme.example", "bea@acme.example", "nobody@acme.example"):
        service.sql("DELETE FROM sign_in_allowances")
        assert Browser(service).submit("/app/sign-in", email=email, password="not the right one").status_code == 403
    costs = [extract_parameters(stored) for stored in compared]
    assert costs == [costs[0]] * 3
