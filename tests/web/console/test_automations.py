"""Automations in the web application: setting them, their next days, approval, pauses and skips."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from tests.automations.conftest import add_contact
from tests.web.api.conftest import Service
from tests.web.console.approving import mails
from tests.web.console.conftest import Browser, SignIn
from tests.web.console.sending import WORLD

from largesse.base.i18n.languages import LANGUAGES

__all__ = ["WORLD"]


@pytest.fixture(autouse=True)
def as_before(service: Service) -> Iterator[None]:
    yield
    for table in ("automation_runs", "automations", "contacts", "people_mails"):
        service.sql(f"DELETE FROM {table}")
    service.sql("UPDATE users SET role = 'member', is_active = true WHERE name = 'Cem'")


def set_one(browser: Browser, service: Service, path: str = "new", **changes: Any) -> httpx.Response:
    form = {
        "name": "Birthdays",
        "occasion": "birthday",
        "template": str(service.ids["templates"]["welcome"]),
        "account": str(service.ids["funding_accounts"]["gbp"]),
        "group": "",
        "years": "",
        "days": "",
        "cap": "",
        "weekend": "keep",
        "leap_day": "before",
        "zone": "Europe/London",
    }
    return browser.submit(f"/app/automations/{path}", **{**form, **changes})


def in_days(days: int) -> int:
    day = (datetime.now(UTC) + timedelta(days=days)).date()
    return day.month * 100 + day.day


def approve(approver: Browser, path: str) -> None:
    """Approves the automation as its page shows it."""
    approver.get(path)
    seen = re.findall(r'name="seen" value="(\w+)"', main_of(approver))[0]
    assert approver.post(f"{path}/approve", seen=seen).status_code == 303


def main_of(browser: Browser) -> str:
    return browser.page.text.partition("<main")[2]


def test_somebody_sets_an_automation_and_sees_its_next_days(service: Service, sign_in: SignIn) -> None:
    add_contact(service, "Zoe", birthday=in_days(10))
    add_contact(service, "Far", birthday=in_days(90))
    ada = sign_in("ada@acme.example")
    assert "Set an automation" in ada.read("/app/automations")
    set_ = set_one(ada, service)
    assert set_.status_code == 303
    path = str(set_.headers["location"])
    assert "Zoe" in ada.read(path)
    assert "Far" not in ada.text
    assert "Sends as Ada" in ada.text
    ada.sees("/app/automations", "Birthdays", "Running")
    day = (datetime.now(UTC) + timedelta(days=10)).date()
    assert re.findall(r'data-label="Next gift">([^<]+)<', main_of(ada)) == [LANGUAGES["en"].short_day(day)]
    assert "Ada set the automation Birthdays" in ada.read("/app/audit")


def test_a_day_whose_hour_was_over_when_the_automation_was_set_is_not_announced(
    service: Service, sign_in: SignIn
) -> None:
    add_contact(service, "Late", birthday=in_days(0), country=None)  # so that the automation's zone counts
    ada = sign_in("ada@acme.example")
    # There nine o'clock of each day is over before the day begins in UTC.
    path = str(set_one(ada, service, zone="Pacific/Kiritimati").headers["location"])
    assert "Late" not in ada.read(path)
    ada.get("/app/automations")
    assert re.findall(r'data-label="Next gift">([^<]+)<', main_of(ada)) == ["\u2013"]


def test_a_day_is_skipped_and_taken_back(service: Service, sign_in: SignIn) -> None:
    add_contact(service, "Zoe", birthday=in_days(10))
    ada = sign_in("ada@acme.example")
    path = str(set_one(ada, service).headers["location"])
    ada.get(path)
    contact, day = (re.findall(rf'name="{name}" value="([^"]+)"', main_of(ada))[0] for name in ("contact", "day"))
    assert ada.post(f"{path}/skip", contact=contact, day=day, skipped="yes").status_code == 303
    assert "By somebody in your company." in ada.read(path)
    for said in ("It is sent after all.", "Nothing was changed, as the state of the gift changed"):  # of two tabs
        assert ada.post(f"{path}/skip", contact=contact, day=day).status_code == 303
        assert said in ada.read(path)
        assert "By somebody in your company." not in ada.text
    for fields in ({"contact": contact, "day": "2030-02-30"}, {"contact": "999", "day": day}, {"contact": "x"}):
        assert ada.submit(path, f"{path}/skip", skipped="yes", **fields).status_code == 404


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 61}, "name"),
        ({"occasion": "wedding"}, "occasion"),
        ({"template": "999"}, "template"),
        ({"group": "999"}, "group"),
        ({"account": "999"}, "account"),
        ({"account": ""}, "account"),
        ({"occasion": "joined", "days": "3"}, "group"),
        ({"occasion": "joined", "days": ""}, "days"),
        ({"occasion": "joined", "days": "3651"}, "days"),
        ({"occasion": "anniversary", "years": "one"}, "years"),
        ({"occasion": "anniversary", "years": "0"}, "years"),
        ({"occasion": "anniversary", "years": "61"}, "years"),
        ({"cap": "0"}, "cap"),
        ({"cap": "100001"}, "cap"),
        ({"weekend": "never"}, "weekend"),
        ({"zone": "Mars/Olympus"}, "zone"),
    ],
)
def test_what_is_wrong_is_said_beside_its_field(
    service: Service, sign_in: SignIn, changes: dict[str, str], wrong: str
) -> None:
    refused = set_one(sign_in("ada@acme.example"), service, **changes)
    assert refused.status_code == 422
    assert wrong in re.findall(r'class="error" id="(\w+)-error"', refused.text)
    assert service.sql("SELECT count(*) FROM automations")[0][0] == 0


@pytest.fixture
def changed(service: Service) -> Iterator[Callable[..., None]]:
    """`changed("value_minor = 700")`: the template as it was changed since, until the test is over."""
    [before] = service.sql("SELECT value_minor, message FROM templates WHERE name = 'Welcome'")
    yield lambda change: service.sql(f"UPDATE templates SET {change} WHERE name = 'Welcome'")
    service.sql("UPDATE templates SET value_minor = $1, message = $2 WHERE name = 'Welcome'", *before)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("value_minor = 700", "The gift of this template is gone, or has another price now."),
        ("message = 'Dear {firstname} {nope}'", "placeholders that do not exist: {firstname}, {nope}."),
    ],
)
def test_a_template_that_cannot_be_sent_is_refused_and_nothing_is_lost(
    service: Service, ada: Browser, changed: Callable[[str], None], change: str, said: str
) -> None:
    path = set_one(ada, service).headers["location"].rpartition("/")[2]
    changed(change)
    assert "Welcome (£" in ada.get("/app/automations/new").text
    for page in ("new", f"{path}/edit"):
        refused = set_one(ada, service, page, name="Other days", cap="7")
        assert refused.status_code == 422
        (error,) = re.findall(r'id="template-error">([^<]*)', refused.text)
        assert said in error
        assert 'value="Other days"' in refused.text
        assert 'value="7"' in refused.text
    assert service.sql("SELECT name FROM automations") == [("Birthdays",)]


def test_an_account_of_another_currency_is_refused(service: Service, sign_in: SignIn) -> None:
    add = "INSERT INTO accounts (customer_id, environment, kind, key, name, currency) VALUES (1, 'production', 'funding', 'eur', 'Euros', 'EUR') RETURNING id"
    refused = set_one(sign_in("ada@acme.example"), service, account=str(service.sql(add)[0][0]))
    service.sql("UPDATE accounts SET closed_at = clock_now() WHERE key = 'eur'")
    assert refused.status_code == 422
    assert 'id="account-error">The gift costs GBP. Choose an account in that currency.' in refused.text


def test_a_template_that_the_first_account_can_pay_is_offered_first(service: Service, sign_in: SignIn) -> None:
    service.sql(
        """
        INSERT INTO templates (customer_id, key, of_people, created_at, name, product_id, gift_name, value_minor, currency, country)
        SELECT customer_id, 'yen', of_people, created_at, 'A yen gift', product_id, gift_name, 1000, 'JPY', 'JP' FROM templates
        WHERE key = 'welcome'
        """
    )
    page = sign_in("ada@acme.example").get("/app/automations/new").text
    service.sql("DELETE FROM templates WHERE key = 'yen'")
    assert page.index("Welcome (£10.00)") < page.index("A yen gift")


def test_edges_that_are_right(service: Service, ada: Browser) -> None:
    for number, changes in enumerate(
        (
            {"name": "x" * 60, "cap": "1"},
            {"cap": "100000", "occasion": "anniversary", "years": "1, 5;60"},
            {"occasion": "first_day", "years": "one", "days": "4"},
        )
    ):
        changes.setdefault("name", f"Number {number}")
        assert set_one(ada, service, **changes).status_code == 303
    rows = service.sql("SELECT years, days FROM automations ORDER BY id")
    assert [(list(row["years"]), row["days"]) for row in rows] == [([], None), ([1, 5, 60], None), ([], None)]
    assert set_one(ada, service, name="NUMBER 1").status_code == 422


@pytest.mark.parametrize("typed", ["1000", "1,000", "1.000", "1 000", "1\u202f000", "1\xa0000", "1'000", "1\u2019000"])
def test_a_number_may_have_the_separators_of_a_language(service: Service, sign_in: SignIn, typed: str) -> None:
    assert set_one(sign_in("ada@acme.example"), service, cap=typed).status_code == 303
    assert service.sql("SELECT cap FROM automations")[0][0] == 1000


@pytest.mark.parametrize("typed", ["1,00", "0.500", "1.000,5", "1,000.000", "1.", "1,,000", "1 000,"])
def test_other_numbers_are_refused(service: Service, sign_in: SignIn, typed: str) -> None:
    answer = set_one(sign_in("ada@acme.example"), service, cap=typed)
    assert answer.status_code == 422
    assert "Type a whole number from 1 to 100,000, or leave it empty." in answer.text


def test_another_administrator_approves(service: Service, ada: Browser, cem: Browser) -> None:
    path = str(set_one(cem, service, asks_approval="yes").headers["location"])
    assert set_one(cem, service, path.removeprefix("/app/automations/") + "/edit", asks_approval="yes").is_redirect
    assert mails(service) == [("automation_asked", "Ada")], "one that waits is enough"
    assert "Nothing is sent until another administrator approves it." in cem.read(path)
    assert "Approve the automation" not in main_of(cem)
    cem.post(f"{path}/approve")
    assert service.sql("SELECT approved_by FROM automations")[0][0] is None
    assert "automation waits" not in cem.get("/app").text
    assert "1 automation waits for your approval" in ada.read("/app")
    assert "Automations waiting for you Birthdays Cem Decide" in ada.read("/app/approvals")
    assert f'href="{path}"' in main_of(ada)
    assert "appear here" not in ada.text
    assert path in ada.links
    approve(ada, path)
    assert "Running" in ada.read(path)
    service.sql("UPDATE users SET role = 'admin' WHERE name = 'Cem'")
    assert (
        set_one(ada, service, path.removeprefix("/app/automations/") + "/edit", asks_approval="yes").status_code == 303
    )
    ada.sees(path, "Needs approval", "Sends as Ada")
    assert "Approve the automation" not in main_of(ada)
    assert "automation waits" not in ada.get("/app").text, "nobody approves their own"


def test_an_approval_ends_when_the_template_sends_something_else(service: Service, ada: Browser, cem: Browser) -> None:
    coffee = {"product": str(service.ids["products"]["coffee"]), "country": "GB", "wrapping_key": "stars"}
    ada.get(f"/app/templates/new?product={coffee['product']}&country=GB")
    template = str(ada.post("/app/templates", **coffee, value="5", name="Coffee").headers["location"])
    path = str(set_one(cem, service, asks_approval="yes", template=template.rpartition("/")[2]).headers["location"])
    approve(ada, path)
    assert "Coffee House e-gift, £5.00" in ada.read(path)
    service.sql("DELETE FROM people_mails")
    assert cem.submit(template, **coffee, value="5", name="Tea").status_code == 303
    assert "Running" in ada.read(path)
    cem.submit("/app", "/app/environment", environment="staging")
    assert cem.submit(template, **coffee, value="25", name="Tea").status_code == 303
    assert "Needs approval" in ada.read(path)
    assert mails(service) == [("automation_asked", "Ada")]


def test_what_changed_after_the_page_was_opened_is_not_approved(service: Service, ada: Browser, cem: Browser) -> None:
    path = str(set_one(cem, service, asks_approval="yes").headers["location"])
    ada.get(path)
    seen = re.findall(r'name="seen" value="(\w+)"', main_of(ada))[0]
    changed = f"{path.rpartition('/')[2]}/edit"
    assert set_one(cem, service, changed, asks_approval="yes", occasion="first_day").status_code == 303
    assert ada.post(f"{path}/approve", seen=seen).headers["location"] == path
    ada.sees(path, "changed after you opened its page", "Needs approval")
    approve(ada, path)
    assert "Running" in ada.read(path)


def test_it_is_paused_resumed_and_ended(service: Service, ada: Browser) -> None:
    path = str(set_one(ada, service).headers["location"])
    for act, said in (("pause", "Paused"), ("resume", "Running")):
        assert ada.submit(path, f"{path}/{act}").status_code == 303
        assert said in ada.read(path)
    assert ada.submit(f"{path}/end").status_code == 303
    ada.get("/app/automations")  # with the notice that it has ended
    ada.get("/app/automations")
    assert "Birthdays" not in main_of(ada)
    assert "Ended" in ada.read(path)
    assert "The next 60 days" not in ada.text


def test_what_waited_for_an_approval_is_sent_when_it_comes_and_what_did_not_get_it_says_so(
    service: Service, ada: Browser, sign_in: SignIn
) -> None:
    path = str(set_one(sign_in("cem@acme.example"), service, asks_approval="yes").headers["location"])
    today = datetime.now(UTC).date()
    for name, state in (("Zoe", "waiting"), ("Yan", "failed")):
        contact = add_contact(service, name, birthday=in_days(0))
        service.sql(
            """
            INSERT INTO automation_runs (customer_id, environment, automation_id, contact_id, on_day, send_on, due_at, look_at, state, reason, ended_at)
            VALUES (1, 'production', $1, $2, $3, $3, clock_now(), clock_now() + interval '1 hour', $4, 'not_approved',
                    CASE $4 WHEN 'failed' THEN clock_now() END)
            """,
            int(path.rpartition("/")[2]), contact, today, state,
        )  # fmt: skip
    ada.sees(path, "Failed Nobody approved the automation in time.", "Not sent yet It waits for approval.")
    approve(ada, path)
    assert "waits for approval" not in ada.read(path)
    due = service.sql("SELECT look_at <= clock_now() AS is_due FROM automation_runs WHERE state = 'waiting'")
    assert [row["is_due"] for row in due] == [True]


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("balance", "The account's balance was too low."),
        ("budget:GBP:120000:Birth: days", "The budget Birth: days had £1,200.00 left."),
        ("per_gift:GBP:500:Small", "The budget Small allows at most £5.00 for a gift."),
        (
            "approval:Above £500, Spas",
            "The approval rule Above £500, Spas asks for an approval that the automation does not have.",
        ),
        ("The product is gone.", "The product is gone."),
        (
            "`template_id` names a template whose gift is no longer available.",
            "The gift of this template is gone, or has another price now. Save the template again, or choose another.",
        ),
        (
            "`account_id` names no funding account that this key can draw from.",
            "The account cannot pay for this gift. Choose another account.",
        ),
    ],
)
def test_a_refused_gift_needs_attention_and_says_why_and_until_when_it_is_tried(
    service: Service, ada: Browser, sign_in: SignIn, reason: str, said: str
) -> None:
    path = str(set_one(ada, service).headers["location"])
    today = datetime.now(UTC).date()
    add = """
        INSERT INTO automation_runs (customer_id, environment, automation_id, contact_id, on_day, send_on, due_at, look_at, reason)
        VALUES (1, 'production', $1, $2, $3, $3, clock_now(), clock_now() + interval '1 hour', $4)
    """
    for name, why in (("Zoe", reason), ("Yan", "not_approved"), ("Xia", None)):
        contact = add_contact(service, name, birthday=in_days(0))
        service.sql(add, int(path.rpartition("/")[2]), contact, today, why)
    assert "1 gift of an automation was refused Each is tried again every hour." in ada.read("/app")
    assert f'href="{path}#past-heading"' in main_of(ada)
    assert f"Not sent yet {said} It is tried again until " in ada.read(path)
    fin = sign_in("fin@acme.example")
    assert "was refused" not in fin.get("/app").text
    service.sql(
        "UPDATE automation_runs SET state = 'failed', ended_at = clock_now() WHERE state = 'waiting' AND reason IS NOT NULL"
    )
    assert "2 gifts of automations were not sent The three days are over, and it is not tried again." in ada.read(
        "/app"
    )
    assert "not sent" not in fin.get("/app").text
    service.sql("UPDATE automation_runs SET send_on = send_on - 11")
    assert "not sent" not in ada.read("/app")


def test_a_group_that_was_deleted_is_not_taken_for_all_contacts(service: Service, ada: Browser) -> None:
    ada.submit("/app/contacts/groups", name="Sales")
    group = service.sql("SELECT id FROM contact_groups")[0][0]
    said = "The automation Birthdays needs it"
    pages = (f"/app/contacts/groups/{group}", "/app/templates/{welcome}/remove")
    assert not any(said in ada.read(page.format(**service.ids["templates"])) for page in pages)
    path = set_one(ada, service, group=str(group)).headers["location"]
    assert all(said in ada.read(page.format(**service.ids["templates"])) for page in pages)
    ada.submit(f"/app/contacts/groups/{group}", f"/app/contacts/groups/{group}/remove")
    ada.get(path)
    assert "A group that was deleted" in main_of(ada)
    ada.get(f"{path}/edit")
    assert f'<option value="{group}" selected>Not available</option>' in main_of(ada)
    refused = set_one(ada, service, f"{path.rpartition('/')[2]}/edit", group=str(group))
    assert refused.status_code == 422
    assert "Choose a group from the list." in refused.text
    assert f'<option value="{group}" selected>' in refused.text


def test_the_page_that_closes_an_account_names_what_pays_from_it(service: Service, ada: Browser) -> None:
    ada.submit("/app/funding/accounts/new", "/app/funding/accounts", name="Birthdays float", currency="GBP")
    set_one(ada, service, account=str(account := service.sql("SELECT max(id) FROM accounts")[0][0]))
    assert "The automation Birthdays pays from it" in ada.read(f"/app/funding/{account}/account")


def test_what_is_emptied_stays_empty_when_another_field_is_refused(service: Service, ada: Browser) -> None:
    path = set_one(ada, service, cap="3").headers["location"]
    refused = set_one(ada, service, f"{path.rpartition('/')[2]}/edit", cap="", name="")
    assert refused.status_code == 422
    assert re.search(r'name="cap"[^>]* value=""', refused.text)
