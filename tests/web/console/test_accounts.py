"""Group accounts and transfers in the web application, each by the roles that may."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.chained import actor_on
from tests.web.api.conftest import Service
from tests.web.console.conftest import SignIn
from tests.web.console.test_funding import WORLD as FUNDING

from largesse.db.pool import Database
from largesse.encryption.vault import Vault
from largesse.ledger.receivables import settle

WORLD = FUNDING.replace(
    "products:",
    """  - key: initech
    name: Initech
    plan: pro
    funding: invoiced
    users:
      - {email: ines@initech.example, name: Ines, role: finance}
      - {email: max@initech.example, name: Max, role: member}
    service_accounts: [{key: crm, name: CRM}]
    api_keys: [{key: initech, service_account: crm, environment: production}]
products:""",
)


def account(service: Service, name: str) -> int:
    return int(service.sql("SELECT id FROM accounts WHERE name = $1", name)[0]["id"])


def held(service: Service, name: str) -> int:
    return int(service.sql("SELECT balance_minor FROM accounts WHERE name = $1", name)[0][0])


def way(service: Service, source: str, target: str) -> dict[str, str]:
    return {"from": str(account(service, source)), "to": str(account(service, target))}


def test_money_is_moved_once_after_both_balances_were_shown(sign_in: SignIn, service: Service) -> None:
    browser = sign_in("finance@acme.example")
    browser.get("/app/funding")
    assert "/app/funding/transfer" in browser.links
    before, team = held(service, "Acme float"), held(service, "=People team")
    browser.get("/app/funding/transfer")
    chosen = re.findall(r'<option value="(\d+)" selected', browser.page.text)
    assert chosen == [str(account(service, "=People team"))], "another account in the currency of the first"
    fields = {**way(service, "Acme float", "=People team"), "amount": "12,50"}
    browser.sees("/app/funding/transfer?" + "&".join(f"{name}={value}" for name, value in fields.items()), "£12.50")
    browser.says(f"£{(team + 1250) / 100:,.2f}", f"£{(before - 1250) / 100:,.2f}", "Transfer the money")
    token = browser.token
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: browser.post("/app/funding/transfers", token=token, **fields), range(8)))
    assert {answer.status_code for answer in answers} <= {303, 409}
    assert (held(service, "Acme float"), held(service, "=People team")) == (before - 1250, team + 1250)
    assert "£12.50 was transferred from Acme float to =People team." in browser.read("/app/funding")
    for name, said in (("Acme float", "to =People team -£12.50"), ("=People team", "from Acme float £12.50")):
        assert said in browser.read(f"/app/funding/{account(service, name)}")
        csv = browser.get(f"/app/funding/{account(service, name)}/statement.csv").text
        assert "Transfer,,," in csv


@pytest.mark.parametrize(
    ("source", "target", "amount", "said"),
    [
        ("Acme float", "Acme float", "1", "Choose a different account"),
        ("Acme float", "Euros", "1", "This account is in EUR"),
        ("Acme float", "=People team", "99999", "Balance of Acme float: £"),
        ("Acme float", "=People team", "", "Type an amount"),
        ("Acme float", "=People team", "-1", "Type an amount"),
        ("Acme float", "=People team", "sNaN", "“sNaN” is not an amount"),
        ("Acme float", "=People team", "<script>", "Type an amount"),
        ("Acme float", "Globex float", "1", "Choose one of the options"),
        ("Globex float", "Acme float", "1", "Choose one of the options"),
    ],
)
def test_what_is_not_moved_is_said_beside_the_field(
    sign_in: SignIn, service: Service, source: str, target: str, amount: str, said: str
) -> None:
    browser = sign_in("admin@acme.example")
    before = service.sql("SELECT count(*) FROM entries")[0][0]
    browser.get("/app/funding/transfer")
    answer = browser.post("/app/funding/transfers", amount=amount, **way(service, source, target))
    assert answer.status_code == 422
    assert said in answer.text
    assert "<script>" not in answer.text.replace("<script src", "")
    assert service.sql("SELECT count(*) FROM entries")[0][0] == before


def test_an_account_is_made_named_closed_and_opened(sign_in: SignIn, service: Service) -> None:
    browser = sign_in("admin@acme.example")
    assert "GBP British Pound" in browser.read("/app/funding/accounts/new")
    for fields, said in (
        ({"name": "", "currency": "GBP"}, "Fill this in."),
        ({"name": "x" * 101, "currency": "GBP"}, "At most 100"),
        ({"name": "New", "currency": "XXX"}, "Choose one of the options."),
        ({"name": "acme FLOAT", "currency": "GBP"}, "Another account has this name."),
    ):
        answer = browser.submit("/app/funding/accounts/new", "/app/funding/accounts", **fields)
        assert (answer.status_code, said in answer.text) == (422, True), said
    browser.get("/app/funding/accounts/new")
    assert browser.post("/app/funding/accounts", name="<b>Xmas</b>", currency="GBP").status_code == 303
    assert "<b>Xmas" not in browser.get("/app/funding").text
    assert "<b>Xmas</b> was created." in browser.text
    page = f"/app/funding/{account(service, '<b>Xmas</b>')}"
    assert browser.submit(f"{page}/account", f"{page}/name", name="Acme float").status_code == 422
    assert browser.submit(f"{page}/account", f"{page}/name", name="Christmas").status_code == 303
    assert browser.submit(f"{page}/account", f"{page}/close").status_code == 303
    assert "Christmas is closed." in browser.read("/app/funding")
    for path in ("/app/funding/top-ups/new", "/app/funding/transfer"):
        assert "Christmas" not in browser.read(path)
    assert browser.submit(f"{page}/account", f"{page}/open").status_code == 303
    assert "Christmas" in browser.read("/app/funding/transfer")
    browser.sees(f"/app/funding/{account(service, 'Acme float')}/account", "This is your company's first account")


def test_no_order_is_paid_from_a_closed_account(sign_in: SignIn, service: Service) -> None:
    browser, team = sign_in("admin@acme.example"), account(service, "=People team")
    browser.get("/app/funding/transfer")
    assert (
        browser.post("/app/funding/transfers", amount="20", **way(service, "Acme float", "=People team")).status_code
        == 303
    )
    assert service.send("gift", "coffee", key="acme", account="team", value=5).status_code == 200
    service.sql("UPDATE accounts SET closed_at = clock_now() WHERE id = $1", team)
    refused = service.send("gift", "coffee", key="acme", account="team", value=5)
    assert refused.status_code == 400
    assert "names no funding account" in refused.text
    service.sql("UPDATE accounts SET closed_at = NULL WHERE id = $1", team)
    assert service.send("gift", "coffee", key="acme", account="team", value=5).status_code == 200


def test_who_is_told_of_a_low_balance_is_said_and_shown(sign_in: SignIn, service: Service) -> None:
    browser = sign_in("finance@acme.example")
    euros = account(service, "Euros")
    page = f"/app/funding/{euros}"
    assert "finance@acme.example" in browser.read(f"{page}/account")
    assert "member@acme.example" not in browser.text
    assert "Close it" not in browser.text, "which is an administrator's"
    finn = service.sql("SELECT id FROM users WHERE email = 'finance@acme.example'")[0]["id"]
    member = service.sql("SELECT id FROM users WHERE email = 'member@acme.example'")[0]["id"]
    for fields, said in (
        ({"below": "x", "who": str(finn)}, "Type an amount"),
        ({"below": "10"}, "Choose who gets the mail"),
        ({"below": "10", "who": str(member)}, "Choose who gets the mail"),
    ):
        answer = browser.submit(f"{page}/account", f"{page}/watch", **fields)
        assert (answer.status_code, said in answer.text) == (422, True), said
    assert browser.submit(f"{page}/account", f"{page}/watch", below="10", who=str(finn)).status_code == 303
    assert "Below €10.00" in browser.read("/app/funding")
    assert "Euros is below €10.00" in browser.read("/app")
    browser.get(f"{page}/account")
    assert 'value="10.00"' in browser.page.text
    ticked = f'value="{finn}" checked'
    assert ticked in browser.page.text
    assert ticked not in browser.post(f"{page}/watch", below="x").text, "nobody was ticked"
    browser.get(f"{page}/account")
    assert browser.post(f"{page}/watch", off="yes").status_code == 303
    assert "hold little" not in browser.read("/app")


def test_an_account_is_verified_and_printed(sign_in: SignIn, service: Service) -> None:
    browser, own = sign_in("viewer@acme.example"), account(service, "Acme float")
    browser.sees(f"/app/funding/{own}/verify", "All entries verified", "No anchor yet")
    mac = service.sql("SELECT encode(mac, 'hex') FROM entries WHERE account_id = $1 ORDER BY id DESC", own)[0][0]
    assert mac in browser.text
    assert browser.get(f"/app/funding/{own}/verify?after=x").status_code == 200
    browser.sees(f"/app/funding/{own}/print", "Acme Ltd Statement", "Acme float (GBP)", "Opening balance £0.00")
    browser.says("Top-up £1,000.00 £1,000.00", "Times are in UTC.")
    foreign = sign_in("gil@globex.example")
    for path in (f"/app/funding/{own}/verify", f"/app/funding/{own}/print"):
        assert foreign.get(path).status_code == 404


def pay(service: Service) -> None:
    """Records a payment of four pounds, as an operator does."""

    async def work(database: Database, vault: Vault) -> None:
        actor = (await actor_on(database, vault)).on_behalf_of(service.ids["customers"]["initech"], "production")
        credit = await settle(actor, currency="GBP", amount_minor=400, reference="bank-7")
        assert credit.balance_minor == -1100

    service.on_pool(work)


def test_an_invoiced_customer_sees_what_it_owes_by_month(sign_in: SignIn, service: Service) -> None:
    browser = sign_in("ines@initech.example")
    for path in ("/app/funding", "/app/funding/owed"):
        assert "The amount due for your orders appears here." in browser.read(path)
    assert "You top it up" not in browser.read("/app/funding")
    for _ in range(3):
        sent = service.send("gift", "coffee", key="initech", account=None, value=5)
        assert sent.status_code == 200, sent.text
    pay(service)
    assert "Due in GBP £11.00" in browser.read("/app/funding")
    assert "New account" not in browser.text  # it would be refused
    browser.sees("/app/funding/top-ups/new", "Your company pays by invoice and has no accounts.")
    browser.sees("/app/funding/owed", "£0.00 £15.00 £4.00 £11.00", "bank-7 £4.00")
    csv = browser.get("/app/funding/owed.csv").text.splitlines()
    assert csv[1].endswith(",0.00,15.00,4.00,11.00,GBP")
    assert len(csv) == 2
    other = sign_in("max@initech.example")
    assert "No access Your role does not include this." in other.read("/app/funding/owed")
    gil = sign_in("gil@globex.example")
    assert "bank-7" not in gil.read("/app/funding/owed")
