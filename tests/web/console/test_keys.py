"""The pages of API keys and service accounts: what a key is for, from where it may be used, and how it is replaced."""

import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser, SignIn, user_id

from largesse.customers.api_keys import numbered
from largesse.customers.restrictions import SCOPES


def account_id(service: Service, key: str, customer: str = "acme") -> int:
    rows = service.sql(
        "SELECT s.id FROM service_accounts s JOIN customers c ON c.id = s.customer_id WHERE s.key = $1 AND c.key = $2",
        key,
        customer,
    )
    return rows[0]["id"]


def made(answer: httpx.Response) -> str:
    """The secret that a page shows this once."""
    assert answer.status_code == 200, answer.text
    [secret] = set(re.findall(r"lgs_(?:live|test)_[0-9A-Za-z]+", answer.text))
    return secret


def make(service: Service, admin: Browser, name: str, **fields: str | list[str]) -> str:
    """Makes a key by the page; returns its secret."""
    given = {"service_account": str(account_id(service, "hr-bot")), "scope": list(SCOPES), **fields}
    return made(admin.submit("/app/keys", name=name, **given))


def key_id(service: Service, name: str) -> int:
    return service.sql("SELECT id FROM api_keys WHERE key = $1 AND deleted_at IS NULL", name)[0]["id"]


def ask(service: Service, secret: str, path: str, host: str = "192.0.2.9") -> int:
    headers = {"Authorization": f"Bearer {secret}", "X-Forwarded-For": host}
    return service.client().get(path, headers=headers).status_code


def test_the_keys_of_somebody_who_is_removed_are_named(service: Service, ada: Browser) -> None:
    """Who created a key may know its secret."""
    make(service, ada, "known to Ada")
    removing = f"/app/people/{user_id(service, 'ada@acme.example')}/remove"
    assert "They created the API key known to Ada and may know its secret." in ada.read(removing)
    ada.submit("/app", "/app/environment", environment="staging")
    assert "They created the API key known to Ada (Live) and" in ada.read(removing)
    ada.submit("/app", "/app/environment", environment="production")
    ada.get("/app/keys")
    ada.post(f"/app/keys/{key_id(service, 'known to Ada')}/delete")
    assert "They created" not in ada.read(removing)


def test_a_key_is_made_used_and_deleted_at_once(service: Service, ada: Browser) -> None:
    secret = make(service, ada, "shop")
    assert ask(service, secret, "/me") == 200
    assert "shop" in ada.read("/app/keys")
    assert secret not in ada.text, "shown once"
    path = f"/app/keys/{key_id(service, 'shop')}/delete"
    assert "Delete the key shop?" in ada.read(path)
    assert ada.post(path).status_code == 303
    assert ask(service, secret, "/me") == 401
    assert "The key shop was deleted." in ada.read("/app/keys")
    acts = service.sql("SELECT act, actor_name, after::text FROM audit_events ORDER BY id DESC LIMIT 2")
    assert [row["act"] for row in acts] == ["key.deleted", "key.created"]
    assert {row["actor_name"] for row in acts} == {"ada@acme.example"}
    assert secret not in str(acts)


def test_in_test_mode_keys_are_of_test_mode(service: Service, ada: Browser) -> None:
    assert ada.submit("/app", "/app/environment", environment="staging").status_code == 303
    given = {"service_account": str(account_id(service, "hr-bot")), "scope": list(SCOPES)}
    page = ada.submit("/app/keys", name="try-out", **given)
    assert made(page).startswith("lgs_test_")
    elsewhere = service.settings.public_url_of("staging")
    assert elsewhere != service.settings.public_url
    assert f"curl {elsewhere}/me -H" in page.text, "production does not know the key"
    assert f'href="{elsewhere}/docs#start"' in page.text, "production's has no test lab"
    assert "try-out" in ada.read("/app/keys")
    assert ada.post("/app/environment", environment="production").status_code == 303
    assert "try-out" not in ada.read("/app/keys")


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"name": "hr"}, "name"),  # there is one
        ({"service_account": "idle"}, "service_account"),
        ({"scope": []}, "scope"),
        ({"scope": ["read", "write"]}, "scope"),
        ({"networks": "192.0.2.1/24"}, "networks"),
        ({"networks": "here"}, "networks"),
        ({"networks": " ".join(f"192.0.2.{n}" for n in range(101))}, "networks"),
        ({"networks": "192.0.2.1 " * 501}, "networks"),
    ],
)
def test_what_is_wrong_with_a_key_is_said_beside_its_field(
    service: Service, ada: Browser, fields: dict[str, Any], wrong: str
) -> None:
    answer = ada.submit(
        "/app/keys", **{"name": "fine", "service_account": str(account_id(service, "crm")), "scope": SCOPES, **fields}
    )
    assert answer.status_code == 422
    assert re.findall(r'id="(\w+)-error"', answer.text) == [wrong]
    assert service.sql("SELECT count(*) FROM api_keys WHERE key = 'fine'")[0][0] == 0


def test_a_name_of_the_longest_is_taken(service: Service, sign_in: SignIn) -> None:
    assert make(service, sign_in("ada@acme.example"), "x" * 100).startswith("lgs_live_")


def test_a_service_account_is_made_and_switched_off(service: Service, ada: Browser) -> None:
    for name, key in (("Payroll München", "payroll-munchen"), ("Payroll Munchen", "payroll-munchen-2")):
        assert ada.submit("/app/service-accounts", name=name).status_code == 303
        assert account_id(service, key)
    again = ada.submit("/app/service-accounts", name="payroll MÜNCHEN")
    assert (again.status_code, "Another service account has this name." in again.text) == (422, True)
    secret = make(service, ada, "switched")
    path = f"/app/service-accounts/{account_id(service, 'hr-bot')}/active"
    assert ada.submit("/app/service-accounts", path, active="no").status_code == 303
    products = {"url": "/products", "headers": {"Authorization": f"Bearer {secret}"}}
    assert service.client().get(**products).status_code == 403
    assert "HR bot is switched off" in ada.read("/app/service-accounts")
    assert f'value="{account_id(service, "hr-bot")}"' not in ada.get("/app/keys").text
    refused = ada.post("/app/keys", name="late", service_account=str(account_id(service, "hr-bot")), scope="read")
    assert (refused.status_code, re.findall(r'id="(\w+)-error"', refused.text)) == (422, ["service_account"])
    assert ada.submit("/app/service-accounts", path, active="yes").status_code == 303
    assert service.client().get(**products).status_code == 200


def test_a_key_is_made_for_less_and_says_so(service: Service, ada: Browser) -> None:
    secret = make(
        service, ada, "reader", scope=["webhooks", "read"], networks="198.51.100.7\r\n192.0.2.0/24, 192.0.2.0/24"
    )
    assert [ask(service, secret, path) for path in ("/me", "/products", "/webhooks")] == [200, 200, 200]
    assert ask(service, secret, "/products", host="203.0.113.5") == 403
    ada.sees("/app/keys", "reader HR bot Read, Webhooks 198.51.100.7/32 , 192.0.2.0/24 ", "Ada")
    [act] = service.sql("SELECT after FROM audit_events ORDER BY id DESC LIMIT 1")
    assert '"scopes":["read","webhooks"],"networks":["198.51.100.7/32","192.0.2.0/24"]' in act["after"]


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
        ('{"scopes":null,"networks":null}', '{"scopes":["send"],"networks":["192.0.2.0/24"]}'),
        ('{"scopes":["send"],"networks":["192.0.2.0/24"]}', '{"scopes":null,"networks":null}'),
    ]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"scope": []}, "Choose at least one scope."),
        ({"scope": ["read"], "networks": "192.0.2.1/24 x"}, "Not a network: 192.0.2.1/24 (192.0.2.0/24?), x."),
    ],
)
def test_what_is_wrong_with_a_change_is_said_and_changes_nothing(
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


@pytest.mark.parametrize(
    ("name", "second"),
    [("shop", "shop 2"), ("Till 7", "Till 7 2"), ("x" * 100, "x" * 98 + " 2"), ("2", "2 2"), ("a 1000", "a 1000 2")],
)
def test_a_second_key_is_called_as_the_first_with_a_number(name: str, second: str) -> None:
    assert numbered(name, 2) == second
