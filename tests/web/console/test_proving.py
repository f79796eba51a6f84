"""Confirm it's you A form that was posted when this was shown too long ago waits for the answer, and nothing of it is lost."""

import html
import re

import pytest
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser, signed_in
from tests.web.console.test_security import PASSWORD, with_password

NAME = 'Till <b>"nine"</b>'


@pytest.fixture(scope="module")
def ada(service: Service) -> Browser:
    """An administrator who has a password."""
    return with_password(service, "ada@acme.example")


@pytest.fixture(autouse=True)
def a_while_ago(service: Service, ada: Browser) -> None:
    service.sql("UPDATE sessions SET proved_at = now() - interval '1 day'")
    service.sql("DELETE FROM sign_in_allowances")


def key_form(service: Service, ada: Browser, **changes: str) -> dict[str, str | list[str]]:
    """What somebody types who makes a key."""
    ada.get("/app/keys")
    account = service.sql("SELECT id FROM service_accounts WHERE key = 'hr-bot'")[0][0]
    typed = {"name": NAME, "service_account": str(account), "scope": ["read", "send"], "networks": ""}
    return {"token": ada.token, **typed, **changes}


def send(ada: Browser, path: str, fields: dict[str, str | list[str]]) -> None:
    token = fields.pop("token")
    assert isinstance(token, str)
    ada.page = ada.post(path, token=token, **fields)


def carried(ada: Browser) -> dict[str, str | list[str]]:
    """The fields of the form that asks, as a browser would post them."""
    [form] = re.findall(
        r'<form method="post" action="[^"]*" class="panel narrow">(.*?)</form>', ada.page.text, re.DOTALL
    )
    fields: dict[str, str | list[str]] = {}
    for name, value in re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', form):
        fields[name] = [*fields.get(name, []), html.unescape(value)]
    return {name: values[0] if len(values) == 1 else list(values) for name, values in fields.items()}


def keys_called(service: Service, name: str) -> int:
    return int(service.sql("SELECT count(*) FROM api_keys WHERE key = $1", name)[0][0])


def test_a_form_waits_for_the_answer_and_is_carried_out_then_once(service: Service, ada: Browser) -> None:
    typed = key_form(service, ada)
    send(ada, "/app/keys", dict(typed))
    assert "Confirm it's you" in ada.text
    assert keys_called(service, NAME) == 0
    waiting = carried(ada)
    assert waiting == typed | {"networks": ""}
    send(ada, "/app/keys", {**waiting, "proof": "wrong"})
    assert ada.page.status_code == 422
    assert "That is not correct" in ada.text
    assert carried(ada) == waiting, "kept beside what was wrong"
    assert keys_called(service, NAME) == 0
    for _ in range(2):
        send(ada, "/app/keys", {**waiting, "proof": PASSWORD})
        assert "was created" in ada.text
    send(ada, "/app/keys", dict(typed))
    assert "was created" in ada.text, "and so is the form itself, sent once more"
    assert keys_called(service, NAME) == 1
    assert service.sql("SELECT scopes FROM api_keys WHERE key = $1", NAME)[0][0] == ["read", "send"]


def test_what_is_wrong_with_a_form_is_said_beside_what_was_typed(service: Service, ada: Browser) -> None:
    send(ada, "/app/keys", key_form(service, ada, name="Till ten", networks="not a network"))
    send(ada, "/app/keys", {**carried(ada), "proof": PASSWORD})
    assert ada.page.status_code == 422
    assert 'value="Till ten"' in ada.page.text
    assert "not a network" in ada.page.text
    assert keys_called(service, "Till ten") == 0


def test_passwords_and_codes_are_never_carried(ada: Browser) -> None:
    ada.page = ada.submit("/app/security", "/app/security/password", password="another four words")
    assert "You type them again" in ada.text
    assert "another four words" not in ada.page.text
    send(ada, "/app/security/password", {**carried(ada), "proof": PASSWORD})
    assert ada.page.status_code == 422
    assert 'id="password-error"' in ada.page.text


@pytest.mark.parametrize("token", ["", "x", "0" * 40])
def test_a_proof_alone_carries_nothing_out(service: Service, ada: Browser, token: str) -> None:
    typed = key_form(service, ada, name="Forged", token=token)
    send(ada, "/app/keys", {**typed, "proof": PASSWORD})
    assert ada.page.status_code == 403
    assert keys_called(service, "Forged") == 0
    assert service.sql("SELECT bool_and(proved_at < now() - interval '1 hour') FROM sessions WHERE ended_at IS NULL")[
        0
    ][0]


def test_whoever_may_not_do_it_is_not_asked(service: Service, cem: Browser, ada: Browser) -> None:
    service.sql("UPDATE sessions SET proved_at = now() - interval '1 day'")
    typed = key_form(service, ada, name="Members")
    cem.get("/app")
    send(cem, "/app/keys", {**typed, "token": cem.token, "proof": PASSWORD})
    assert cem.page.status_code == 403
    assert keys_called(service, "Members") == 0


def test_a_form_that_was_as_long_as_may_be_is_carried_whole(service: Service, ada: Browser) -> None:
    typed = key_form(service, ada, name="x" * 15_000)
    send(ada, "/app/keys", typed)
    send(ada, "/app/keys", {**carried(ada), "proof": "wrong " * 60})
    send(ada, "/app/keys", {**carried(ada), "proof": PASSWORD})
    assert ada.page.status_code == 422
    assert "At most 100 are allowed" in ada.text
    assert "x" * 15_000 in ada.page.text


def test_who_has_no_password_yet_chooses_one_and_the_form_is_carried_out(service: Service) -> None:
    service.sql("UPDATE people SET password = NULL WHERE email = 'gil@globex.example'")
    gil = signed_in(service, "gil@globex.example")
    service.sql("UPDATE sessions SET proved_at = now() - interval '1 day'")
    gil.page = gil.submit("/app/security", "/app/security/required", required="")
    assert "you have none yet" in gil.text
    waiting = carried(gil)
    send(gil, "/app/security/required", {**waiting, "proof": "short"})
    assert gil.page.status_code == 422
    assert "At least 10 characters" in gil.text
    assert carried(gil) == waiting
    assert password_of(service, "gil@globex.example") is None
    send(gil, "/app/security/required", {**waiting, "proof": "four plain words here"})
    assert gil.page.status_code == 303
    assert "Saved." in gil.get("/app/security").text
    chosen = password_of(service, "gil@globex.example")
    assert chosen is not None
    recorded = service.sql(
        "SELECT subject FROM audit_events WHERE act = 'person.password_chosen' AND subject LIKE 'gil@%'"
    )
    assert len(recorded) == 1
    service.sql("UPDATE sessions SET proved_at = now() - interval '1 day'")
    gil.page = gil.submit("/app/security", "/app/security/required", required="")
    assert "Confirm it's you" in gil.text
    send(gil, "/app/security/required", {**carried(gil), "proof": "four other words here"})
    assert "That is not correct" in gil.text
    assert password_of(service, "gil@globex.example") == chosen, "who has one is asked for it"


def password_of(service: Service, email: str) -> str | None:
    kept: str | None = service.sql("SELECT password FROM people WHERE email = $1", email)[0][0]
    return kept
