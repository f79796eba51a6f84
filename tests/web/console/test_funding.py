"""Accounts, their statements and top-ups, as each role sees them."""

import csv
import io
import re
from decimal import Decimal
from typing import Any

import pytest
from tests.chained import actor_on
from tests.web.api.conftest import MASTER_KEY, Service, ServiceFactory, on_database
from tests.web.console.conftest import Browser, SignIn

from largesse.audit.service import Acting, by_command
from largesse.db.pool import Database
from largesse.encryption.chain_keys import open_chains
from largesse.encryption.vault import Vault
from largesse.ledger.top_ups import MAX_WAITING, confirm_top_up, parse_transfer_reference
from largesse.reports.updates import apply_changes
from largesse.webhooks.queues import fan_out

WORLD = """
customers:
  - key: acme
    name: Acme Ltd
    plan: pro
    funding: balance
    users:
      - {email: admin@acme.example, name: Admin, role: admin}
      - {email: member@acme.example, name: Member, role: member}
      - {email: finance@acme.example, name: Finn, role: finance}
      - {email: viewer@acme.example, name: Viewer, role: viewer}
    service_accounts: [{key: bot, name: HR bot}]
    api_keys: [{key: acme, service_account: bot, environment: production}]
    funding_accounts:
      - {key: gbp, name: Acme float, master: true, currency: GBP, balance: 1000.00}
      - {key: team, name: "=People team", currency: GBP, balance: 50.00, service_accounts: [bot]}
      - {key: eur, name: Euros, currency: EUR, balance: 5}
      - {key: yen, name: Yen float, master: true, currency: JPY, environment: staging}
  - key: globex
    name: Globex
    plan: pro
    funding: balance
    users: [{email: gil@globex.example, name: Gil, role: admin}]
    funding_accounts: [{key: globex, name: Globex float, master: true, currency: GBP, balance: 7.00}]
products:
  - {key: coffee, name: Coffee, digital: true, currency: GBP, countries: [GB], denominations: [5]}
"""


@pytest.fixture(scope="module")
def service(start_service: ServiceFactory) -> Service:
    service = start_service(WORLD, transfer_details=("Example Ltd", "IBAN GB82 <WEST>"))
    for account in ("gbp", "team", "gbp"):
        assert service.send("gift", "coffee", key="acme", account=account, value=5).status_code == 200
    on_database(service.database_url, report)
    return service


async def report(connection: Any) -> None:
    """Adds the orders up, as the worker does."""
    async with connection.transaction():
        await fan_out(connection, 100)
        chains = await open_chains(connection, Vault((MASTER_KEY,)), keep=False)
        assert await apply_changes(connection, Acting(by_command("a test"), chains)) > 0


def account(service: Service, key: str) -> int:
    return int(service.sql("SELECT id FROM accounts WHERE key = $1 ORDER BY id", key)[0]["id"])


def ask(browser: Browser, service: Service, amount: str = "250", key: str = "gbp") -> str:
    """The reference of a top-up that the person has asked for."""
    browser.get("/app/funding/top-ups/new")
    answer = browser.post("/app/funding/top-ups", account=str(account(service, key)), amount=amount)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"].removeprefix("/app/funding/top-ups/")


def confirm(service: Service, reference: str) -> None:
    async def work(database: Database, vault: Vault) -> None:
        await confirm_top_up(await actor_on(database, vault), reference)

    service.on_pool(work)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("role", ["admin", "finance", "viewer"])
def test_accounts_show_what_they_hold_and_who_may_use_them(sign_in: SignIn, role: str) -> None:
    browser = sign_in(f"{role}@acme.example")
    assert browser.get("/app/funding").status_code == 200
    browser.says("Acme float", "=People team", "Everybody can use this account", "Used by HR bot")
    browser.says("£5.00 spent this month")
    assert "Globex" not in browser.text
    assert "Yen" not in browser.text
    assert ("Top up" in browser.text) is (role != "viewer")


def test_a_member_sees_what_they_may_use(sign_in: SignIn, service: Service) -> None:
    browser = sign_in("member@acme.example")
    assert "Acme float" in browser.read("/app/funding")
    assert "People team" not in browser.text
    assert browser.get(f"/app/funding/{account(service, 'gbp')}").status_code == 200
    team = account(service, "team")
    for path in (f"/app/funding/{team}", f"/app/funding/{team}/statement.csv"):
        assert browser.get(path).status_code == 404
    browser.get("/app/funding/top-ups/new")
    assert browser.post("/app/funding/top-ups", account=str(team), amount="1").status_code == 422
    theirs = ask(sign_in("finance@acme.example"), service, key="team")
    assert browser.get(f"/app/funding/top-ups/{theirs}").status_code == 404
    browser.get("/app/funding/top-ups")
    assert theirs not in " ".join(browser.links)


def test_a_statement_goes_from_its_opening_to_its_closing_balance(sign_in: SignIn, service: Service) -> None:
    browser = sign_in("viewer@acme.example")
    path = f"/app/funding/{account(service, 'gbp')}"
    browser.get(path)
    assert re.search(
        r"Opening balance £0\.00 .*Top-up.* £1,000\.00 £1,000\.00 .*-£5\.00 £995\.00 .*-£5\.00 £990\.00", browser.text
    )
    assert re.search(r"Closing balance £\d", browser.text)
    [earlier] = [link for link in browser.links if "month=" in link and "csv" not in link and "print" not in link]
    assert "Opening balance £0.00 No entries in this month. Closing balance £0.00" in browser.read(earlier)
    printed = browser.read(f"{path}/print")
    facts = re.search(r"Opening balance £([\d.,]+) (.*?) Closing balance £([\d.,]+)", printed)
    assert facts is not None, printed
    opening, closing = (Decimal(one.replace(",", "")) for one in facts.group(1, 3))
    sums = [Decimal(one.replace("£", "").replace(",", "")) for one in re.findall(r"-?£[\d.,]+", facts[2])]
    assert facts[2].startswith("Order -£")
    assert opening + sum(sums) == closing
    for month in ("0001-01", "9999-12", "2026-13", "x"):
        assert browser.get(f"{path}?month={month}&after=x").status_code == 200
    answer = browser.get(f"{path}/statement.csv")
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.text.removeprefix("\ufeff"))))
    assert [(row["Kind"], row["Amount"], row["Balance"]) for row in rows[:3]] == [
        ("Top-up", "1000.00", "1000.00"),
        ("Order", "-5.00", "995.00"),
        ("Order", "-5.00", "990.00"),
    ]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", rows[0]["Date (UTC)"])  # spreadsheets read no time zone
    for language, (kind, amount, balance, top_up, order) in {
        "de": ("Art", "Betrag", "Guthaben", "Aufladung", "Bestellung"),
        "fr": ("Type", "Montant", "Solde", "Approvisionnement", "Commande"),
    }.items():
        browser.headers["Accept-Language"] = language
        lines = browser.get(f"{path}/statement.csv").text.removeprefix("\ufeff").splitlines()
        theirs = list(csv.DictReader(lines, delimiter=";"))
        assert [(row[kind], row[amount], row[balance]) for row in theirs[:2]] == [
            (top_up, "1000,00", "1000,00"),
            (order, "-5,00", "995,00"),
        ]


def test_an_amount_of_many_digits_is_smaller(sign_in: SignIn, service: Service) -> None:
    browser = sign_in("viewer@acme.example")
    assert '"figure">£' in browser.get("/app/funding").text
    before = service.sql("SELECT balance_minor FROM accounts WHERE id = $1", account(service, "gbp"))[0][0]
    service.sql("UPDATE accounts SET balance_minor = 123456789012345 WHERE id = $1", account(service, "gbp"))
    for path in ("/app/funding", "/app"):
        assert re.search(r'"figure long">£1,234,567,\d{3},\d{3}', browser.get(path).text), path
    service.sql("UPDATE accounts SET balance_minor = $2 WHERE id = $1", account(service, "gbp"), before)


def test_a_long_statement_comes_in_pieces(sign_in: SignIn, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("largesse.web.console.funding._AT_ONCE", 2)
    browser = sign_in("viewer@acme.example")
    assert "Opening balance" in browser.read(f"/app/funding/{account(service, 'gbp')}")
    assert "Closing balance" not in browser.text
    [following] = [link for link in browser.links if "after=" in link]
    assert "£990.00" in browser.read(following.replace("&amp;", "&"))
    assert "Opening balance" not in browser.text


def test_a_top_up_is_asked_for_paid_and_credited(sign_in: SignIn, service: Service) -> None:
    browser = sign_in("finance@acme.example")
    reference = ask(browser, service, "250,50")
    assert parse_transfer_reference(reference) == reference
    browser.sees(f"/app/funding/top-ups/{reference}", "£250.50 for Acme float", "Waiting for the transfer")
    browser.says("Example Ltd", "IBAN GB82 <WEST>", "It is not an invoice")
    assert " ".join(reference[at : at + 4] for at in range(0, 16, 4)) in browser.text
    assert browser.get("/app/funding").status_code == 200
    assert f"/app/funding/top-ups/{reference}" in browser.links
    confirm(service, reference)
    assert "Credited" in browser.read(f"/app/funding/top-ups/{reference}")
    assert "How to pay" not in browser.text
    assert browser.post(f"/app/funding/top-ups/{reference}/cancel").status_code in {303, 403}
    assert "Credited" in browser.read("/app/funding/top-ups")
    assert f"Top-up {reference} £250.50" in browser.read(f"/app/funding/{account(service, 'gbp')}")
    browser.get("/app/funding")
    assert f"/app/funding/top-ups/{reference}" not in browser.links


def test_a_top_up_is_cancelled_and_a_viewer_only_looks(sign_in: SignIn, service: Service) -> None:
    admin, viewer = sign_in("admin@acme.example"), sign_in("viewer@acme.example")
    reference = ask(admin, service)
    assert "Cancel" not in viewer.read(f"/app/funding/top-ups/{reference}")
    assert viewer.post(f"/app/funding/top-ups/{reference}/cancel").status_code == 403
    assert viewer.get("/app/funding/top-ups/new").status_code == 403
    admin.get(f"/app/funding/top-ups/{reference}")
    assert admin.post(f"/app/funding/top-ups/{reference}/cancel").status_code == 303
    assert "The top-up was cancelled" in admin.read("/app/funding")
    assert "Cancelled" in viewer.read(f"/app/funding/top-ups/{reference}")


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        ("", "Type an amount"),
        ("ten", "“ten” is not an amount. Type an amount such as 1,000.50"),
        ("0", "“0” is not above zero"),
        ("1.000", "“1.000” can mean £1,000.00 or £1.00. If you mean £1,000.00, type 1000.00."),
        ("1000000000.01", "is more than £1,000,000,000.00"),
        ("<script>", "Type an amount"),
    ],
)
def test_an_amount_that_is_none_is_said_beside_it(sign_in: SignIn, service: Service, amount: str, said: str) -> None:
    browser = sign_in("admin@acme.example")
    browser.get("/app/funding/top-ups/new")
    before = service.sql("SELECT count(*) FROM top_ups")[0][0]
    answer = browser.post("/app/funding/top-ups", account=str(account(service, "gbp")), amount=amount)
    assert answer.status_code == 422
    assert said in answer.text
    assert "<script>" not in answer.text.replace("<script src", "")
    assert service.sql("SELECT count(*) FROM top_ups")[0][0] == before


@pytest.mark.parametrize(
    ("language", "typed", "said"),
    [("en", "1,000", "£1,000.00 for Acme float"), ("de", "1.000", "1.000,00 £"), ("fr", "1 000,50", "1 000,50 £GB")],
)
def test_an_amount_is_read_as_its_reader_writes_it(
    sign_in: SignIn, service: Service, language: str, typed: str, said: str
) -> None:
    browser = sign_in("admin@acme.example")
    browser.headers["Accept-Language"] = language
    browser.get("/app/funding/top-ups/new")
    answer = browser.post("/app/funding/top-ups", account=str(account(service, "gbp")), amount=typed)
    assert answer.status_code == 303, answer.text
    assert said in browser.read(answer.headers["location"])
    assert browser.post(f"{answer.headers['location']}/cancel").status_code == 303


def test_a_form_shown_again_says_how_its_amount_was_read(sign_in: SignIn, service: Service) -> None:
    browser = sign_in("admin@acme.example")
    query = f"from={account(service, 'gbp')}&to={account(service, 'gbp')}&amount=1%2C000"
    browser.sees(f"/app/funding/transfer?{query}", "Choose a different account", "Read as £1,000.00.")


@pytest.mark.slow
def test_too_many_that_wait_are_refused_and_said(gil: Browser, service: Service) -> None:
    theirs = service.sql("SELECT id FROM accounts WHERE name = 'Globex float'")[0]["id"]
    for number in range(MAX_WAITING + 1):
        answer = gil.submit("/app/funding/top-ups/new", "/app/funding/top-ups", account=str(theirs), amount="1")
        assert answer.status_code == (303 if number < MAX_WAITING else 422)
    assert f"{MAX_WAITING} top-ups are already waiting" in answer.text


def told_of_waiting(browser: Browser) -> int:
    browser.get("/app")
    return int((re.findall(r"(\d+) top-ups? waits? for (?:its|their) transfer", browser.text) or ["0"])[0])


@pytest.mark.slow
def test_home_tells_of_top_ups_that_wait(service: Service, sign_in: SignIn) -> None:
    people = {role: sign_in(f"{role}@acme.example") for role in ("member", "finance", "viewer")}
    before = {role: told_of_waiting(browser) for role, browser in people.items()}
    member, account = people["member"], str(service.ids["funding_accounts"]["gbp"])
    member.get("/app/funding/top-ups/new")
    paid_by = member.post("/app/funding/top-ups", account=account, amount="12").headers["location"]
    more = {role: told_of_waiting(browser) - before[role] for role, browser in people.items()}
    assert more == {"member": 1, "finance": 1, "viewer": 0}
    assert member.submit(paid_by, f"{paid_by}/cancel").status_code == 303
    assert told_of_waiting(member) == before["member"]


def test_a_statement_names_to_a_member_their_own_orders_alone(sign_in: SignIn, service: Service) -> None:
    references = {}
    for person in ("member", "admin"):
        sent = service.send(
            "gift", "coffee", key="acme", account="gbp", value=5, externalReference=f"Farewell {person}"
        )
        references[person] = sent.json()["reference"]
        own = service.sql("SELECT id FROM users WHERE email = $1", f"{person}@acme.example")[0]["id"]
        service.sql(
            "UPDATE orders SET user_id = $2, service_account_id = NULL WHERE reference = $1 RETURNING 1",
            references[person],
            own,
        )
    path = f"/app/funding/{account(service, 'gbp')}"
    for role, named in (("member", {"member"}), ("admin", {"member", "admin"}), ("viewer", {"member", "admin"})):
        browser = sign_in(f"{role}@acme.example")
        for page in (path, f"{path}/print", f"{path}/statement.csv"):
            said = browser.get(page).text
            assert {one for one in references if f"Farewell {one}" in said} == named, page
            assert {one for one, reference in references.items() if reference in said} == named, page
        lines = browser.get(f"{path}/statement.csv").text.splitlines()
        assert sum(",-5.00," in line for line in lines) == 4, "the entries of all orders"
