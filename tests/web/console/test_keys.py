"""The pages of API keys and service accounts."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser, SignIn

from largesse.customers.restrictions import SCOPES


def account_id(service: Service, key: str, customer: str = "acme") -> int:
    rows = service.sql(
        "SELECT s.id FROM service_accounts s JOIN customers c ON c.id = s.customer_id WHERE s.key = $1 AND c.key = $2",
        key,
        customer,
    )
    return rows[0]["id"]


def make_key(service: Service, admin: Browser, name: str) -> str:
    """Makes a key by the page; returns its secret."""
    answer = admin.submit("/app/keys", name=name, scope=SCOPES, service_account=str(account_id(service, "hr-bot")))
    assert answer.status_code == 200, answer.text
    [secret] = set(re.findall(r"lgs_(?:live|test)_[0-9A-Za-z]+", answer.text))
    return secret


def key_id(service: Service, name: str) -> int:
    return service.sql("SELECT id FROM api_keys WHERE key = $1 AND deleted_at IS NULL", name)[0]["id"]


def who_is(service: Service, secret: str) -> int:
    return service.client().get("/me", headers={"Authorization": f"Bearer {secret}"}).status_code


def test_a_key_is_made_used_and_deleted_at_once(service: Service, ada: Browser) -> None:
    secret = make_key(service, ada, "shop")
    assert who_is(service, secret) == 200
    ada.get("/app/keys")
    assert "shop" in ada.text
    assert secret not in ada.text, "shown once"
    path = f"/app/keys/{key_id(service, 'shop')}/delete"
    ada.get(path)
    assert "Delete the key shop?" in ada.text
    assert ada.post(path).status_code == 303
    assert who_is(service, secret) == 401
    ada.get("/app/keys")
    assert "The key shop was deleted." in ada.text
    acts = service.sql("SELECT act, actor_name, after::text FROM audit_events ORDER BY id DESC LIMIT 2")
    assert [row["act"] for row in acts] == ["key.deleted", "key.created"]
    assert {row["actor_name"] for row in acts} == {"ada@acme.example"}
    assert secret not in str(acts)


def test_who_signed_in_a_while_ago_shows_first_that_it_is_still_them(service: Service, ada: Browser) -> None:
    service.sql("UPDATE sessions SET proved_at = now() - interval '1 day'")
    asked = ada.submit("/app/keys", name="late", scope=SCOPES, service_account=str(account_id(service, "hr-bot")))
    assert "This action needs a password" in asked.text
    assert service.sql("SELECT count(*) FROM api_keys WHERE key = 'late'")[0][0] == 0


def test_in_test_mode_keys_are_of_test_mode(service: Service, ada: Browser) -> None:
    assert ada.submit("/app", "/app/environment", environment="staging").status_code == 303
    assert make_key(service, ada, "try-out").startswith("lgs_test_")
    ada.get("/app/keys")
    assert "try-out" in ada.text
    assert ada.post("/app/environment", environment="production").status_code == 303
    ada.get("/app/keys")
    assert "try-out" not in ada.text


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"name": "a\u202eb"}, "name"),
        ({"name": "hr"}, "name"),  # there is one
        ({"service_account": "idle"}, "service_account"),
        ({"service_account": "0"}, "service_account"),
        ({"scope": []}, "scope"),
        ({"scope": ["read", "write"]}, "scope"),
        ({"networks": "192.0.2.1/24"}, "networks"),
        ({"networks": "here"}, "networks"),
        ({"networks": "<b>1</b>"}, "networks"),
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
    assert make_key(service, sign_in("ada@acme.example"), "x" * 100).startswith("lgs_live_")


def test_a_service_account_is_made_and_switched_off(service: Service, ada: Browser) -> None:
    for name, key in (("Payroll München", "payroll-munchen"), ("Payroll Munchen", "payroll-munchen-2")):
        assert ada.submit("/app/service-accounts", name=name).status_code == 303
        assert account_id(service, key)
    again = ada.submit("/app/service-accounts", name="payroll MÜNCHEN")
    assert (again.status_code, "Another service account has this name." in again.text) == (422, True)
    secret = make_key(service, ada, "switched")
    path = f"/app/service-accounts/{account_id(service, 'hr-bot')}/active"
    assert ada.submit("/app/service-accounts", path, active="no").status_code == 303
    products = {"url": "/products", "headers": {"Authorization": f"Bearer {secret}"}}
    assert service.client().get(**products).status_code == 403
    ada.get("/app/service-accounts")
    assert "HR bot is switched off" in ada.text
    assert ada.post(path, active="yes").status_code == 303
    assert service.client().get(**products).status_code == 200


def test_nobody_reaches_what_is_another_customers(service: Service, gil: Browser) -> None:
    key, account = key_id(service, "crm"), account_id(service, "crm")
    gil.get("/app/keys")
    assert "crm" not in gil.text.lower().split()
    assert gil.get(f"/app/keys/{key}/delete").status_code == 404
    for path, fields in (
        (f"/app/keys/{key}/delete", {}),
        (f"/app/service-accounts/{account}/active", {"active": "no"}),
    ):
        assert gil.submit("/app/service-accounts", path, **fields).status_code == 404
    gil.get("/app/service-accounts")
    assert gil.post("/app/keys", name="theirs", service_account=str(account)).status_code == 422
    assert service.sql("SELECT deleted_at FROM api_keys WHERE id = $1", key)[0][0] is None
    assert service.sql("SELECT active FROM service_accounts WHERE id = $1", account)[0][0]


def test_markup_in_names_stays_text(service: Service, ada: Browser) -> None:
    name = "<script>alert(1)</script>"
    ada.submit("/app/service-accounts", name=name)
    make_key(service, ada, name)
    for path in ("/app/keys", "/app/service-accounts", f"/app/keys/{key_id(service, name)}/delete"):
        page = ada.get(path).text
        assert "<script>alert" not in page
        assert "&lt;script&gt;alert(1)" in page
