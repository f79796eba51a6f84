"""What is mailed to people who sign in, and that nobody learns by it whether an address is known."""

import re

import pytest
from tests.web.api.conftest import RICH_WORLD, Service, ServiceFactory
from tests.web.console.authenticator import SoftPasskey
from tests.web.console.conftest import Browser
from tests.web.console.test_passkeys import added
from tests.web.console.test_security import PASSWORD, later, set_up, with_password, without_second_steps

CEM = "      - {email: cem@acme.example, name: Cem, role: member}\n"
DOT, EVE = (f"      - {{email: {name}@acme.example, name: {name.title()}, role: viewer}}\n" for name in ("dot", "eve"))
WORLD = RICH_WORLD.replace(CEM, CEM + DOT + EVE)


@pytest.fixture(scope="module")
def service(start_service: ServiceFactory) -> Service:
    """One with a mail server; nothing works here that would send."""
    return start_service(WORLD, smtp_url="smtp://127.0.0.1:1")


def waiting(service: Service) -> list[str]:
    return [row["kind"] for row in service.sql("SELECT kind FROM people_mails ORDER BY id")]


def told_of(service: Service) -> int:
    """How often Gil is told of a new browser."""
    return service.sql(
        """SELECT count(*) FROM people_mails m JOIN people p ON p.id = m.person_id
        WHERE m.kind = 'new_device' AND p.email = 'gil@globex.example'"""
    )[0][0]


def ask(service: Service, email: str) -> tuple[int, str]:
    browser = Browser(service)
    browser.page = browser.submit("/app/forgot", email=email)
    return browser.page.status_code, browser.text.replace(email, "")


def test_a_forgotten_password_is_answered_alike(service: Service) -> None:
    with_password(service, "ada@acme.example")
    before = waiting(service)
    assert ask(service, "ADA@acme.example") == ask(service, "nobody@acme.example")
    assert ask(service, "cem@acme.example")[0] == 200, "who has not signed in yet"
    assert waiting(service) == [*before, "reset"]
    assert [ask(service, "nobody@acme.example")[0] for _ in range(4)] == [200, 200, 200, 429]
    assert [ask(service, "ada@acme.example")[0] for _ in range(4)] == [200, 200, 200, 429]


def test_the_mail_to_a_known_address_waits_for_no_second_commit(service: Service) -> None:
    """Each COMMIT that wrote something waits for the disk, and the time would tell which address is known."""
    with_password(service, "eve@acme.example")
    assert ask(service, "eve@acme.example")[0] == 200
    counted_with = "SELECT count(*) FROM sign_in_allowances a, people p, people_mails m WHERE a.xmin = m.xmin AND m.person_id = p.id"
    assert service.sql(f"{counted_with} AND m.kind = 'reset' AND p.email = 'eve@acme.example'")[0][0] == 1


def test_an_invitation_is_mailed_and_shown_to_nobody_else(service: Service) -> None:
    ada = with_password(service, "ada@acme.example")
    answer = ada.submit("/app/people", email="new@acme.example", name="", role="member")
    assert answer.status_code == 303
    assert waiting(service)[-1] == "invitation"
    assert "new@acme.example gets a mail with a link." in ada.read("/app/people")


def test_invitations_to_one_address_are_few_also_after_it_was_removed(service: Service) -> None:
    """Otherwise an administrator could send a stranger thousands of mails."""
    ada = with_password(service, "ada@acme.example")
    invited = {"email": "often@acme.example", "name": "", "role": "member"}
    assert ada.submit("/app/people", **invited).status_code == 303
    [[user_id]] = service.sql("SELECT id FROM users WHERE email = 'often@acme.example'")
    again = f"/app/people/{user_id}/invitation"
    assert [ada.submit("/app/people", again).status_code for _ in range(3)] == [303] * 3
    assert ada.submit("/app/people", f"/app/people/{user_id}/remove").status_code == 303
    assert ada.submit("/app/people", **invited).status_code == 303
    before = waiting(service)
    refused = ada.submit("/app/people", again)
    assert (refused.status_code, 0 < int(refused.headers["retry-after"]) <= 3_600) == (429, True)
    assert ada.submit("/app/people", f"/app/people/{user_id}/remove").status_code == 303
    assert ada.submit("/app/people", **invited).status_code == 429
    assert waiting(service) == before
    service.sql("UPDATE sign_in_links SET created_at = created_at - interval '1 hour' WHERE user_id = $1", user_id)
    assert ada.submit("/app/people", **invited).status_code == 303


def test_a_browser_that_has_not_signed_in_before_is_told_of(service: Service) -> None:
    first = with_password(service, "gil@globex.example")
    assert told_of(service) == 0, "the first one of all is no news"

    def enter(browser: Browser) -> None:
        assert browser.submit("/app/sign-in", email="gil@globex.example", password=PASSWORD).status_code == 303

    first.submit("/app", "/app/sign-out")
    enter(first)
    assert told_of(service) == 0
    enter(Browser(service))
    assert told_of(service) == 1


def test_whatever_changes_about_a_second_step_is_told(service: Service) -> None:
    dot = with_password(service, "dot@acme.example")
    service.sql("DELETE FROM people_mails")
    dot.headers["User-Agent"] = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
    set_up(service, dot)
    assert dot.submit("/app/security", "/app/security/recovery-codes").status_code == 200
    [recorded] = service.sql("SELECT subject FROM audit_events WHERE act = 'person.recovery_codes'")
    assert recorded["subject"].startswith("dot@")
    added(dot, SoftPasskey())
    page = dot.get("/app/security")
    [removing] = re.findall(r"/app/security/passkeys/\d+/remove", page.text)
    assert dot.post(removing).status_code == 303
    assert dot.submit("/app/security", "/app/security/app/off").status_code == 303
    told = service.sql(
        """SELECT m.kind, m.change, host(m.address) AS address, m.browser LIKE '%Firefox%' AS is_known, p.email
        FROM people_mails m JOIN people p ON p.id = m.person_id ORDER BY m.id"""
    )
    assert [row["change"] for row in told] == [
        "app_on",
        "recovery_codes",
        "passkey_added",
        "passkey_removed",
        "app_off",
    ]
    assert {(row["kind"], row["address"], row["is_known"], row["email"]) for row in told} == {
        ("second_step", dot.host, True, "dot@acme.example")
    }


def test_the_owner_is_told_once_of_wrong_codes(service: Service) -> None:
    """Also of those in a session that somebody left open, and not of their own mistypings before a right one."""
    dot = with_password(service, "dot@acme.example")
    _, codes = set_up(service, dot)
    dot.submit("/app", "/app/sign-out")
    service.sql("DELETE FROM people_mails")
    warned = "SELECT host(address) AS address FROM people_mails WHERE change = 'wrong_codes'"

    def guess(browser: Browser, count: int) -> None:
        assert browser.submit("/app/sign-in", email="dot@acme.example", password=PASSWORD).status_code == 303
        assert {browser.submit("/app/second-step", code="000000").status_code for _ in range(count)} == {422}

    guess(dot, 5)
    assert dot.submit("/app/second-step", code=codes[0]).status_code == 303
    other = Browser(service)
    guess(other, 5)
    assert service.sql(warned) == []
    assert other.submit("/app/second-step", code="000000").status_code == 422
    assert [row["address"] for row in service.sql(warned)] == [other.host]
    guess(Browser(service), 3)
    assert len(service.sql(warned)) == 1
    with later(service, "25 hours"):
        guess(Browser(service), 6)
        assert len(service.sql(warned)) == 2
    without_second_steps(service)
