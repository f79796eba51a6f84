"""What an API key is for and from where it may be used, said on its page, and how it is replaced there."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser
from tests.web.console.test_keys import account_id, key_id

from largesse.customers.api_keys import numbered
from largesse.customers.restrictions import SCOPES


def made(answer: httpx.Response) -> str:
    """The secret that a page shows this once."""
    assert answer.status_code == 200, answer.text
    [secret] = set(re.findall(r"lgs_(?:live|test)_[0-9A-Za-z]+", answer.text))
    return secret


def make(service: Service, admin: Browser, name: str, **fields: str | list[str]) -> str:
    admin.get("/app/keys")
    given = {"service_account": str(account_id(service, "hr-bot")), "scope": list(SCOPES), **fields}
    return made(admin.post("/app/keys", name=name, **given))


def ask(service: Service, secret: str, path: str, host: str = "192.0.2.9") -> int:
    headers = {"Authorization": f"Bearer {secret}", "X-Forwarded-For": host}
    return service.client().get(path, headers=headers).status_code


def test_a_key_is_made_for_less_and_says_so(service: Service, ada: Browser) -> None:
    secret = make(
        service, ada, "reader", scope=["webhooks", "read"], networks="198.51.100.7\r\n192.0.2.0/24, 192.0.2.0/24"
    )
    assert [ask(service, secret, path) for path in ("/me", "/products", "/webhooks")] == [200, 200, 200]
    assert ask(service, secret, "/products", host="203.0.113.5") == 403
    ada.get("/app/keys")
    assert "reader HR bot Read, Webhooks 198.51.100.7/32 , 192.0.2.0/24 " in ada.text
    assert "Ada" in ada.text
    [act] = service.sql("SELECT after FROM audit_events ORDER BY id DESC LIMIT 1")
    assert '"for":"read, webhooks","from":"198.51.100.7/32, 192.0.2.0/24"' in act["after"]


def test_what_a_key_may_do_is_changed_for_its_next_request(service: Service, ada: Browser) -> None:
    secret = make(service, ada, "shop")
    key = key_id(service, "shop")
    narrow = f"/app/keys/{key}/narrow"
    assert ada.submit(f"/app/keys/{key}", narrow, scope=["send"], networks="192.0.2.0/24").status_code == 303
    assert [ask(service, secret, path) for path in ("/products", "/me")] == [403, 200]
    page = ada.get(f"/app/keys/{key}").text
    assert re.findall(r'value="(\w+)" checked', page) == ["send"]
    assert ">192.0.2.0/24</textarea>" in page
    assert ada.post(narrow, scope=list(SCOPES), networks="").status_code == 303
    assert ask(service, secret, "/products", host="203.0.113.5") == 200
    acts = service.sql("SELECT act, before, after FROM audit_events WHERE act = 'key.narrowed' ORDER BY id")
    assert [tuple(act)[1:] for act in acts] == [
        ('{"for":"everything","from":"everywhere"}', '{"for":"send","from":"192.0.2.0/24"}'),
        ('{"for":"send","from":"192.0.2.0/24"}', '{"for":"everything","from":"everywhere"}'),
    ]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"scope": []}, "Choose at least one scope."),
        ({"scope": ["read"], "networks": "192.0.2.1/24 x"}, "Not a network: 192.0.2.1/24 (192.0.2.0/24?), x."),
    ],
)
def test_what_is_wrong_is_said_and_changes_nothing(
    service: Service, ada: Browser, fields: dict[str, str | list[str]], said: str
) -> None:
    key = key_id(service, "crm")
    answer = ada.submit(f"/app/keys/{key}", f"/app/keys/{key}/narrow", **fields)
    assert answer.status_code == 422
    assert said in answer.text
    assert tuple(service.sql("SELECT scopes, networks FROM api_keys WHERE id = $1", key)[0]) == (None, None)


def test_both_keys_are_seen_until_the_first_is_deleted(service: Service, ada: Browser) -> None:
    first = make(service, ada, "till", scope=["read", "send"], networks="192.0.2.0/24")
    old = key_id(service, "till")
    second = made(ada.submit(f"/app/keys/{old}", f"/app/keys/{old}/replace"))
    new = key_id(service, "till 2")
    query = "SELECT service_account_id, environment, scopes, networks FROM api_keys WHERE id = $1"
    assert tuple(service.sql(query, new)[0]) == tuple(service.sql(query, old)[0])
    assert [ask(service, secret, "/products") for secret in (first, second)] == [200, 200]
    for _ in range(100):
        ada.get(f"/app/keys/{old}")
        if ada.text.count("192.0.2.9") == 3:  # of the key itself, and of both
            break
        time.sleep(0.1)
    assert "till 2" in ada.text
    assert "Never used" not in ada.text
    assert ada.text.count("192.0.2.9") == 3
    assert ask(service, second, "/products", host="203.0.113.5") == 403
    assert ada.post(f"/app/keys/{old}/replace").headers["location"] == f"/app/keys/{old}", "there is one already"
    ada.get(f"/app/keys/{new}")
    assert f"/app/keys/{old}/delete" in ada.links
    assert ada.post(f"/app/keys/{old}/delete").status_code == 303
    assert [ask(service, secret, "/products") for secret in (first, second)] == [401, 200]
    assert "Delete till" not in ada.get(f"/app/keys/{new}").text


def test_a_second_key_is_made_once_however_many_ask(service: Service, ada: Browser) -> None:
    make(service, ada, "twice")
    old = key_id(service, "twice")
    tokens = []
    for _ in range(6):
        ada.get(f"/app/keys/{old}")
        tokens.append(ada.token)
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda token: ada.post(f"/app/keys/{old}/replace", token=token), tokens))
    assert sorted(answer.status_code for answer in answers) == [200, 303, 303, 303, 303, 303]
    assert service.sql("SELECT count(*) FROM api_keys WHERE replaces = $1", old)[0][0] == 1


@pytest.mark.parametrize("what", ["narrow", "replace"])
def test_who_did_not_just_show_that_it_is_them_does_it_first(service: Service, ada: Browser, what: str) -> None:
    service.sql("UPDATE sessions SET proved_at = now() - interval '1 day'")
    key = key_id(service, "crm")
    asked = ada.submit(f"/app/keys/{key}", f"/app/keys/{key}/{what}", scope=["read"])
    assert "This action needs a password" in asked.text
    assert (
        service.sql("SELECT count(*) FROM api_keys WHERE replaces = $1 OR scopes IS NOT NULL AND id = $1", key)[0][0]
        == 0
    )


@pytest.mark.parametrize("what", ["narrow", "replace"])
def test_the_keys_of_others_are_nobodys(service: Service, gil: Browser, what: str) -> None:
    key = key_id(service, "crm")
    assert gil.get(f"/app/keys/{key}").status_code == 404
    assert gil.submit("/app/keys", f"/app/keys/{key}/{what}", scope=["read"]).status_code == 404
    gil.post("/app/environment", environment="staging")
    own = key_id(service, "globex")
    assert gil.get(f"/app/keys/{own}").status_code == 404, "of the other environment"


@pytest.mark.parametrize(
    ("name", "second"),
    [("shop", "shop 2"), ("Till 7", "Till 7 2"), ("x" * 100, "x" * 98 + " 2"), ("2", "2 2"), ("a 1000", "a 1000 2")],
)
def test_a_second_key_is_called_as_the_first_with_a_number(name: str, second: str) -> None:
    assert numbered(name, 2) == second
