"""The limits of a customer, each in full: all its accounts at once, and a contact whose every text is as long as it may be."""

from __future__ import annotations

import re

import pytest
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser, acme_with, user_id

from largesse.contacts import model
from largesse.customers.members import MOST_PEOPLE
from largesse.ledger.accounts import LONGEST_NAME, MOST_ACCOUNTS, MOST_WATCHERS

WIDE = "\N{CJK UNIFIED IDEOGRAPH-6F22}"  # nine bytes in a form
ACCOUNTS = ", ".join(
    f"{{key: f{n}, name: {f'{n} '.ljust(LONGEST_NAME, WIDE)}, currency: JPY, service_accounts: []}}"
    for n in range(MOST_ACCOUNTS)
)
OTHERS = f"service_accounts: [{{key: bot, name: Bot}}], funding_accounts: [{ACCOUNTS}]"
WORLD = acme_with(ada="admin", cem="member").replace("]}", f"], {OTHERS}}}")


@pytest.mark.parametrize("holder", ["people", "service-accounts"])
def test_all_accounts_of_a_customer_are_assigned_at_once(service: Service, ada: Browser, holder: str) -> None:
    holder_id = user_id(service, "cem@acme.example") if holder == "people" else service.ids["service_accounts"]["bot"]
    page = f"/app/{holder}/{holder_id}"
    for chosen in (service.ids["funding_accounts"].values(), ()):
        done = ada.submit(page, f"{page}/accounts", may_use=list(map(str, chosen)))
        assert done.headers.get("location") == page, done.text
        assert ada.get(page).text.count(" checked") == len(chosen)
    ada.sees("/app/audit", f"{MOST_ACCOUNTS - 1} {WIDE}")


def test_too_many_watchers_are_refused_by_their_number(service: Service, ada: Browser) -> None:
    page = f"/app/funding/{service.ids['funding_accounts']['f0']}"
    many = list(map(str, range(MOST_PEOPLE)))
    ada.page = ada.submit(f"{page}/account", f"{page}/watch", below="5", who=many)
    assert ada.page.status_code == 422
    ada.says(f"At most {MOST_WATCHERS} people.")


def test_every_text_of_a_contact_is_as_long_as_it_may_be(ada: Browser) -> None:
    for number in range(model.MOST_FIELDS):
        ada.submit("/app/contacts/fields", name=f"{number}".ljust(model.MAX_FIELD_NAME, WIDE))
    ada.get("/app/contacts/new")
    fields = [part.partition('"')[0] for part in ada.page.text.split('name="field_')[1:]]
    assert len(fields) == model.MOST_FIELDS
    texts = {f"field_{key}": WIDE * model.MAX_FIELD for key in fields} | {
        "name": WIDE * model.MAX_NAME,
        "address": WIDE * model.MAX_ADDRESS,
        "external_id": WIDE * model.MAX_EXTERNAL_ID,
    }
    saved = ada.post("/app/contacts", email="cy@example.com", **texts)
    assert saved.status_code == 303, saved.text
    assert ada.get(saved.headers["location"]).text.count(WIDE) >= sum(map(len, texts.values()))
    texts |= {f"was_{name}": text for name, text in texts.items()}
    assert ada.post(saved.headers["location"], email="cy@example.com", **texts).status_code == 303


def test_as_many_new_groups_are_typed_as_a_contact_may_be_in(ada: Browser) -> None:
    names = [f"{number} ".ljust(model.MAX_GROUP, WIDE) for number in range(model.MOST_GROUPS_EACH + 1)]
    many = ada.submit("/app/contacts/new", "/app/contacts", email="many@example.com", groups=", ".join(names))
    assert f"A contact is in at most {model.MOST_GROUPS_EACH} groups." in many.text
    saved = ada.submit("/app/contacts/new", "/app/contacts", email="new@example.com", groups=", ".join(names[1:]))
    assert ada.get(saved.headers["location"]).text.count(" checked") == model.MOST_GROUPS_EACH


@pytest.mark.parametrize("day", ["0001-01-01", "1899-12-30", "9999-12-31"])
def test_a_start_date_that_a_program_saved_stays(service: Service, ada: Browser, day: str) -> None:
    saved = ada.submit("/app/contacts/new", "/app/contacts", email=f"d{day}@example.com")
    page = saved.headers["location"]
    service.sql("UPDATE contacts SET start_date = $1::text::date WHERE email = $2", day, f"d{day}@example.com")
    shown = re.findall(r'name="start_date"[^>]* value="([^"]*)"', ada.get(page).text)[0]
    changed = ada.post(page, email=f"d{day}@example.com", name="Dee", start_date=shown)
    assert changed.status_code == 303, changed.text
    found = service.sql("SELECT name, start_date::text AS day FROM contacts WHERE email = $1", f"d{day}@example.com")
    assert [tuple(row) for row in found] == [("Dee", day)]
