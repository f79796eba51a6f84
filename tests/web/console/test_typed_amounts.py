"""Amounts that people type are read in the currency of their form: a yen has no hundredths, and a dinar has thousandths."""

import json
import re

import pytest
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser
from tests.web.console.test_keys import account_id
from tests.web.office.conftest import number_of, staff_in

CURRENCIES = pytest.mark.parametrize(("currency", "typed", "minor"), [("JPY", "1500", 1500), ("KWD", "1.234", 1234)])


@CURRENCIES
def test_an_administrators_amounts(service: Service, ada: Browser, currency: str, typed: str, minor: int) -> None:
    crm, name = account_id(service, "crm"), f"In {currency}"
    limits = {"currency": currency, "largest_order": typed, "daily": typed}
    assert ada.submit(f"/app/service-accounts/{crm}", f"/app/service-accounts/{crm}/limit", **limits).status_code == 303
    stored = service.sql("SELECT limits->>$2 AS limit FROM service_accounts WHERE id = $1", crm, currency)[0]["limit"]
    assert set(json.loads(stored).values()) == {minor}
    budget = {
        "name": name,
        "of": "role-member",
        "currency": currency,
        "period": "month",
        "limit": typed,
        "per_gift": typed,
    }
    assert ada.submit("/app/budgets", **budget).status_code == 303
    of_budget = "SELECT id, limit_minor, per_gift_minor FROM budgets WHERE name = $1"
    [row] = service.sql(of_budget, name)
    assert tuple(row)[1:] == (minor, minor)
    here = f"/app/budgets/{row['id']}"
    shown = re.findall(r'<input id="(\w+)"[^>]* value="([^"]*)"', ada.get(here).text)
    assert [name for name, value in shown if value == typed] == ["limit", "per_gift"]
    assert ada.submit(here, name=name, limit="2", per_gift="").status_code == 303
    assert service.sql(of_budget, name)[0]["limit_minor"] == {"JPY": 2, "KWD": 2_000}[currency]
    rule = {"name": name, "role": "anybody", "needed": "1", "currency": currency, "above": typed, "days": "7"}
    assert ada.submit("/app/approvals/rules", **rule).status_code == 303
    assert service.sql("SELECT above_minor FROM approval_rules WHERE name = $1", name)[0][0] == minor
    above = {"currency": currency, "above": typed}
    assert ada.submit("/app/security", "/app/security/large-sends", **above).status_code == 303
    confirmed = service.sql("SELECT confirm_above::json->>$1 FROM customers WHERE key = 'acme'", currency)
    assert confirmed[0][0] == str(minor)


@CURRENCIES
def test_amounts_of_the_back_office(service: Service, currency: str, typed: str, minor: int) -> None:
    owner, acme = staff_in(service, "owner"), number_of(service, "acme")
    here = f"/office/customers/{acme}/service-accounts"
    limits = {"account": str(account_id(service, "hr-bot")), "currency": currency, "largest_order": "", "daily": typed}
    assert owner.submit(here, f"{here}/limit", **limits).status_code == 303
    stored = service.sql("SELECT limits->>$1 AS limit FROM service_accounts WHERE key = 'hr-bot'", currency)[0]["limit"]
    assert minor in json.loads(stored).values()
    account = service.ids["funding_accounts"][currency.lower()]
    correction = {"kind": "credit", "amount": typed, "order": "", "reason": f"Paid in {currency}, and never credited"}
    assert owner.submit(f"/office/money/accounts/{account}/correct", **correction).status_code == 303
    proposed = "SELECT amount_minor FROM corrections WHERE account_id = $1"
    assert [tuple(row) for row in service.sql(proposed, account)] == [(minor,)]


@pytest.mark.parametrize(("value", "status"), [("499", 422), ("500", 303), ("10,000", 303), ("10,001", 422)])
def test_an_amount_outside_the_range_of_a_gift_names_the_range(
    service: Service, ada: Browser, value: str, status: int
) -> None:
    ramen = str(service.ids["products"]["ramen"])
    answer = ada.submit("/app/templates", name="Mine", product=ramen, country="JP", value=value, wrapping_key="gold")
    assert answer.status_code == status
    assert ("Type an amount from JP¥500 to JP¥10,000." in answer.text) is (status == 422)
    assert "From JP¥500" not in answer.text, "the error says it"
    assert (f'value="{value}"' in answer.text) is (status == 422)
