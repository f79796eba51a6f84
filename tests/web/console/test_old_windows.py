"""Forms that are saved in a window which was opened before somebody else saved them: both people's changes are kept."""

import html
import re
from datetime import timedelta
from typing import Any

from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser
from tests.web.console.gifts import WORLD, ada, gathered
from tests.web.console.test_automations import set_one
from tests.web.console.test_campaigns import set_one as set_campaign

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
    browser.says(f"Somebody else changed this meanwhile to: {said}")


def test_an_automation_keeps_what_somebody_else_changed_meanwhile(service: Service, ada: Browser) -> None:
    [group] = service.sql(
        "INSERT INTO contact_groups (customer_id, environment, name) "
        "SELECT id, 'production', 'New here' FROM customers WHERE key = 'acme' RETURNING id"
    )
    service.sql("UPDATE users SET role = 'admin' WHERE name = 'Mia'")  # who may approve it
    path = f"{set_one(ada, service).headers['location']}/edit"
    old = window(ada, path)
    save(ada, path, old, occasion="joined", group=str(group["id"]), days="0", asks_approval="yes")
    save(ada, path, old, name="Welcome", cap="50")
    [row] = service.sql("SELECT name, occasion, group_id, days, cap, asks_approval FROM automations")
    assert tuple(row) == ("Welcome", "joined", group["id"], 0, 50, True)
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
    assert (now["colour"], now["subject"], now["sender_name"], now["footer"]) == (
        "#ff0000",
        "",
        "Acme Gifts",
        "Acme\nLtd",
    )
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
    new = {
        "name": "Ada",
        "email": "ada@example.com",
        "groups": "Sales, Berlin",
        "address": "1 High St\nLondon",
        "country": "GB",
    }
    path = str(ada.submit("/app/contacts/new", "/app/contacts", **new).headers["location"])
    old = window(ada, path) | {"group": ["Sales", "Berlin"]}
    save(ada, path, old, email="byron@example.com", start_date="01/09/2019", group=["Sales"], groups="Paris")
    save(ada, path, old, name="Ada Byron", birthday="29/02", group=["Berlin"], groups="Rome")
    now = window(ada, path)
    assert (now["name"], now["email"], now["birthday"]) == ("Ada Byron", "byron@example.com", "29/02")
    assert (now["start_date"], now["address"]) == ("01/09/2019", "1 High St\nLondon")
    assert now["group"].split() == ["Paris", "Rome"]
    conflict(ada, path, old, "byron@example.com", email="king@example.com")
