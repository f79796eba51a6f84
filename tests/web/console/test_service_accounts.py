"""What a service account may order and which accounts it may use, said on its page, and held to from its next order on."""

import re
from typing import Any

import pytest
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser, SignIn
from tests.web.console.test_keys import account_id


def post(admin: Browser, account: int, what: str, **fields: Any) -> Any:
    return admin.submit(f"/app/service-accounts/{account}", f"/app/service-accounts/{account}/{what}", **fields)


def test_what_it_may_order_is_limited_told_and_held_to(service: Service, sign_in: SignIn) -> None:
    ada, crm = sign_in("ada@acme.example"), account_id(service, "crm")
    last = service.sql("SELECT max(id) FROM audit_events")[0][0]
    limited = post(ada, crm, "limit", currency="GBP", largest_order="10", daily="14,00")
    assert (limited.status_code, limited.headers["location"]) == (303, f"/app/service-accounts/{crm}")
    sent = [service.send("gift", "coffee", key="crm", value=value).status_code for value in (25, 10, 5)]
    assert sent == [403, 200, 403]
    assert "GBP £10.00 £14.00 £10.00" in ada.read(f"/app/service-accounts/{crm}")
    assert "Limited in GBP" in ada.read("/app/service-accounts")
    page = ada.get(f"/app/service-accounts/{crm}?currency=GBP").text
    assert re.findall(r'name="(largest_order|daily)"[^>]* value="([^"]*)"', page) == [
        ("largest_order", "10.00"),
        ("daily", "14.00"),
    ]
    assert post(ada, crm, "limit", currency="GBP", largest_order="", daily="").status_code == 303
    assert service.send("gift", "coffee", key="crm", value=25).status_code == 200
    since = "SELECT after FROM audit_events WHERE act = 'service_account.limited' AND id > $1 ORDER BY id"
    acts = service.sql(since, last)
    assert [act["after"] for act in acts] == [
        '{"currency":"GBP","largest_order_minor":1000,"daily_minor":1400}',
        '{"currency":"GBP","largest_order_minor":null,"daily_minor":null}',
    ]
    assert "Per day: £14.00 → None" in ada.read("/app/audit?act=service_account.limited")


def test_lists_come_as_files_too(service: Service, ada: Browser) -> None:
    post(ada, account_id(service, "crm"), "limit", currency="EUR", daily="99")
    wanted = {
        "service-accounts": ("CRM,crm,Active,1,", ",EUR,,99.00"),
        "keys": ("crm,CRM,Everything,Every network,",),
        "people": ("Cem,cem@acme.example,Member,Yes,No,",),
    }
    for name, said in wanted.items():
        ada.get(f"/app/{name}")
        assert f"/app/{name}.csv" in ada.links
        assert all(part in ada.get(f"/app/{name}.csv").text for part in said), name
    post(ada, account_id(service, "crm"), "limit", currency="EUR")


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"currency": ""}, "currency"),
        ({"currency": "XXX"}, "currency"),
        ({"daily": "0"}, "daily"),
        ({"daily": "much"}, "daily"),
        ({"daily": "1.005"}, "daily"),
        ({"largest_order": "1000000001"}, "largest_order"),
        ({"currency": "JPY", "largest_order": "0.5"}, "largest_order"),
    ],
)
def test_what_is_wrong_with_a_limit_is_said_beside_its_field(
    service: Service, sign_in: SignIn, fields: dict[str, str], wrong: str
) -> None:
    ada, hr = sign_in("ada@acme.example"), account_id(service, "hr-bot")
    answer = post(ada, hr, "limit", **{"currency": "GBP", "largest_order": "1", **fields})
    assert answer.status_code == 422
    assert re.findall(r'id="(\w+)-error"', answer.text) == [wrong]
    assert service.sql("SELECT limits FROM service_accounts WHERE id = $1", hr)[0][0] is None


def test_the_edges_of_a_limit_are_taken(service: Service, sign_in: SignIn) -> None:
    ada, hr = sign_in("ada@acme.example"), account_id(service, "hr-bot")
    for amount in ("0.01", "1000000000"):
        assert post(ada, hr, "limit", currency="EUR", daily=amount).status_code == 303
    post(ada, hr, "limit", currency="EUR")


def test_it_uses_the_accounts_that_are_assigned_to_it(service: Service, sign_in: SignIn) -> None:
    ada, crm = sign_in("ada@acme.example"), account_id(service, "crm")
    accounts = service.ids["funding_accounts"]

    def seen() -> set[int]:
        return {one["id"] for one in service.client("crm").get("/funding-accounts").json()}

    before = seen()
    assert (accounts["team"] in before, accounts["sales"] in before) == (False, True)
    assert service.send("gift", "coffee", key="crm", account="team", value=5).status_code == 400
    ada.sees(f"/app/service-accounts/{crm}", "Open to everybody: Acme float, Euro float, Yen float, Dinar float.")
    done = post(ada, crm, "accounts", may_use=[str(accounts[name]) for name in ("team", "gbp")])
    assert done.status_code == 303
    assert seen() == before - {accounts["sales"]} | {accounts["team"]}
    assert service.send("gift", "coffee", key="crm", account="team", value=5).status_code == 200
    assert post(ada, crm, "accounts", may_use=str(accounts["sales"])).status_code == 303
    assert seen() == before
    assert (
        service.sql("SELECT count(*) FROM account_service_accounts WHERE account_id = $1", accounts["gbp"])[0][0] == 0
    )
    acts = service.sql("SELECT before, after FROM audit_events WHERE act = 'account.assigned' ORDER BY id")
    assert [tuple(act) for act in acts] == [
        ('{"accounts":["Sales team"]}', '{"accounts":["People team"]}'),
        ('{"accounts":["People team"]}', '{"accounts":["Sales team"]}'),
    ]


def test_accounts_of_others_are_nobodys_to_assign(service: Service, sign_in: SignIn) -> None:
    ada, crm = sign_in("ada@acme.example"), account_id(service, "crm")
    accounts = service.ids["funding_accounts"]
    before = service.sql("SELECT * FROM account_service_accounts ORDER BY 1, 2, 3")
    for given in (str(accounts["globex-gbp"]), str(accounts["test-gbp"]), "x", "0", "9" * 30):
        assert post(ada, crm, "accounts", may_use=given).status_code == 404
    assert service.sql("SELECT * FROM account_service_accounts ORDER BY 1, 2, 3") == before
