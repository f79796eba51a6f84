"""Confirming an address: a link that only its mailbox got ends what others set up for it, and no page says who is known."""

import re

import pytest
from tests.web.api.conftest import Service, on_database
from tests.web.console.conftest import Browser, link_for
from tests.web.console.test_security import set_up

TAKEN, OWN = "password of a stranger", "password of the owner"


def invited(service: Service, customer: str, email: str, *, is_mailed: bool = False) -> str:
    """The path of an invitation of that customer: copied from a page, or mailed."""
    service.sql(
        """INSERT INTO users (customer_id, email, name, role) VALUES ($1, $2, 'Somebody', 'member')
        ON CONFLICT DO NOTHING""",
        service.ids["customers"][customer],
        email,
    )
    return link_for(service, email, "invitation", customer=customer, is_mailed=is_mailed)


def reset_for(service: Service, email: str, *, is_mailed: bool) -> str:
    async def make(connection) -> str:
        from largesse.customers.sign_in_links import new_link

        person_id = await connection.fetchval("SELECT id FROM people WHERE email = $1", email)
        return await new_link(connection, "reset", person_id=person_id, is_mailed=is_mailed)

    return f"/app/link/{on_database(service.database_url, make)}"


def taken_in_advance(service: Service, email: str) -> Browser:
    """The browser of a stranger who opened the link of an address and set up a password and a second step."""
    stranger, link = Browser(service), invited(service, "initech", email)
    assert stranger.submit(link, password=TAKEN).status_code == 303
    set_up(service, stranger)
    return stranger


def enter(service: Service, email: str, password: str) -> tuple[int, str]:
    browser = Browser(service)
    answer = browser.submit("/app/sign-in", email=email, password=password)
    if answer.status_code == 303:
        answer = browser.get("/app")
    return answer.status_code, answer.headers.get("location", "")


def follow(service: Service, link: str, password: str) -> Browser:
    browser = Browser(service)
    browser.page = browser.get(link)
    browser.page = browser.post(link, password=password)
    return browser


@pytest.mark.sampled(2)
@pytest.mark.parametrize("way", ["invitation", "reset"])
def test_a_mailed_link_gives_an_address_back_to_its_owner(service: Service, way: str) -> None:
    email = f"{way}@nobody-yet.example"
    stranger = taken_in_advance(service, email)
    copied = reset_for(service, email, is_mailed=False)
    if way == "invitation":
        link = invited(service, "acme", email, is_mailed=True)
    else:
        link = reset_for(service, email, is_mailed=True)
    owner = Browser(service)
    assert "session set up for it before is removed" in owner.read(link)
    assert owner.post(link, password=OWN).headers["location"] == "/app"
    assert owner.get("/app").status_code in {200, 303}
    assert "second-step" not in owner.page.headers.get("location", "")
    assert stranger.get("/app").status_code == 303, "the stranger's session has ended"
    assert enter(service, email, TAKEN)[0] == 403
    assert enter(service, email, OWN)[0] in {200, 303}
    assert "second-step" not in enter(service, email, OWN)[1]
    assert Browser(service).get(copied).status_code == 404, "links of before have ended too"
    [person] = service.sql("SELECT * FROM people WHERE email = $1", email)
    assert person["confirmed_at"] is not None
    for left in ("passkeys", "recovery_codes"):
        assert service.sql(f"SELECT FROM {left} WHERE person_id = $1", person["id"]) == []
    assert (
        service.sql(
            "SELECT FROM sessions WHERE person_id = $1 AND ended_at IS NOT NULL AND device IS NOT NULL", person["id"]
        )
        == []
    ), "and no browser of before is known"


def test_a_link_that_somebody_copied_gives_nobody_an_address(service: Service) -> None:
    email = "kept@nobody-yet.example"
    taken_in_advance(service, email)
    refused = follow(service, invited(service, "acme", email), OWN)
    assert refused.page.status_code == 403
    operators = follow(service, reset_for(service, email, is_mailed=False), OWN)
    assert operators.get("/app").headers["location"].startswith("/app/second-step"), "an operator's keeps it"
    assert service.sql("SELECT confirmed_at FROM people WHERE email = $1", email) == [(None,)]


def test_an_address_is_confirmed_once(service: Service) -> None:
    """What the owner set up stays, whatever is mailed to them later."""
    email = "owner@nobody-yet.example"
    owner = follow(service, invited(service, "acme", email, is_mailed=True), OWN)
    set_up(service, owner)
    link = invited(service, "initech", email, is_mailed=True)
    page = Browser(service)
    assert "You already have a password here" in page.read(link)
    assert page.post(link, password="another password").status_code == 403
    again = follow(service, reset_for(service, email, is_mailed=True), "a new password of mine")
    assert again.get("/app").headers["location"].startswith("/app/second-step")


def test_a_copied_invitation_replaces_no_password_of_somebody_who_belongs_nowhere(service: Service) -> None:
    email = "left@nobody-yet.example"
    follow(service, invited(service, "acme", email, is_mailed=True), OWN)
    service.sql("UPDATE users SET is_active = false WHERE email = $1", email)
    link = invited(service, "initech", email)
    refused = follow(service, link, TAKEN)
    assert refused.page.status_code == 403
    assert follow(service, link, OWN).get("/app").status_code == 200


def test_a_copied_invitation_gives_nobody_a_password_who_was_let_in_without(service: Service) -> None:
    """Who belongs to a customer and has no password accepts signed in: another customer's link lets nobody in as them."""
    link = link_for(service, "cem@acme.example")
    cem = Browser(service)
    assert cem.submit(link).status_code == 303
    link = invited(service, "initech", "cem@acme.example")
    refused = follow(service, link, TAKEN)
    assert refused.page.status_code == 403
    assert "You are signed in" in cem.read(link)
    assert cem.post(link).headers["location"] == "/app"


@pytest.mark.slow
def test_the_page_of_a_copied_invitation_does_not_say_who_has_a_password(service: Service) -> None:
    known, unknown = "known@nobody-yet.example", "unknown@nobody-yet.example"
    follow(service, invited(service, "acme", known), OWN)

    def shown(email: str, password: str | None) -> tuple[int, str]:
        link = invited(service, "initech", email)
        browser = Browser(service)
        answer = browser.get(link)
        if password is not None:
            answer = browser.post(link, password=password)
        text = answer.text.replace(email, "").replace(link, "")
        return answer.status_code, re.sub(r'name="token" value="[^"]+"', "", text)

    for typed, status in ((None, 200), ("short", 422), ("", 422)):
        assert shown(known, typed) == shown(unknown, typed)
        assert shown(known, typed)[0] == status
