"""A form whose session is gone keeps what was typed, and is carried out once the same person has signed in again; for nobody else."""

import html
import re

import pytest
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser, link_for, signed_in
from tests.web.console.sending import begin
from tests.web.console.test_security import set_up, without_second_steps

GONE = {
    "ended elsewhere": "UPDATE sessions SET ended_at = now() WHERE ended_at IS NULL",
    "idle": "UPDATE sessions SET seen_at = now() - interval '1 day'",
}
NAME = 'Zoë <b>"Z"</b>'


def again(browser: Browser, email: str) -> None:
    """Signs in in another tab of the browser."""
    link = link_for(browser.service, email)
    assert browser.submit(link).headers["location"] == "/app"


def carried(page: str) -> dict[str, str]:
    fields = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', page)
    return {name: html.unescape(value) for name, value in fields}


def invited(service: Service, email: str) -> int:
    return int(service.sql("SELECT count(*) FROM users WHERE email = $1", email)[0][0])


@pytest.mark.parametrize("how", [*GONE, "signed out"])
def test_what_was_typed_is_kept_and_sent_after_signing_in_again(service: Service, how: str) -> None:
    ada = signed_in(service, "ada@acme.example")
    email = f"kept-{how.split(maxsplit=1)[0]}-{how.rsplit(maxsplit=1)[-1]}@acme.example"
    ada.get("/app/people")
    token = ada.token
    if how == "signed out":
        ada.submit("/app", "/app/sign-out")
    else:
        service.sql(GONE[how])
    typed = {"email": email, "name": NAME, "role": "viewer"}
    lost = ada.post("/app/people", token=token, password="secret words", **typed)
    assert lost.status_code == 401
    assert "You were signed out" in lost.text
    assert 'href="/app/sign-in"' in lost.text
    assert "secret words" not in lost.text
    assert carried(lost.text) == {**typed, "token": token}
    assert ada.post("/app/people", **carried(lost.text)).status_code == 401, "not signed in yet"
    assert invited(service, email) == 0
    again(ada, "ada@acme.example")
    for _ in range(2):
        sent = ada.post("/app/people", **carried(lost.text))
        assert sent.status_code in {200, 303}, sent.text
    assert invited(service, email) == 1


def test_what_was_typed_is_sent_after_signing_in_with_a_second_step(service: Service) -> None:
    ada = signed_in(service, "ada@acme.example")
    _, codes = set_up(service, ada)
    ada.get("/app/contacts/new")
    token = ada.token
    ada.submit("/app", "/app/sign-out")
    lost = ada.post("/app/contacts", token=token, email="second-step@example.com", name=NAME)
    assert lost.status_code == 401
    again(ada, "ada@acme.example")
    assert ada.submit("/app/second-step", code=codes[0]).headers["location"] == "/app"
    assert ada.post("/app/contacts", **carried(lost.text)).status_code == 303
    without_second_steps(service)


def test_pasted_recipients_are_kept_and_a_file_is_not(service: Service) -> None:
    ada = signed_in(service, "ada@acme.example")
    path = begin(ada, service) + "/recipients"
    ada.get(path)
    service.sql(GONE["ended elsewhere"])
    parts = {
        "token": (None, ada.token),
        "rows": (None, "zoë@acme.example, Zoë\r\nbo@acme.example"),
        "taking": (None, "replace"),
    }
    lost = ada._send("POST", path, files=parts)
    file = ada.upload(path.replace("/recipients", "/file"), b"a@acme.example", taking="replace")
    assert "You were signed out" not in file.text
    assert "You were signed out" in lost.text
    again(ada, "ada@acme.example")
    assert ada.post(path, **carried(lost.text)).status_code == 303
    assert "bo@acme.example" in ada.read(path)


def test_it_is_carried_out_for_nobody_else(service: Service) -> None:
    ada = signed_in(service, "ada@acme.example")
    ada.get("/app/people")
    typed = {"email": "not@acme.example", "name": "", "role": "admin"}
    service.sql(GONE["ended elsewhere"])
    lost = ada.post("/app/people", **typed)
    assert carried(lost.text)["email"] == typed["email"]
    again(ada, "gil@globex.example")
    refused = ada.post("/app/people", **carried(lost.text))
    assert refused.status_code == 409
    assert invited(service, "not@acme.example") == 0


@pytest.mark.parametrize("token", ["", "0" * 40])
def test_nothing_is_kept_of_what_no_page_of_ours_sent(service: Service, token: str) -> None:
    ada = signed_in(service, "ada@acme.example")
    service.sql(GONE["ended elsewhere"])
    lost = ada.post("/app/people", token=token, email="forged@acme.example", name="", role="admin")
    assert lost.status_code == 401
    assert "forged@acme.example" not in lost.text


def test_what_was_done_before_the_session_was_lost_is_not_done_again(service: Service) -> None:
    ada = signed_in(service, "ada@acme.example")
    ada.get("/app/funding/transfer")
    accounts = service.ids["funding_accounts"]
    typed = {"token": ada.token, "from": str(accounts["gbp"]), "to": str(accounts["team"]), "amount": "5"}
    assert ada.post("/app/funding/transfers", **typed).status_code == 303
    held = service.balance("team")
    service.sql(GONE["ended elsewhere"])
    lost = ada.post("/app/funding/transfers", **typed)
    again(ada, "ada@acme.example")
    assert ada.post("/app/funding/transfers", **carried(lost.text)).status_code == 303
    assert service.balance("team") == held
