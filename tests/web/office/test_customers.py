"""Customers in the back office: opened, changed, noted, with their people and service accounts."""

import re
from typing import Any

from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser
from tests.web.office.conftest import SignIn, number_of

from largesse.ledger.accounts import MOST_ACCOUNTS

HELD = """
    SELECT sum(balance_minor)::bigint FROM accounts
    WHERE customer_id = 1 AND kind = 'funding' AND environment = 'production' AND currency = $1
"""


def acts(service: Service, customer_id: int) -> list[Any]:
    return service.sql(
        "SELECT actor, actor_name, act, after::text FROM audit_events WHERE customer_id = $1 ORDER BY id", customer_id
    )


def test_customers_are_listed_and_searched(service: Service, sign_in: SignIn) -> None:
    browser = sign_in("auditor")
    assert browser.get("/office/customers").status_code == 200
    assert "Acme Ltd" in browser.text
    assert "Open a customer" not in browser.text
    assert "Globex" in browser.read("/office/customers?q=glob")
    assert "Acme Ltd" not in browser.text
    assert "No customer is found by these words." in browser.read("/office/customers?q=nobody")


def test_a_customer_is_opened_with_its_first_administrator_who_signs_in(service: Service, sign_in: SignIn) -> None:
    browser = sign_in("support")
    browser.get("/office/customers/new")
    form = {
        "name": "Hooli",
        "plan": "pro",
        "funding": "balance",
        "currency": "GBP",
        "environment": ["production", "staging"],
        "email": "bill@hooli.example",
    }
    for wrong in (
        {"name": ""},
        {"name": "a" * 201},
        {"plan": "gold"},
        {"funding": "cash"},
        {"currency": "XXX"},
        {"environment": "moon"},
        {"email": "bill"},
    ):
        refused = browser.post("/office/customers", **{**form, **wrong})
        assert refused.status_code == 422, wrong
        assert "Hooli" in refused.text or "name" in wrong
    done = browser.submit("/office/customers/new", "/office/customers", **form)
    assert done.status_code == 200
    (link,) = re.findall(r'data-copy="[^"]*(/app/link/[^"]+)"', done.text)
    (customer,) = service.sql("SELECT id, plan, funding FROM customers WHERE key = 'hooli'")
    assert tuple(customer)[1:] == ("pro", "balance")
    told = acts(service, customer["id"])
    assert [row["act"] for row in told] == ["customer.created", "account.created", "account.created", "person.invited"]
    assert {(row["actor"], row["actor_name"]) for row in told} == {("staff", "support@largesse.example")}
    people = f"/office/customers/{customer['id']}/people"
    again = browser.submit(people, email="bill@hooli.example", name="", role="member")
    assert again.status_code == 422
    assert "A customer needs an administrator: make somebody else one first." in again.text
    bill = Browser(service)
    assert bill.submit(link, password="a long password of Bill's").headers["location"] == "/app"
    assert "bill@hooli.example" in bill.read("/app/people")


def test_people_whom_a_customer_removed_are_listed_apart(service: Service, sign_in: SignIn) -> None:
    customer_id = number_of(service, "globex")
    browser, here = sign_in("support"), f"/office/customers/{customer_id}/people"
    service.sql(
        "INSERT INTO users (customer_id, email, name, role, is_active) VALUES ($1, 'zoe@globex.example', 'Zoe', 'admin', false)",
        customer_id,
    )
    assert "zoe@globex.example" not in browser.read(here)
    assert f"{here}?state=removed" in browser.links
    assert "zoe@globex.example Administrator" in browser.read(f"{here}?state=removed")
    assert "zoe@globex.example" in browser.read(f"{here}?q=zoe")
    assert "Nobody is found by these words" in browser.read(f"{here}?q=zoo")


def test_an_old_window_changes_no_terms_that_somebody_else_set_meanwhile(service: Service, sign_in: SignIn) -> None:
    browser, here = sign_in("owner"), f"/office/customers/{number_of(service, 'globex')}"
    [before] = service.sql("SELECT name, plan, funding FROM customers WHERE key = 'globex'")
    was = {f"was_{name}": value for name, value in before.items()}
    plan = "enterprise" if before["plan"] != "enterprise" else "pro"
    browser.get(here)
    assert all(f'name="{name}" value="{value}"' in browser.page.text for name, value in was.items())
    for changed in ({"plan": plan}, {"name": "Globex Group"}):
        browser.get(here)
        assert browser.post(f"{here}/terms", **was, **{**before, **changed}).status_code == 303
    [after] = service.sql("SELECT name, plan, funding FROM customers WHERE key = 'globex'")
    assert dict(after) == {**before, "name": "Globex Group", "plan": plan}
    browser.page = browser.submit(here, f"{here}/terms", **was, **{**before, "plan": "starter"})
    assert browser.page.status_code == 422
    browser.says(f"It is now: {plan.capitalize()}")
    assert browser.submit(here, f"{here}/terms", **before).status_code == 303


def test_terms_change_and_the_customer_reads_who_did_it(service: Service, sign_in: SignIn) -> None:
    customer_id = number_of(service, "globex")
    browser, here = sign_in("support"), f"/office/customers/{customer_id}"
    browser.get(here)
    terms = {"name": "Globex plc", "plan": "enterprise", "funding": "balance"}
    assert browser.post(f"{here}/terms", **{**terms, "plan": "gold"}).status_code == 422
    assert browser.submit(here, f"{here}/terms", **terms).status_code == 303
    assert "Globex plc" in browser.read(here)
    (last,) = acts(service, customer_id)[-1:]
    assert (last["actor"], last["act"]) == ("staff", "customer.changed")
    browser.post(f"{here}/terms", **{**terms, "name": "Globex", "plan": "pro"})


def test_no_account_beyond_the_limit_which_closed_ones_take_too(service: Service, sign_in: SignIn) -> None:
    customer_id = number_of(service, "acme")
    browser, here = sign_in("support"), f"/office/customers/{customer_id}"
    service.sql(
        "INSERT INTO accounts (customer_id, environment, key, name, kind, currency, closed_at) "
        "SELECT $1, 'staging', 'full' || n, 'full' || n, 'funding', 'GBP', now() FROM generate_series(1, $2) AS n",
        customer_id,
        MOST_ACCOUNTS,
    )
    browser.page = browser.submit(
        here, f"{here}/accounts", account="One more", environment="production", currency="GBP"
    )
    assert browser.page.status_code == 422
    browser.says(f"its limit of {MOST_ACCOUNTS} accounts, the closed ones too.")
    service.sql("DELETE FROM accounts WHERE key LIKE 'full%'")


def test_money_of_a_customer_that_becomes_invoiced_is_warned_of(service: Service, sign_in: SignIn) -> None:
    browser = sign_in("owner")
    here = f"/office/customers/{service.ids['customers']['acme']}"
    assert "The accounts hold" not in browser.read(here)
    name = re.search(r'name="name"[^>]* value="([^"]*)"', browser.page.text)[1]
    terms = {"name": name, "plan": "enterprise"}
    assert browser.submit(here, f"{here}/terms", **terms, funding="invoiced").status_code == 303
    held = re.search(r"The accounts hold (\S+), .*?, which orders do not use", browser.read(here))[1]
    assert held == f"€{service.sql(HELD, 'EUR')[0][0] / 100:,.2f}"
    assert browser.submit(here, f"{here}/terms", **terms, funding="balance").status_code == 303
    assert "The accounts hold" not in browser.read(here)


def test_accounts_are_added(service: Service, sign_in: SignIn) -> None:
    browser, here = sign_in("owner"), f"/office/customers/{number_of(service, 'acme')}"
    browser.get(here)
    account = {"account": "Second office", "environment": "production", "currency": "GBP"}
    for wrong in ({"account": "a" * 101}, {"account": ""}, {"environment": "x"}, {"currency": "XXX"}):
        assert browser.post(f"{here}/accounts", **{**account, **wrong}).status_code == 422
        browser.get(here)
    assert browser.post(f"{here}/accounts", **account).status_code == 303
    assert "Second office" in browser.read(here)
    taken = browser.post(f"{here}/accounts", **account)
    assert taken.status_code == 422
    assert "Another account has this name." in taken.text


def test_notes_are_written_and_erased(service: Service, sign_in: SignIn) -> None:
    customer_id = number_of(service, "acme")
    browser, here = sign_in("support"), f"/office/customers/{customer_id}"
    browser.get(here)
    before = len(acts(service, customer_id))
    for wrong in ("", "a" * 2_001):
        assert browser.post(f"{here}/notes", note=wrong).status_code == 422
    assert browser.submit(here, f"{here}/notes", note="Call them <b>on</b> Monday").status_code == 303
    assert "Call them <b>on</b> Monday" in browser.read(here)
    (note,) = re.findall(r"/notes/([0-9]+)/erase", browser.page.text if browser.page else "")
    assert browser.post(f"{here}/notes/{note}/erase").status_code == 303
    assert "Monday" not in browser.get(here).text
    assert browser.post(f"{here}/notes/{note}/erase").status_code == 404
    assert len(acts(service, customer_id)) == before  # the customer is not told of notes


def test_people_are_invited_given_roles_and_let_choose_a_new_password(service: Service, sign_in: SignIn) -> None:
    browser, here = sign_in("support"), f"/office/customers/{number_of(service, 'acme')}/people"
    browser.get(here)
    form = {"email": "newcomer@acme.example", "name": "Nia", "role": "viewer"}
    for wrong in ({"email": "nia"}, {"name": "a" * 101}, {"role": "owner"}):
        assert browser.post(here, **{**form, **wrong}).status_code == 422
    invited = browser.submit(here, **form)
    (link,) = re.findall(r'data-copy="[^"]*(/app/link/[^"]+)"', invited.text)
    browser.get(here)
    (user,) = service.sql("SELECT id FROM users WHERE email = $1", form["email"])[0]
    again = browser.post(f"{here}/{user}/invitation")
    (second,) = re.findall(r'data-copy="[^"]*(/app/link/[^"]+)"', again.text)
    assert Browser(service).get(link).status_code != 200
    nia = Browser(service)
    assert nia.submit(second, password="a long password of Nia's").headers["location"] == "/app"
    assert browser.submit(here, f"{here}/{user}/role", role="finance").status_code == 303
    assert service.sql("SELECT role FROM users WHERE id = $1", user)[0][0] == "finance"
    known = {"email": form["email"], "password": "a long password of Nia's"}
    browser.submit(f"{here}/{user}/reset")
    assert Browser(service).submit("/app/sign-in", **known).status_code == 303
    reset = browser.submit(f"{here}/{user}/reset", second_step="yes")
    assert Browser(service).submit("/app/sign-in", **known).status_code == 403, "it would be enough to get in"
    (third,) = re.findall(r'data-copy="[^"]*(/app/link/[^"]+)"', reset.text)
    nia = Browser(service)
    assert nia.submit(third, password="another long password").status_code == 303
    assert Browser(service).submit("/app/sign-in", **{**known, "password": "another long password"}).status_code == 303
    globex = number_of(service, "globex")
    browser.get(here)
    for path in (f"/office/customers/{globex}/people/{user}/reset", f"/office/customers/{globex}/people/{user}/role"):
        assert browser.post(path, role="admin").status_code == 404
    service.sql("UPDATE users SET is_active = false, person_id = NULL WHERE id = $1", user)
    assert "is invited" in browser.submit(here, **form).text, "again, after they were removed"


def test_service_accounts_are_created_limited_and_switched_off(service: Service, sign_in: SignIn) -> None:
    browser, here = sign_in("support"), f"/office/customers/{number_of(service, 'acme')}/service-accounts"
    browser.get(here)
    for wrong in ("", "a" * 101):
        assert browser.post(here, name=wrong).status_code == 422
    assert browser.submit(here, name="Intranet").status_code == 303
    again = browser.submit(here, name="INTRANET")
    assert (again.status_code, "Another service account has this name." in again.text) == (422, True)
    (account,) = service.sql("SELECT id FROM service_accounts WHERE name = 'Intranet'")[0]
    browser.get(here)
    limits = {"account": str(account), "currency": "GBP", "largest_order": "50", "daily": ""}
    for wrong in ({"currency": "XXX"}, {"largest_order": "-1"}, {"largest_order": "much"}):
        assert browser.post(f"{here}/limit", **{**limits, **wrong}).status_code == 422, wrong
    assert browser.submit(here, f"{here}/limit", **limits).status_code == 303
    assert "£50.00 an order" in browser.get(here).text
    # The form does not show the limit of an order, and must not remove it.
    asked = browser.post(f"{here}/limit", **{**limits, "largest_order": "", "daily": "900"})
    assert (asked.status_code, "These are its limits now." in asked.text) == (422, True)
    (seen, largest, daily) = re.findall(r'name="(?:seen|largest_order|daily)"[^>]* value="([^"]*)"', asked.text)
    assert (largest, daily) == ("50.00", "900")
    browser.page = asked
    assert browser.post(f"{here}/limit", **{**limits, "daily": daily, "seen": seen}).status_code == 303
    browser.sees(here, "£50.00 an order", "£900.00 a day")
    browser.get(here)
    assert (
        browser.post(f"{here}/limit", **{**limits, "largest_order": "", "daily": daily, "seen": seen}).status_code
        == 303
    )
    assert "£50.00 an order" not in browser.read(here), "an empty field removes a limit that was shown"
    assert browser.post(f"{here}/{account}/active", active="no").status_code == 303
    assert not service.sql("SELECT active FROM service_accounts WHERE id = $1", account)[0][0]
    globex = number_of(service, "globex")
    browser.get(here)
    assert (
        browser.post(f"/office/customers/{globex}/service-accounts/{account}/active", active="yes").status_code == 404
    )
