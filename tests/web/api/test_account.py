"""GET /me, /users, /templates, /funding-accounts and /health."""

import re
from itertools import pairwise

import pytest

INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def test_me(service, staging, typed) -> None:
    ids = service.ids
    expected = {
        "customerId": ids["customers"]["acme"],
        "customerName": "Acme Ltd",
        "serviceAccountId": ids["service_accounts"]["crm"],
        "serviceAccountName": "CRM",
        "environment": "production",
    }
    assert typed(service.client("crm").get("/me").json()) == typed(expected)
    assert staging.client("hr-test").get("/me").json() == {
        **expected,
        "serviceAccountId": ids["service_accounts"]["hr-bot"],
        "serviceAccountName": "HR bot",
        "environment": "staging",
    }


def test_users_newest_first(service) -> None:
    users = service.client("hr").get("/users").json()
    assert [user["name"] for user in users] == ["Cem", "Bob", "Ada"]
    for user in users:
        assert INSTANT.fullmatch(user.pop("creationDate"))
        assert isinstance(user.pop("id"), int)
    assert users[1] == {
        "name": "Bob",
        "email": "bob@acme.example",
        "role": "member",
        "isActive": False,
        "lastLoginDate": None,
        "label": "Bob <bob@acme.example>",
    }
    assert users[2]["role"] == "admin"
    assert users[2]["isActive"] is True


def test_the_last_log_in_of_a_user_is_shown(service) -> None:
    service.sql("UPDATE users SET last_login_at = '2030-01-02 03:04:05Z' WHERE name = 'Gil'")
    assert service.client("globex").get("/users").json()[0]["lastLoginDate"] == "2030-01-02T03:04:05Z"


def test_templates_of_a_product_and_of_a_collection_without_a_name(service, typed) -> None:
    templates = {template["id"]: template for template in service.client("hr").get("/templates").json()}
    template, without = (templates[service.ids["templates"][name]] for name in ("welcome", "bunch"))
    assert INSTANT.fullmatch(template.pop("creationDate"))
    del without["creationDate"]
    expected = {
        "id": service.ids["templates"]["welcome"],
        "name": "Welcome",
        "giftSelectionType": "gift",
        "giftProductId": service.ids["products"]["coffee"],
        "giftsCollectionId": None,
        "giftName": "Coffee House e-gift",
        "value": 10.0,
        "currency": "GBP",
        "country": "GB",
        "wrappingKey": "confetti",
        "fromName": "Acme",
        "message": "Welcome!",
        "expiryAfterDays": 90,
    }
    assert typed(template) == typed(expected)
    assert typed(without) == typed(
        {
            **dict.fromkeys(expected),
            "id": service.ids["templates"]["bunch"],
            "giftSelectionType": "gifts",
            "giftsCollectionId": service.ids["collections"]["treats"],
            "giftName": "Treats",
            "value": 25.0,
            "currency": "GBP",
            "country": "GB",
        }
    )


def test_templates_are_listed_newest_first_and_paged(service) -> None:
    client = service.client("hr")
    names = [template["name"] for template in client.get("/templates").json()]
    assert names == [None, "Farewell", "Thanks", "Box", "Welcome"]
    page = client.get("/templates?offset=1&limit=2").json()
    assert [template["name"] for template in page] == ["Farewell", "Thanks"]
    assert client.get("/templates?offset=5").json() == []


def test_the_value_of_a_physical_template_is_its_marked_up_cost(service) -> None:
    box = next(t for t in service.client("hr").get("/templates").json() if t["name"] == "Box")
    assert (box["value"], box["country"]) == (38.5, "IE")


def test_a_template_whose_gift_has_been_deleted_has_no_currency(service, problem) -> None:
    retired = service.ids["products"]["retired"]

    def farewell() -> dict[str, object]:
        return next(t for t in service.client("hr").get("/templates").json() if t["name"] == "Farewell")

    assert farewell()["currency"] == "GBP"
    service.sql("DELETE FROM products WHERE id = $1", retired)
    template = farewell()
    assert template["currency"] is None
    assert (template["giftProductId"], template["giftName"]) == (retired, "Retired e-gift")
    assert template["value"] == 15.0
    assert "`templateId`" in problem(service.send("template", "farewell"), 400)


def test_a_template_whose_gift_is_switched_off_has_no_currency_and_cannot_be_sent(service, problem) -> None:
    thanks = service.ids["collections"]["acme-thanks"]
    service.sql("UPDATE collections SET active = false WHERE id = $1", thanks)
    template = next(t for t in service.client("hr").get("/templates").json() if t["name"] == "Thanks")
    assert template["currency"] is None
    assert "`templateId`" in problem(service.send("template", "thanks"), 400)
    service.sql("UPDATE collections SET active = true WHERE id = $1", thanks)
    assert service.send("template", "thanks").status_code == 200


def test_funding_accounts_assigned_and_open(service, typed) -> None:
    fresh = {account["name"]: account for account in service.client("crm").get("/funding-accounts").json()}
    assert set(fresh) == {"Acme float", "Sales team", "Euro float", "Yen float", "Dinar float"}
    accounts = service.ids["funding_accounts"]
    assert typed(fresh["Sales team"]) == typed(
        {
            "id": accounts["sales"],
            "name": "Sales team",
            "isMaster": False,
            "currencyId": 826,
            "currency": "GBP",
            "balance": 20.0,
            "label": "Sales team (GBP, £20.00)",
        }
    )
    assert typed(fresh["Yen float"]) == typed(
        {
            "id": accounts["jpy"],
            "name": "Yen float",
            "isMaster": True,
            "currencyId": 392,
            "currency": "JPY",
            "balance": 1000000.0,
            "label": "Yen float (JPY, ¥1,000,000)",
        }
    )
    assert typed(fresh["Dinar float"]["balance"]) == typed(1000.5)
    assert fresh["Dinar float"]["label"] == "Dinar float (KWD, KWD 1,000.500)"
    names = {account["name"] for account in service.client("hr").get("/funding-accounts").json()}
    assert "People team" in names
    assert "Sales team" not in names


def test_an_invoiced_customer_has_no_funding_accounts(service) -> None:
    answer = service.client("initech").get("/funding-accounts")
    assert (answer.status_code, answer.json()) == (200, [])


def test_the_entries_of_an_account_are_those_of_its_statements(service) -> None:
    ids = service.ids
    client = service.client("crm")
    account = ids["funding_accounts"]["gbp"]
    order = {"productId": ids["products"]["coffee"], "value": 10, "accountId": account, "codeQuantity": 2}
    placed = client.post("/send/gift", json={**order, "externalReference": "statement-1"}).json()
    client.post(f"/orders/{placed['reference']}/cancel")

    entries = client.get(f"/funding-accounts/{account}/entries?limit=200").json()
    paid, refunded = (one for one in entries if one["orderReference"] == placed["reference"])
    assert (paid["kind"], paid["amount"], paid["externalReference"]) == ("order", -20.0, "statement-1")
    assert (refunded["kind"], refunded["amount"]) == ("refund", 20.0)
    assert refunded["balance"] == client.get("/funding-accounts").json()[_place(client, account)]["balance"]
    for before, after in pairwise(entries):
        assert round(before["balance"] + after["amount"], 2) == after["balance"]
    month = paid["creationDate"][:7]
    assert client.get(f"/funding-accounts/{account}/entries?month={month}&limit=200").json() == entries
    assert client.get(f"/funding-accounts/{account}/entries?month=2001-01").json() == []
    rest = client.get(f"/funding-accounts/{account}/entries?after={paid['id']}&limit=1").json()
    assert rest == entries[entries.index(paid) + 1 :][:1]


def _place(client, account: int) -> int:
    return [one["id"] for one in client.get("/funding-accounts").json()].index(account)


@pytest.mark.parametrize("month", ["2030-13", "2030", "1999-01", ""])
def test_entries_of_no_month_are_refused(service, month) -> None:
    account = service.ids["funding_accounts"]["gbp"]
    answer = service.client("crm").get(f"/funding-accounts/{account}/entries", params={"month": month})
    assert answer.status_code == 400


def test_entries_are_only_for_keys_that_may_use_the_account(service, staging) -> None:
    accounts = service.ids["funding_accounts"]
    for client, account in (
        (service.client("hr"), "sales"),
        (service.client("globex"), "gbp"),
        (service.client("initech"), "initech-gbp"),
        (staging.client("hr-test"), "gbp"),
    ):
        answer = client.get(f"/funding-accounts/{accounts[account]}/entries")
        assert (answer.status_code, answer.json()["type"]) == (404, "/problems/not-found")


def test_health_needs_no_key(service) -> None:
    answer = service.client().get("/health")
    assert answer.status_code == 200
    health = answer.json()
    assert set(health) == {"status", "version"}
    assert health["status"] == "pass"
    assert health["version"]
