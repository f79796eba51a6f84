"""The page of the audit log, and what is in it of what people do with people."""

import csv
import html
import io
import json
import re
from typing import Any

import pytest
from tests.chained import actor_on
from tests.distributed import IS_DISTRIBUTED
from tests.plans import rows_read
from tests.web.api.conftest import Service, on_database
from tests.web.console.conftest import Browser, SignIn, signed_in

from largesse.audit import service as audit
from largesse.audit import store
from largesse.audit.model import ACTS
from largesse.db.pool import Database
from largesse.db.roles import Role
from largesse.db.scope import OPERATOR
from largesse.encryption.vault import Vault
from largesse.ledger.store import find_funding_account
from largesse.ledger.top_ups import credit_account
from largesse.web.console.audit_words import KINDS, LABELS, SENTENCES, acts_of, kind_of
from largesse.web.kit.assets import icon
from largesse.web.office.audit_log import OF_OFFICE


def make_account(admin: Browser, name: str) -> None:
    assert admin.submit("/app/service-accounts", name=name).status_code == 303


def test_what_was_done_is_listed_newest_first_and_found(own_service: Service) -> None:
    ada = signed_in(own_service, "ada@acme.example")
    for name in ("First", "Second <b>", "=1+2"):
        make_account(ada, name)
    ada.get("/app/audit")
    shown = ada.text
    assert shown.index("Ada created the service account Second <b>") < shown.index("service account First")
    assert re.search(r"Details When \d{1,2} \w{3,4} \d{4}, \d\d:\d\d:\d\d Action", shown), (
        "the exact time without a pointer"
    )
    assert "Second <b>" not in ada.get("/app/audit").text
    assert "Ada created the service account First" in ada.read("/app/audit?act=service_account.created&who=ADA%40")
    for nothing in ("act=key.deleted", "who=nobody", "before=1", "kind=webhooks", "q=nothing-like-it"):
        assert "No entries match these filters." in ada.read(f"/app/audit?{nothing}")
    for odd in ("act=<script>", "before=x", "before=" + "9" * 30, "who=" + "x" * 500, "kind=<script>", "q=%27%25"):
        assert ada.get(f"/app/audit?{odd}").status_code == 200
        assert "<script>" not in ada.page.text
    rows = list(csv.DictReader(io.StringIO(ada.get("/app/audit.csv").text.lstrip("\ufeff"))))
    names = [row["after"] for row in rows if row["act"] == "service_account.created"]
    assert [name for name in names if "First" in name]
    assert all(row["actor_name"] == "ada@acme.example" for row in rows if row["actor"] == "person")
    # Who takes such a file is in it.
    assert [row["subject"] for row in rows if row["act"] == "file.exported"] == ["audit-log.csv"]


def test_the_file_holds_what_the_page_is_filtered_by(service: Service, ada: Browser) -> None:
    make_account(ada, "Filtered")
    ada.get("/app/audit?act=service_account.created&who=ada")
    [path] = [link for link in ada.links if "audit.csv" in link]
    rows = list(csv.DictReader(io.StringIO(ada.get(path.replace("&amp;", "&")).text.lstrip("\ufeff"))))
    assert {row["act"] for row in rows} == {"service_account.created"}
    assert "Filtered" in rows[0]["after"]
    assert ada.get("/app/audit.csv?who=nobody").text.count("\n") == 1


@pytest.mark.long
def test_older_events_are_a_page_away(service: Service, ada: Browser) -> None:
    for number in range(51):
        make_account(ada, f"Numbered {number}.")
    assert "Numbered 50." in ada.read("/app/audit")
    assert "Numbered 0." not in ada.text
    [older] = re.findall(r'href="([^"]+)" rel="next"', ada.page.text)
    ada.sees(older, "Numbered 0.", "Newer")


def test_a_search_looks_at_so_many_entries_at_a_time(
    service: Service, ada: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("Long ago", "Since", "Then", "Now"):
        make_account(ada, name)
    monkeypatch.setattr(audit, "LOOKED_AT_OF_CUSTOMER", 3)
    page = ada.read(path := "/app/audit?q=Long+ago")
    while "service account Long ago" not in page:
        assert "entries before this match. Look further back." in page
        [path] = [html.unescape(link) for link in re.findall(r'href="([^"]+)" rel="next"', ada.page.text)]
        page = ada.read(path)
    assert "before=" in path
    assert "Long ago" in ada.get("/app/audit.csv?q=Long+ago&act=service_account.created").text


@pytest.mark.skipif(IS_DISTRIBUTED, reason="what is read is on the nodes")
def test_a_page_of_the_log_reads_no_other_entries(own_service: Service) -> None:
    own_service.sql(
        """
        INSERT INTO audit_events (customer_id, at, actor, actor_name, act, subject, mac)
        SELECT 1, now(), 'command', 'largesse', 'key.created', 'API key 1', '' FROM generate_series(1, 2000)
        """
    )

    async def read(connection: Any) -> int:
        await connection.execute("ANALYZE audit_events")
        no_filter: tuple[Any, ...] = ([], "", [], "", [])
        return await rows_read(connection, Role.APP, "audit_events", store.NEWEST, 1, 2**63 - 1, 1_000, *no_filter, 51)

    assert on_database(own_service.database_url, read) == 51


def test_each_act_has_a_sentence_a_kind_and_labels() -> None:
    assert sorted([*SENTENCES, *OF_OFFICE]) == sorted(ACTS)
    assert sorted(act for kind in KINDS for act in acts_of(kind)) == sorted(SENTENCES)
    assert kind_of("person.role_changed") == "people"
    assert kind_of("person.signed_in") == "signing-in"
    assert acts_of("") == acts_of("nonsense") == []
    assert all(icon(name) for name, _, _ in KINDS.values())
    for act, sentence in [*SENTENCES.items(), *OF_OFFICE.items()]:
        assert sentence.startswith("%(who)s "), act
    assert len(LABELS) > 30


def rows(browser: Browser) -> list[str]:
    """The entries that the page shows, without their details."""
    log = browser.page.text.partition('<ol class="panel rows log">')[2].partition("</ol>")[0]
    entries = re.findall(r'<div class="grow">(.*?)<details>', log, re.DOTALL)
    return [html.unescape(" ".join(re.sub(r"<[^>]*>", " ", entry).split())) for entry in entries]


def noted(
    service: Service,
    act: str,
    subject: str,
    before: str | None = None,
    after: str | None = None,
    mode: str = "production",
) -> None:
    """As if a command of the operator had done that."""
    service.sql(
        "INSERT INTO audit_events (customer_id, at, environment, actor, actor_name, act, subject, before, after, mac)"
        " VALUES (1, now(), $1, 'command', 'x', $2, $3, $4, $5, '')",
        mode, act, subject, before, after,
    )  # fmt: skip


def test_entries_are_sentences_with_names_and_what_changed(service: Service, ada: Browser) -> None:
    cem = service.sql("SELECT id FROM users WHERE email = 'cem@acme.example'")[0]["id"]
    for role in ("finance", "member"):
        ada.submit("/app/people", f"/app/people/{cem}/role", role=role)
    team, sales = (service.ids["funding_accounts"][name] for name in ("team", "sales"))
    done = ada.submit(
        "/app/funding/transfer",
        "/app/funding/transfers",
        **{"from": str(team), "to": str(sales), "amount": "5", "amount_minor": "500"},
    )
    assert done.status_code == 303
    assert ada.submit("/app/security", "/app/security/large-sends", currency="GBP", above="1000").status_code == 303
    order = service.send("gift", "coffee", value=10, codeQuantity=2).json()["reference"]
    assert ada.submit(f"/app/orders/{order}/cancel").status_code == 303
    ada.get("/app/audit")
    assert rows(ada)[:5] == [
        f"Ada cancelled the unclaimed codes of …{order[-6:]} Codes: 2 Refunded: £20.00",
        "Ada changed the amount above which people confirm who they are Amount: None → £1,000.00",
        "Ada moved £5.00 from People team to Sales team",
        "Ada changed the role of Cem from Finance to Member",
        "Ada changed the role of Cem from Member to Finance",
    ]
    assert f"/app/orders/{order}" in ada.links
    # What the table holds is behind a disclosure.
    assert "person.role_changed" in ada.page.text.partition("<details>")[2]
    ada.headers["Accept-Language"] = "de"
    ada.get("/app/audit")
    assert "Ada hat die Rolle von Cem von Mitglied zu Finanzen geändert" in rows(ada)


def test_a_program_is_never_shown_as_a_person(service: Service, ada: Browser) -> None:
    """Otherwise an administrator could act with the key of a service account that has the address of a colleague."""
    make_account(ada, "cem@acme.example")
    key = service.sql("SELECT max(key) AS key FROM service_accounts WHERE name = 'cem@acme.example'")[0]["key"]
    _, secret = service.new_key(key)
    made = service.client().post(
        "/webhooks",
        json={"targetUrl": "https://93.184.215.14/hook", "event": "order.created"},
        headers={"Authorization": f"Bearer {secret}"},
    )
    assert made.status_code == 201, made.text
    cem = service.sql("SELECT id FROM users WHERE email = 'cem@acme.example'")[0]["id"]
    ada.submit("/app/people", f"/app/people/{cem}/role", role="finance")
    ada.submit("/app/people", f"/app/people/{cem}/role", role="member")
    ada.get("/app/audit")
    [entry] = [entry for entry in rows(ada) if "https://93.184.215.14" in entry]
    assert entry.startswith("cem@acme.example (API key) "), "although other entries of the page name Cem"
    assert "<code>key cem@acme.example</code>" in ada.page.text
    assert "<code>person ada@acme.example</code>" in ada.page.text


def test_the_log_is_found_by_names_and_kinds(service: Service, ada: Browser) -> None:
    make_account(ada, "Payroll machine")
    account = service.sql("SELECT max(id) FROM service_accounts")[0][0]
    ada.submit(f"/app/service-accounts/{account}", f"/app/service-accounts/{account}/active", active="no")
    ada.get("/app/audit?q=payroll+MACHINE")
    assert rows(ada) == [
        "Ada switched the service account Payroll machine on or off Switched on: No",
        "Ada created the service account Payroll machine",
    ]
    ada.get("/app/audit?kind=signing-in&who=ada")
    assert {*rows(ada)} == {"Ada signed in"}
    ada.get("/app/audit?kind=keys&who=Ada&q=payroll")
    assert len(rows(ada)) == 2, "by the name of a person, too"
    ada.get("/app/audit?kind=people&q=payroll")
    assert rows(ada) == []


def test_what_is_of_the_other_environment_has_its_name_and_no_link(service: Service, ada: Browser) -> None:
    account = service.ids["funding_accounts"]["test-gbp"]
    noted(service, "account.closed", f"account {account}", after='{"name": "x"}', mode="staging")
    ada.get("/app/audit")
    assert rows(ada)[0] == "The operator closed the account Test float Test mode"


def test_finance_gets_no_link_to_a_page_that_it_may_not_open(service: Service, ada: Browser, sign_in: SignIn) -> None:
    noted(service, "service_account.limited", "service account 1")
    noted(service, "approval.asked", "send ABCDEF123456")
    for what in ("contact", "template", "budget"):
        noted(service, f"{what}.changed", f"{what} 1")
    ada.get("/app/audit")
    opened = re.findall(r'<a href="(/app/[\w-]+)/[^"]+">', ada.page.text)
    assert {"/app/service-accounts", "/app/contacts", "/app/templates", "/app/budgets", "/app/approvals"} <= {*opened}
    ada.submit("/app/people", email="fin@acme.example", name="Fin", role="finance")
    fin = sign_in("fin@acme.example")
    fin.get("/app/audit")
    links = re.findall(r'<a href="(/app/[^"?]+)">', fin.page.text.partition("<main")[2])
    assert [link for link in links if fin.get(link).status_code != 200] == []


def test_money_that_an_operator_credited_is_shown_as_money_with_its_account(service: Service, ada: Browser) -> None:
    async def credit(database: Database, vault: Vault) -> None:
        async with database.connection(OPERATOR) as connection:
            account = await find_funding_account(connection, "acme/gbp")
        await credit_account(await actor_on(database, vault), account, 1250, "from the bank")

    service.on_pool(credit)
    ada.get("/app/audit?kind=money")
    assert rows(ada)[0].startswith("The operator credited the account Acme float Amount: £12.50 Balance: £")
    link = re.findall(r'href="(/app/funding/[^"]+)"', ada.page.text)[0]
    assert ada.get(link).status_code == 200


def test_instants_are_told_in_the_zone_of_the_reader(service: Service, ada: Browser) -> None:
    at = '{{"scheduled_for": "2030-{}:00+00:00"}}'.format
    noted(service, "order.rescheduled", "order ABCDEF123456", at("01-01T09:00"), at("06-01T10:30"))
    ada.get("/app/audit")
    assert rows(ada)[0] == "The operator moved …123456 from 1 Jan 2030, 09:00:00 to 1 Jun 2030, 10:30:00"


def test_amounts_that_an_earlier_release_stored_as_text_are_shown(service: Service, ada: Browser) -> None:
    of_team = '{{"name": "Team", "limit": "{}", "per_gift": "any amount"}}'.format
    noted(service, "budget.changed", "budget 9", of_team("£10.00"), of_team("£20.00"))
    ada.get("/app/audit")
    assert rows(ada)[0] == "The operator changed the budget budget 9 Limit: £10.00 → £20.00"


def test_what_a_key_may_do_is_worded_for_the_reader_also_of_an_earlier_release(service: Service, ada: Browser) -> None:
    everything = '{"scopes": null, "networks": null}'
    before, after = '{"for": "everything", "from": "everywhere"}', '{"for": "send", "from": "192.0.2.0/24"}'
    noted(service, "key.narrowed", "API key 9", before, after)
    narrow = '{"scopes": ["send", "read"], "networks": ["192.0.2.0/24"]}'
    noted(service, "key.narrowed", "API key 9", narrow, everything)
    noted(service, "key.created", "API key 9", after=everything)
    ada.get("/app/audit")
    created, lifted, narrowed = (re.findall("(?:Allowed networks|Scopes): .*", entry)[0] for entry in rows(ada)[:3])
    assert created == "Allowed networks: Every network Scopes: Everything"
    assert lifted == "Allowed networks: 192.0.2.0/24 → Every network Scopes: send, read → Everything"
    assert narrowed == "Scopes: Everything → send Allowed networks: Every network → 192.0.2.0/24"
    ada.headers["Accept-Language"] = "de"
    ada.get("/app/audit")
    assert "Alle Netze" in rows(ada)[0]


def test_what_has_no_name_is_said_in_the_readers_language(service: Service, ada: Browser) -> None:
    noted(service, "contact.changed", "contact 5")
    noted(service, "automation.skipped", "automation 6")
    noted(service, "parcel.returned", "parcel 7")
    ada.get("/app/audit")
    assert "The operator changed the contact 5" in rows(ada), "not the contact contact 5"
    ada.headers["Accept-Language"] = "de"
    ada.get("/app/audit")
    assert set(rows(ada)[:3]) == {
        "Der Betreiber hat den Kontakt 5 geändert",
        "Der Betreiber hat ein Geschenk von Automatisierung 6 übersprungen",
        "Der Betreiber hat erfasst, dass Paket 7 zurückgekommen ist",
    }
    assert {"/app/contacts/5", "/app/automations/6"} <= set(ada.links)


def test_what_is_done_with_people_is_on_record(own_service: Service) -> None:
    service, ada = own_service, signed_in(own_service, "ada@acme.example")
    shown = ada.submit("/app/people", email="joan@acme.example", name="Joan", role="viewer")
    [link] = set(re.findall(r"https://gifts\.example(/app/link/[\w-]+)", shown.text))
    joan = Browser(service)
    joan.submit(link, password="four plain words here")
    joan_id = service.sql("SELECT id FROM users WHERE email = 'joan@acme.example'")[0]["id"]
    ada.submit("/app/people", f"/app/people/{joan_id}/role", role="finance")
    removed = ada.submit("/app/people", f"/app/people/{joan_id}/remove")
    rows = service.sql(
        """SELECT act, actor, actor_name, address, request_id, subject, before::text, after::text
        FROM audit_events WHERE customer_id = $1 ORDER BY id""",
        service.ids["customers"]["acme"],
    )
    told = [(row["act"], row["actor_name"], row["subject"], row["address"]) for row in rows]
    a, j = "ada@acme.example", "joan@acme.example"
    assert told == [
        ("person.signed_in", a, a, ada.host),
        ("person.invited", a, j, ada.host),
        ("person.joined", j, j, joan.host),
        ("person.signed_in", j, j, joan.host),
        ("person.role_changed", a, j, ada.host),
        ("person.removed", a, j, ada.host),
    ]
    assert {row["actor"] for row in rows} == {"person"}
    assert rows[-1]["request_id"] == removed.headers["x-request-id"]
    assert (json.loads(rows[4]["before"]), json.loads(rows[4]["after"])) == ({"role": "viewer"}, {"role": "finance"})
    assert link.rpartition("/")[2] not in str(rows)
