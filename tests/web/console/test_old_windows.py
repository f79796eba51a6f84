"""Forms that are saved in a window which was opened before somebody else saved them: both people's changes are kept."""

import asyncio
import html
import json
import re
from collections.abc import Callable
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest
from tests.automations.conftest import add_group
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser, SignIn
from tests.web.console.gifts import WORLD, ada, gathered
from tests.web.console.sending import begin
from tests.web.console.test_automations import set_one
from tests.web.console.test_campaigns import set_one as set_campaign

from largesse.automations import service as automations
from largesse.budgets import service as budgets
from largesse.campaigns import service as campaigns
from largesse.catalogue import service as collections
from largesse.contacts import service as contacts
from largesse.customers import api_keys, members, service_accounts
from largesse.drafts.service import DraftService
from largesse.ledger import accounts
from largesse.web.console import branding
from largesse.web.console.gifts import templates
from largesse.web.console.send import delivery

__all__ = ["WORLD", "ada"]


def was(browser: Browser, path: str) -> dict[str, str]:
    """What the fields of a page showed when it was opened."""
    found = re.findall(r'name="(was_\w+)" value="([^"]*)"', browser.get(path).text)
    return {name: html.unescape(value) for name, value in found}


def window(browser: Browser, path: str) -> dict[str, str]:
    """All fields of a page's form as they are posted if nobody changes them."""
    found = was(browser, path)
    return found | {name.removeprefix("was_"): value for name, value in found.items()}


def save(browser: Browser, path: str, fields: dict[str, Any], **changes: Any) -> None:
    assert browser.submit(path, **{**fields, **changes}).status_code == 303


def conflict(browser: Browser, path: str, fields: dict[str, Any], said: str, **changes: Any) -> None:
    browser.page = browser.submit(path, **{**fields, **changes})
    assert browser.page.status_code == 422
    browser.says(f"It is now: {said}")


def test_an_automation_keeps_what_somebody_else_changed_meanwhile(service: Service, ada: Browser) -> None:
    group = add_group(service, name="New here")
    service.sql("UPDATE users SET role = 'admin' WHERE name = 'Mia'")  # who may approve it
    path = f"{set_one(ada, service).headers['location']}/edit"
    old = window(ada, path)
    save(ada, path, old, occasion="joined", group=str(group), days="0", asks_approval="yes")
    save(ada, path, old, name="Welcome", cap="50")
    [row] = service.sql("SELECT name, occasion, group_id, days, cap, asks_approval FROM automations")
    assert tuple(row) == ("Welcome", "joined", group, 0, 50, True)
    conflict(ada, path, old, "Days after joining a group", occasion="anniversary")
    assert window(ada, path)["occasion"] == "joined"
    save(ada, path, window(ada, path), asks_approval=[], days="7", zone="Asia/Kathmandu")
    [row] = service.sql("SELECT days, zone, asks_approval FROM automations")
    assert tuple(row) == (7, "Asia/Kathmandu", False)
    service.sql("UPDATE users SET role = 'member' WHERE name = 'Mia'")


def test_a_campaign_keeps_its_end_when_somebody_in_another_zone_changes_its_name(
    service: Service, ada: Browser
) -> None:
    set_campaign(ada, service)
    [[number, closes_at]] = service.sql("SELECT id, closes_at FROM campaigns WHERE ended_at IS NULL")
    path, row = f"/app/campaigns/{number}/edit", "SELECT closes_at FROM campaigns WHERE ended_at IS NULL"
    service.sql("UPDATE people SET zone = 'Asia/Tokyo' WHERE email = 'ada@acme.example'")
    try:
        save(ada, path, window(ada, path), name="Tokyo party")
        assert service.sql(row) == [(closes_at,)]
        save(ada, path, window(ada, path), closes=f"{closes_at + timedelta(days=2):%Y-%m-%d}")
        assert service.sql(row) == [(closes_at + timedelta(days=2) - timedelta(hours=9),)]
    finally:
        service.sql("UPDATE people SET zone = NULL WHERE email = 'ada@acme.example'")
        service.sql("UPDATE campaigns SET ended_at = clock_now() WHERE ended_at IS NULL")
        service.sql("DELETE FROM drafts")


def test_a_campaign_keeps_what_another_window_changed_meanwhile(service: Service, ada: Browser) -> None:
    set_campaign(ada, service)
    [[number]] = service.sql("SELECT id FROM campaigns WHERE ended_at IS NULL")
    path = f"/app/campaigns/{number}/edit"
    old = window(ada, path)
    save(ada, path, old, gifts="9", domains="", addresses="yan@list.example\r\nzoe@list.example")
    save(ada, path, old, name="Winter party", greeting="Hello")
    now = window(ada, path)
    assert [now[name] for name in ("name", "gifts", "domains", "addresses", "greeting")] == [
        "Winter party", "9", "", "yan@list.example\nzoe@list.example", "Hello",
    ]  # fmt: skip
    conflict(ada, path, old, "9", gifts="7")
    save(ada, path, now, gifts="7")
    assert window(ada, path)["gifts"] == "7"


def test_a_collection_keeps_what_somebody_else_changed_meanwhile(service: Service, ada: Browser) -> None:
    coffee, shop, hamper = (str(service.ids["products"][key]) for key in ("coffee", "shop", "hamper"))
    path = f"/app/collections/{gathered(service, ada, 'coffee', 'shop')}/edit"
    old = window(ada, path)
    save(ada, path, old, name="Theirs", product=[coffee, hamper])
    search = ada.service.client().build_request("GET", path, params={**old, "product": [coffee, shop], "q": "shop"})
    searched = ada.get(str(search.url.raw_path, "ascii")).text
    assert re.findall(r'name="product" value="(\d+)" checked', searched) == [coffee, hamper]
    assert 'value="Theirs"' in searched
    save(ada, path, old, product=[coffee, shop])
    save(ada, path, old, name="Theirs", product=[shop])
    [row] = service.sql("SELECT name, product_ids FROM collections WHERE name = 'Theirs'")
    assert row["product_ids"] == [int(hamper)]
    conflict(ada, path, old, "Theirs", name="Mine", product=[coffee])


def test_a_brand_keeps_what_somebody_else_changed_meanwhile(service: Service, ada: Browser) -> None:
    path = "/app/branding"
    save(ada, path, {}, colour="#17605b", footer="Acme\r\nLtd", subject="Hello")
    old = window(ada, path)
    save(ada, path, old, colour="#ff0000", subject="")
    save(ada, path, old, sender_name="Acme Gifts")
    now = window(ada, path)
    shown = [now[name] for name in ("colour", "subject", "sender_name", "footer")]
    assert shown == ["#ff0000", "", "Acme Gifts", "Acme\nLtd"]
    conflict(ada, path, old, "\N{EN DASH}", subject="Good day")


def test_default_claim_by_dates_keep_what_somebody_else_changed_meanwhile(service: Service, ada: Browser) -> None:
    path = "/app/unclaimed"
    save(ada, path, {}, claim_by_days="30", reminder_days="3, 10")
    old = window(ada, path)
    save(ada, path, old, claim_by_days="60", of_api="yes")
    save(ada, path, old, reminder_days="5", of_api=[])
    now = window(ada, path)
    assert (now["claim_by_days"], now["reminder_days"], now["of_api"]) == ("60", "5", "yes")
    conflict(ada, path, old, "60", claim_by_days="90")


def test_a_contact_keeps_what_somebody_else_changed_meanwhile(service: Service, ada: Browser) -> None:
    new = {"name": "Ada", "email": "ada@example.com", "groups": "Sales, Berlin", "address": "1 High St\nLondon"}
    path = str(ada.submit("/app/contacts/new", "/app/contacts", country="GB", **new).headers["location"])
    old = window(ada, path) | {"group": ["Sales", "Berlin"]}
    save(ada, path, old, email="byron@example.com", start_date="1 September 2019", group=["Sales"], groups="Paris")
    save(ada, path, old, name="Ada Byron", birthday="29/02", group=["Berlin"], groups="Rome")
    now = window(ada, path)
    assert (now["name"], now["email"], now["birthday"]) == ("Ada Byron", "byron@example.com", "29/02")
    assert (now["start_date"], now["address"]) == ("01/09/2019", "1 High St\nLondon")
    assert now["group"].split() == ["Paris", "Rome"]
    conflict(ada, path, old, "byron@example.com", email="king@example.com")


def test_the_message_and_the_delivery_of_a_draft_keep_what_another_window_saved_meanwhile(
    service: Service, ada: Browser
) -> None:
    draft = begin(ada, service)
    path = f"{draft}/message"
    old = window(ada, path)
    save(ada, path, old, message="Thank you,\r\nall")
    save(ada, path, old, wrapping_key="confetti", from_name="Acme")
    now = window(ada, path)
    assert (now["wrapping_key"], now["from_name"], now["message"]) == ("confetti", "Acme", "Thank you,\nall")
    conflict(ada, path, old, "Confetti", wrapping_key="stars", message="Thank you,\nall")
    conflict(ada, path, old, "Thank you,", message="Well done")
    assert "<iframe" not in ada.page.text  # what it would show is the other window's text
    path = f"{draft}/delivery"
    old = window(ada, path)
    assert old["account"] == str(service.ids["funding_accounts"]["gbp"])
    save(ada, path, old, when="later", at="2031-03-05T10:00", claim_by="2031-05-01")
    save(ada, path, old, reference="PO 7", reminder_days="3")
    now = window(ada, path)
    assert (now["when"], now["at"]) == ("later", "2031-03-05T10:00")
    assert (now["reference"], now["claim_by"], now["reminder_days"]) == ("PO 7", "2031-05-01", "3")
    conflict(ada, path, old, "PO 7", reference="PO 8")
    conflict(ada, path, old, "3", reminder_days="4")


@pytest.fixture
def save_both(sign_in: SignIn, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Saves two windows. The second is saved after the handler of the first has read the object, and before it changes it."""

    def save(
        path: str, module: ModuleType | type, operation: str, first: dict[str, Any], second: dict[str, Any]
    ) -> None:
        one, other = sign_in("ada@acme.example"), sign_in("ada@acme.example")
        carry_out = getattr(module, operation)

        async def after_the_other(*given: Any, **named: Any) -> Any:
            monkeypatch.undo()
            assert (await asyncio.to_thread(other.post, path, **second)).status_code == 303
            return await carry_out(*given, **named)

        for browser in (one, other):
            browser.get("/app")
        monkeypatch.setattr(module, operation, after_the_other)
        assert one.post(path, **first).status_code == 303

    return save


def test_both_changes_of_a_form_saved_at_the_same_moment_are_kept(
    service: Service, ada: Browser, save_both: Callable[..., None]
) -> None:
    def keeps(
        path: str, module: ModuleType | type, operation: str, first: dict[str, Any], second: dict[str, Any]
    ) -> None:
        old = window(ada, path)
        save_both(path, module, operation, old | first, old | second)
        now = window(ada, path)
        assert {name: now[name] for name in first | second} == first | second

    [template] = service.sql("SELECT id FROM templates WHERE name = 'Welcome' AND removed_at IS NULL LIMIT 1")
    automation = f"{set_one(ada, service).headers['location']}/edit"
    keeps(automation, automations, "change_automation", {"name": "Yearly"}, {"cap": "9"})
    service.sql("UPDATE campaigns SET ended_at = clock_now() WHERE ended_at IS NULL")
    set_campaign(ada, service)
    [[campaign]] = service.sql("SELECT id FROM campaigns WHERE ended_at IS NULL")
    keeps(f"/app/campaigns/{campaign}/edit", campaigns, "change_campaign", {"name": "Spring party"}, {"gifts": "8"})
    offered = {"wrapping_key": "default"}  # the one it had is not
    of_template = offered | {"from_name": "Acme"}, offered | {"message": "Hello!"}
    keeps(f"/app/templates/{template['id']}", templates, "change_template", *of_template)
    draft = begin(ada, service)
    keeps(f"{draft}/message", DraftService, "change", {"from_name": "Acme"}, {"message": "Hello!"})
    keeps("/app/branding", branding, "set_brand", {"subject": "Hi"}, {"footer": "Acme Ltd"})
    keeps("/app/unclaimed", delivery, "set_defaults", {"claim_by_days": "40"}, {"reminder_days": "6"})
    new = {"name": "Bea", "email": "bea@example.com", "address": "1 High St\nLondon"}
    contact = str(ada.submit("/app/contacts/new", "/app/contacts", **new).headers["location"])
    keeps(contact, contacts, "change_contact", {"name": "Beatrice"}, {"birthday": "14/02"})
    keeps(contact, contacts, "change_contact", {"name": "Bea"}, {"address": "2 High St\nLondon"})

    coffee, shop, hamper = (str(service.ids["products"][key]) for key in ("coffee", "shop", "hamper"))
    path = f"/app/collections/{gathered(service, ada, 'coffee', 'shop')}/edit"
    old = window(ada, path)
    second = {"product": [coffee, shop, hamper]}
    first = {"product": [coffee, shop], "name": "Both"}
    save_both(path, collections, "change_collection", old | first, old | second)
    [row] = service.sql("SELECT product_ids FROM collections WHERE name = 'Both'")
    assert row["product_ids"] == [int(coffee), int(shop), int(hamper)]


def test_a_budget_keeps_both_changes_of_the_same_moment(
    service: Service, ada: Browser, save_both: Callable[..., None]
) -> None:
    new = {"name": "Thanks", "of": "role-member", "currency": "GBP", "period": "month", "limit": "25", "per_gift": "9"}
    assert ada.submit("/app/budgets", **new).status_code == 303
    [[budget]] = service.sql("SELECT id FROM budgets WHERE name = 'Thanks'")
    path, shown = f"/app/budgets/{budget}", {"name": "Thanks", "limit": "25.00", "per_gift": "9.00"}
    form = shown | {f"was_{name}": value for name, value in shown.items()}
    save_both(path, budgets, "change_budget", form | {"limit": "50"}, form | {"per_gift": "7", "name": "More"})
    [row] = service.sql("SELECT name, limit_minor, per_gift_minor FROM budgets WHERE id = $1", budget)
    assert tuple(row) == ("More", 50_00, 7_00)


def test_a_service_account_keeps_both_limits_of_the_same_moment(
    service: Service, save_both: Callable[..., None]
) -> None:
    account = service.ids["service_accounts"]["hr-bot"]
    form = {"currency": "GBP", "largest_order": "", "daily": "", "was_largest_order": "", "was_daily": ""}
    both = form | {"largest_order": "10"}, form | {"daily": "20"}
    save_both(f"/app/service-accounts/{account}/limit", service_accounts, "limit_service_account", *both)
    [[limits]] = service.sql("SELECT limits FROM service_accounts WHERE id = $1", account)
    assert json.loads(limits) == {"GBP": {"largest_order_minor": 10_00, "daily_minor": 20_00}}


def test_a_key_keeps_the_networks_that_somebody_else_set_meanwhile(
    service: Service, ada: Browser, save_both: Callable[..., None]
) -> None:
    [[key]] = service.sql("SELECT id FROM api_keys WHERE key = 'hr'")
    path = f"/app/keys/{key}"
    old = window(ada, path)
    scopes = old["scope"].split()
    assert len(scopes) > 1
    narrow = old | {"scope": scopes, "networks": "10.0.0.0/8"}
    save_both(f"{path}/narrow", api_keys, "narrow_key", old | {"scope": scopes[:1]}, narrow)
    [row] = service.sql("SELECT scopes, networks FROM api_keys WHERE id = $1", key)
    assert (row["scopes"], [str(one) for one in row["networks"]]) == (scopes[:1], ["10.0.0.0/8"])
    ada.get(path)
    refused = ada.post(f"{path}/narrow", **{**old, "scope": scopes, "networks": "192.0.2.1"})
    assert refused.status_code == 422
    assert "It is now: 10.0.0.0/8" in refused.text
    assert "192.0.2.1" in refused.text


def test_a_role_that_somebody_else_changed_meanwhile_stays(
    service: Service, ada: Browser, save_both: Callable[..., None]
) -> None:
    [[mia]] = service.sql("SELECT id FROM users WHERE email = 'mia@acme.example'")
    path, role = f"/app/people/{mia}/role", "SELECT role FROM users WHERE email = 'mia@acme.example'"
    try:
        save_both(
            path, members, "set_role", {"role": "admin", "was_role": "member"}, {"role": "viewer", "was_role": "member"}
        )
        assert service.sql(role) == [("viewer",)]
        assert 'name="was_role" value="viewer"' in ada.get("/app/people").text
        assert ada.post(path, role="admin", was_role="member").status_code == 303
        ada.get("/app/people")
        ada.says("It is now: Viewer")
        assert service.sql(role) == [("viewer",)]
        assert ada.post(path, role="finance", was_role="viewer").status_code == 303
        assert service.sql(role) == [("finance",)]
    finally:
        service.sql("UPDATE users SET role = 'member' WHERE email = 'mia@acme.example'")


def test_an_account_keeps_its_name_and_watch_of_meanwhile(
    service: Service, ada: Browser, save_both: Callable[..., None]
) -> None:
    account, people = service.ids["funding_accounts"]["gbp"], service.sql("SELECT id FROM users WHERE role = 'admin'")
    path = f"/app/funding/{account}"
    old = was(ada, f"{path}/account")
    [[own]] = service.sql("SELECT id FROM users WHERE email = 'ada@acme.example'")
    assert people
    watch = {"was_below": "", "was_who": "", "below": "10", "who": [str(own)]}
    assert ada.post(f"{path}/watch", **watch).status_code == 303
    window_of = {"was_below": "10.00", "was_who": str(own), "below": "10.00", "who": [str(own)]}
    save_both(f"{path}/watch", accounts, "watch_balance", window_of, window_of | {"below": "20"})
    assert was(ada, f"{path}/account")["was_below"] == "20.00"
    ada.get(f"{path}/account")
    assert ada.post(f"{path}/watch", **{**window_of, "below": "30"}).status_code == 422
    assert ada.post(f"{path}/name", was_name=old["was_name"], name="New float").status_code == 303
    ada.get(f"{path}/account")
    conflicting = ada.post(f"{path}/name", was_name=old["was_name"], name="Other float")
    assert "It is now: New float" in conflicting.text
    ada.get(f"{path}/account")
    assert ada.post(f"{path}/name", was_name="New float", name=old["was_name"]).status_code == 303


def test_groups_and_fields_keep_a_name_of_meanwhile(service: Service, ada: Browser) -> None:
    for kind in ("groups", "fields"):
        ada.submit(f"/app/contacts/{kind}", name=f"First of {kind}")
        path = re.findall(rf'href="(/app/contacts/{kind}/[^"]+)"[^\n]*First of', ada.get(f"/app/contacts/{kind}").text)[
            0
        ]
        old = window(ada, path)
        save(ada, path, old, name=f"Second of {kind}")
        conflict(ada, path, old, f"Second of {kind}", name="Third")
        assert window(ada, path)["name"] == f"Second of {kind}"


def test_what_has_ended_says_so_to_who_changes_it_second(service: Service, ada: Browser) -> None:
    set_campaign(ada, service)
    [[campaign]] = service.sql("SELECT id FROM campaigns WHERE ended_at IS NULL ORDER BY id DESC LIMIT 1")
    automation = str(set_one(ada, service, name="Ends soon").headers["location"])
    for here in (f"/app/campaigns/{campaign}", automation):
        old = window(ada, f"{here}/edit")
        assert ada.submit(f"{here}/end").status_code == 303
        ada.get(here)
        for act, fields in (("end", {}), ("pause", {}), ("resume", {}), ("edit", old)):
            assert ada.post(f"{here}/{act}", **fields).headers["location"] == here
            ada.get(here)
            ada.says("This has ended already. Nothing was changed.")
    ada.get("/app/campaigns")
    gone = ada.post("/app/campaigns/999999/end")
    assert gone.status_code == 404
    assert "This does not exist any more" in gone.text
