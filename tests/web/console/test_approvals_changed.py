"""Approvals of what changes: drafts, prices, people, rules and time. What was approved is what is sent."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.campaigns.conftest import work as work_on_campaigns
from tests.web.api.conftest import Service, on_database
from tests.web.console.approving import (
    WORLD,
    as_before,
    asked,
    decided,
    mails,
    orders_of,
    set_rule,
    set_user,
    state,
    user_id,
)
from tests.web.console.conftest import Browser, SignIn
from tests.web.console.sending import begin, place, ready
from tests.web.console.test_campaigns import set_one

from largesse.approvals.service import MOST_RULES, expire_requests
from largesse.drafts.store import MAX_DRAFTS

__all__ = ["WORLD", "as_before"]


def test_approvers_see_every_recipient(service: Service, ada: Browser, cem: Browser) -> None:
    set_rule(ada)
    rows = "email\n" + "".join(f"one{number}@example.com\n" for number in range(1, 13))
    shown = ada.read(f"/app/approvals/{asked(cem, service, rows=rows)}")
    assert "one10@example.com and 2 more one11@example.com one12@example.com" in shown


def test_a_changed_draft_asks_again(service: Service, ada: Browser, cem: Browser) -> None:
    set_rule(ada)
    reference = asked(cem, service)
    path = f"/app/send/{reference}"
    ada.get(f"/app/approvals/{reference}")
    token = ada.token
    cem.get(f"{path}/recipients")
    assert (
        cem.post(f"{path}/recipients", rows="email\na@example.com\nb@example.com\nc@example.com\n").status_code == 303
    )
    ada.post(f"/app/approvals/{reference}", token=token, round="1", decision="approve", note="")
    assert "This send changed after approval was requested." in ada.read(f"/app/approvals/{reference}")
    assert 'value="approve"' not in (ada.page.text if ada.page else "")
    assert (state(service, reference), orders_of(service, reference)) == ("waiting", [])
    assert "has changed since you asked for approval. Ask again." in cem.read(f"{path}/review")
    assert cem.post(f"{path}/ask").status_code == 303
    assert decided(ada, reference).status_code == 303
    assert [row["total_minor"] for row in orders_of(service, reference)] == [30_00]
    assert service.findings() == []


def test_a_deleted_send_waits_for_nobody(service: Service, ada: Browser, cem: Browser) -> None:
    set_rule(ada)
    reference = asked(cem, service)
    assert "1 send waits for your approval" in ada.read("/app")
    ada.get(f"/app/approvals/{reference}")
    token = ada.token
    assert cem.submit(f"/app/send/{reference}/review", f"/app/send/{reference}/drop").status_code == 303
    assert state(service, reference) == "withdrawn"
    assert "waits for your approval" not in ada.read("/app")
    for browser in (ada, cem):
        assert "This send was deleted. Nothing is sent or charged." in browser.read(f"/app/approvals/{reference}")
        assert "Open the send" not in browser.text  # it is not there
    ada.post(f"/app/approvals/{reference}", token=token, round="1", decision="approve", note="")
    assert (state(service, reference), orders_of(service, reference)) == ("withdrawn", [])
    assert service.findings() == []


@pytest.mark.parametrize("ends", ["early", "with its last day"])
def test_a_campaign_that_ends_waits_for_nobody(service: Service, ada: Browser, cem: Browser, ends: str) -> None:
    set_rule(ada)
    review = str(set_one(cem, service).headers["location"])
    cem.get(review)
    assert cem.post(review.replace("/review", "/ask")).status_code == 303
    reference = review.split("/")[-2]
    assert state(service, reference) == "waiting"
    [number] = service.sql("SELECT id FROM campaigns WHERE order_reference = $1", reference)[0]
    if ends == "early":
        assert cem.submit(f"/app/campaigns/{number}/end").status_code == 303
    else:
        service.sql("UPDATE campaigns SET due_at = clock_now(), closes_at = clock_now() WHERE id = $1", number)
        work_on_campaigns(service)
    assert state(service, reference) == "withdrawn"
    assert "This send was deleted." in cem.read(f"/app/approvals/{reference}")


@pytest.mark.slow
def test_a_draft_that_is_changed_after_approval_is_not_sent_under_it(
    service: Service, ada: Browser, cem: Browser
) -> None:
    """The account is empty when it is approved; then the person makes more of it."""
    set_rule(ada)
    reference = asked(cem, service, account="small")
    path = f"/app/send/{reference}"
    spent = ready(ada, service, account="small", rows="email\nlast@example.com\n", value="25")
    ada.get(f"{spent}/review")
    service.sql("UPDATE approval_rules SET role = 'member'")
    place(ada, spent)
    decided(ada, reference)
    ada.sees(f"/app/approvals/{reference}", "Approved, but the order was not placed: the account's balance is too low.")
    assert (state(service, reference), orders_of(service, reference)) == ("approved", [])
    assert "Approved, but the order was not placed. The sender sees why" in ada.read(f"/app/approvals/{reference}")
    assert "Open the send to see why." in cem.read(f"/app/approvals/{reference}")
    for reader in (ada, cem):
        assert "Cem Approved, but not sent £" in reader.read("/app/approvals")
    assert "too low" in cem.read(f"{path}/review")
    assert "is approved, but not sent" in cem.read("/app")
    cem.get(f"{path}/delivery")
    gbp = str(service.ids["funding_accounts"]["gbp"])
    assert cem.post(f"{path}/delivery", when="now", account=gbp, reference="").status_code == 303
    assert "Ask again" in cem.read(f"{path}/review")
    old_quote = service.sql("SELECT quote FROM approval_requests WHERE id = $1", reference)[0]["quote"]
    for quote in (old_quote, ""):
        refused = cem.post(f"{path}/place", quote=quote)
        assert refused.status_code == 409
    assert orders_of(service, reference) == []
    small = str(service.ids["funding_accounts"]["small"])
    cem.submit(f"{path}/delivery", when="now", account=small, reference="")
    assert "too low" in cem.read(f"{path}/review")
    assert service.findings() == []


@pytest.mark.slow
def test_what_is_approved_and_could_not_be_sent_is_sent_by_its_person(
    service: Service, ada: Browser, cem: Browser
) -> None:
    set_rule(ada)
    reference = asked(cem, service)
    set_user(service, "cem", "is_active = false")
    assert decided(ada, reference).status_code == 303
    set_user(service, "cem", "is_active = true")
    for _ in range(MAX_DRAFTS):  # so many newer drafts do not replace it
        begin(cem, service)
    path = f"/app/send/{reference}"
    place(cem, path)
    assert len(orders_of(service, reference)) == 1
    assert service.findings() == []


def test_a_price_that_changed_meanwhile_asks_again(service: Service, ada: Browser, cem: Browser) -> None:
    set_rule(ada)
    reference = asked(cem, service, gift="hamper", value="")
    path = f"/app/approvals/{reference}"
    ada.get(path)
    seen_before = ada.token
    service.sql("UPDATE products SET cost_minor = cost_minor + 100 WHERE key = 'hamper'")
    try:
        ada.post(path, token=seen_before, round="1", decision="approve", note="")  # from the page with the old price
        assert "Not approved: the price changed after approval was requested." in ada.read(path)
        assert (state(service, reference), orders_of(service, reference)) == ("waiting", [])
        assert re.search(r"The price changed after approval was requested: from £[\d.]+ to £[\d.]+\.", ada.read(path))
        assert re.findall('name="decision" value="([^"]+)"', ada.page.text) == ["again", "decline"]
        assert "The send or its price has changed" in cem.read(f"/app/send/{reference}/review")
        assert decided(ada, reference, "again").status_code == 303
        assert "The price changed. Request approval again" in cem.read(path)
        cem.sees(f"/app/send/{reference}/review", "This send was declined.")
        assert cem.post(f"/app/send/{reference}/ask").status_code == 303
        assert "The price changed" not in ada.read(path)
        assert decided(ada, reference).status_code == 303
        assert len(orders_of(service, reference)) == 1
    finally:
        service.sql("UPDATE products SET cost_minor = cost_minor - 100 WHERE key = 'hamper'")


@pytest.mark.slow
def test_a_person_who_may_not_send_any_more_sends_nothing(service: Service, ada: Browser, sign_in: SignIn) -> None:
    set_rule(ada)
    for change in ("role = 'viewer'", "is_active = false"):
        reference = asked(sign_in("cem@acme.example"), service)
        set_user(service, "cem", change)
        assert "Cem may not send any more." in ada.read(f"/app/approvals/{reference}")
        assert 'value="approve"' not in ada.page.text
        decided(ada, reference)
        assert "the sender may not send any more" in ada.read(f"/app/approvals/{reference}")
        assert orders_of(service, reference) == []
        set_user(service, "cem", "role = 'member', is_active = true")


def test_a_scheduled_send_waits_until_its_time_at_most(
    service: Service, ada: Browser, cem: Browser, sign_in: SignIn
) -> None:
    set_rule(ada)
    path = ready(cem, service)
    at = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(hours=20)
    account = str(service.ids["funding_accounts"]["gbp"])
    typed = {"when": "later", "at": f"{at:%Y-%m-%dT%H:%M}", "account": account, "reference": ""}
    assert cem.submit(f"{path}/delivery", **typed).status_code == 303
    assert cem.submit(f"{path}/review", f"{path}/ask").status_code == 303
    reference = path.rpartition("/")[2]
    assert f"Waits until {at.day} {at:%b %Y, %H:%M}" in cem.read(f"/app/approvals/{reference}")
    service.sql("UPDATE clock SET ahead_by = '20 hours 1 minute'")
    assert decided(sign_in("bea@acme.example"), reference).status_code == 303
    assert (state(service, reference), orders_of(service, reference)) == ("waiting", [])
    assert on_database(service.database_url, _expire) == 1
    assert ("approval_ended", "Cem") in mails(service)


async def _expire(connection: Any) -> int:
    async with connection.transaction():
        return await expire_requests(connection)


@pytest.mark.slow
def test_nobody_decides_after_it_expired(service: Service, ada: Browser, cem: Browser) -> None:
    set_rule(ada, days="7")
    set_rule(ada, days="3", name="Above nine", above="9")
    reference = asked(cem, service)
    assert service.sql("SELECT expires_at - asked_at FROM approval_requests")[0][0] == timedelta(days=3)
    ada.get(f"/app/approvals/{reference}")
    token = ada.token
    service.sql("UPDATE approval_requests SET expires_at = now() - interval '1 second' WHERE id = $1", reference)
    assert (
        ada.post(f"/app/approvals/{reference}", token=token, round="1", decision="approve", note="").status_code == 303
    )
    assert orders_of(service, reference) == []

    assert [on_database(service.database_url, _expire) for _ in range(2)] == [1, 0]
    assert state(service, reference) == "expired"
    assert ("approval_ended", "Cem") in mails(service)
    assert "This send needs approval" in cem.read(f"/app/send/{reference}/review")


@pytest.mark.slow
def test_beyond_a_budget_others_may_approve(service: Service, sign_in: SignIn) -> None:
    service.sql("UPDATE clock SET ahead_by = '2050-05-10 12:00Z' - now()")
    ada, cem = sign_in("ada@acme.example"), sign_in("cem@acme.example")
    ada.get("/app/budgets")
    of = f"person-{user_id(service, 'cem')}"
    ada.post("/app/budgets", name="Own", of=of, currency="GBP", period="month", limit="15", per_gift="")
    path = ready(cem, service)
    assert "The budget Own has £15.00 left." in cem.read(f"{path}/review")
    set_rule(ada, name="Beyond", above="", beyond_budget="yes")
    small = ready(cem, service, rows="email\none@example.com\n")
    assert "needs approval" not in cem.read(f"{small}/review")
    assert "Over the budget Own £5.00" in cem.read(f"{ready(cem, service)}/review")
    reference = asked(cem, service)
    for page in (cem.text, ada.read(f"/app/approvals/{reference}")):
        assert "This send exceeds the budget Own by £5.00." in page
    assert decided(ada, reference).status_code == 303
    assert len(orders_of(service, reference)) == 1
    assert service.sql("SELECT spent_minor FROM budget_periods")[0][0] == 20_00
    assert service.findings() == []


@pytest.mark.slow
def test_rules_hold_for_accounts_gifts_and_roles(service: Service, ada: Browser, cem: Browser) -> None:
    set_rule(ada, name="Small", above="", account=[str(service.ids["funding_accounts"]["small"])])
    set_rule(ada, name="Books", above="", product=[str(service.ids["products"]["books"])])
    set_rule(ada, name="Admins", above="", role="admin")

    def needed(sender: Browser, **gift: Any) -> str:
        path = ready(sender, service, **gift)
        sender.get(f"{path}/review")
        found = re.search(r"This send needs approval: ([^.]*)\.", sender.text)
        return found[1] if found else ""

    assert needed(cem) == ""
    assert needed(cem, account="small", rows="email\none@example.com\n", value="5") == "Small"
    assert needed(cem, gift="books") == "Books"
    assert needed(ada) == "Admins"
    assert needed(ada, gift="books") == "Admins, Books"
    assert "paid from Small pot" in ada.read("/app/approvals/rules")
    rule = service.sql("SELECT id FROM approval_rules WHERE name = 'Admins'")[0]["id"]
    assert ada.post(f"/app/approvals/rules/{rule}/end").status_code == 303
    assert needed(ada) == ""
    assert needed(ada, gift="books") == "Books", "the other rules stay"
    cem.get("/app/approvals")
    assert cem.get("/app/approvals/rules").status_code == 403
    assert cem.post(f"/app/approvals/rules/{rule}/end", token="x").status_code == 403


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 61}, "name"),
        ({"role": "viewer"}, "role"),
        ({"currency": "XXX"}, "currency"),
        ({"above": "much"}, "above"),
        ({"needed": "3"}, "needed"),
        ({"days": "0"}, "days"),
        ({"days": "11"}, "days"),
        ({"days": "soon"}, "days"),
        ({"approver": "999999"}, "approver"),
        ({"account": "999999"}, "account"),
        ({"product": "999999"}, "product"),
        ({"collection": "999999"}, "collection"),
        ({"needed": "2", "approver": "1"}, "approver"),
    ],
)
def test_what_is_wrong_with_a_rule_is_said_beside_its_field(
    service: Service, sign_in: SignIn, fields: dict[str, str], wrong: str
) -> None:
    refused = set_rule(sign_in("ada@acme.example"), **fields)
    assert refused.status_code == 422
    assert re.findall(r'class="error" id="(\w+)-error"', refused.text) == [wrong]
    assert service.sql("SELECT count(*) FROM approval_rules")[0][0] == 0


def test_a_name_is_used_once_and_there_are_at_most_fifty_rules(service: Service, ada: Browser) -> None:
    """Ended rules and those of the other environment leave room."""
    for environment, ended_at, count in (
        ("production", None, MOST_RULES - 1),
        ("production", "now()", MOST_RULES),
        ("staging", None, MOST_RULES),
    ):
        service.sql(
            f"""
            INSERT INTO approval_rules (customer_id, environment, name, beyond_budget, account_ids, product_ids, collection_ids,
                approver_ids, needed, expires_days, ended_at)
            SELECT c.id, $1, $1 || number, false, '{{}}', '{{}}', '{{}}', '{{}}', 1, 7, {ended_at or "NULL"}
            FROM customers c, generate_series(1, $2) AS number WHERE c.key = 'acme'
            """,
            environment,
            count,
        )
    assert "Another rule has this name." in set_rule(ada, name="PRODUCTION1").text
    assert set_rule(ada, name="staging1").status_code == 303
    refused = set_rule(ada, name="One more")
    assert refused.status_code == 422
    assert "Your company has 50 rules. End one first." in refused.text


def test_where_nobody_else_may_approve_it_is_said(service: Service, ada: Browser) -> None:
    set_rule(ada, approver=[str(user_id(service, "ada"))])
    path = ready(ada, service)
    refused = ada.submit(f"{path}/review", f"{path}/ask")
    assert refused.status_code == 409
    assert "Not enough people may approve it" in refused.text


@pytest.mark.slow
def test_a_decline_says_why(service: Service, ada: Browser, cem: Browser) -> None:
    set_rule(ada)
    reference = asked(cem, service)
    decided(ada, reference, "decline", "Too many")
    cem.sees(f"/app/approvals/{reference}", "Ada declined", "Too many")
    assert "This send was declined." in cem.read(f"/app/send/{reference}/review")
    assert cem.post(f"/app/send/{reference}/ask").status_code == 303
    assert cem.submit(f"/app/approvals/{reference}", f"/app/approvals/{reference}/withdraw").status_code == 303
    assert state(service, reference) == "withdrawn"
    assert decided(ada, reference).status_code == 303
    assert orders_of(service, reference) == []


@pytest.mark.slow
def test_a_default_claim_by_date_is_that_of_when_it_was_asked_for(service: Service, sign_in: SignIn) -> None:
    """The default counts days from now: what is approved days later is what was quoted all the same."""
    service.sql("UPDATE customers SET follow_up = '{\"claim_by_days\": 30}' WHERE key = 'acme'")
    try:
        ada, cem = sign_in("ada@acme.example"), sign_in("cem@acme.example")
        set_rule(ada)
        reference = asked(cem, service)
        service.sql("UPDATE clock SET ahead_by = '2 days'")
        ada = sign_in("ada@acme.example")
        assert decided(ada, reference).status_code == 303
        assert len(orders_of(service, reference)) == 1
    finally:
        service.sql("UPDATE customers SET follow_up = NULL")


def test_a_reminder_that_is_too_late_once_it_is_approved_is_left_out(
    service: Service, ada: Browser, cem: Browser, sign_in: SignIn
) -> None:
    """It was before the claim-by date when approval was asked for. The order is placed as it was quoted."""
    set_rule(ada)
    path, today = ready(cem, service), datetime.now(UTC).date()
    fields = {"when": "now", "account": str(service.ids["funding_accounts"]["gbp"]), "reminder_days": "3, 9"}
    saved = cem.submit(f"{path}/delivery", **fields, claim_by=str(today + timedelta(days=10)), reference="")
    assert saved.status_code == 303
    assert "This send needs approval" in cem.read(f"{path}/review")
    assert cem.post(f"{path}/ask").status_code == 303
    service.sql("UPDATE clock SET ahead_by = '4 days'")
    reference = path.rpartition("/")[2]
    assert decided(sign_in("bea@acme.example"), reference).status_code == 303
    assert len(orders_of(service, reference)) == 1
    assert service.of_order(reference, "reminder_days", "follow_ups")[0][0] == [3, 9]


def test_nobody_approves_what_can_no_longer_be_claimed(service: Service, ada: Browser, cem: Browser) -> None:
    set_rule(ada)
    path, day = ready(cem, service), datetime.now(UTC).date() + timedelta(days=2)
    fields = {"when": "now", "account": str(service.ids["funding_accounts"]["gbp"]), "reference": ""}
    assert cem.submit(f"{path}/delivery", **fields, claim_by=str(day)).status_code == 303
    cem.read(f"{path}/review")
    assert cem.post(f"{path}/ask").status_code == 303
    expires_at = service.sql("SELECT expires_at FROM approval_requests WHERE id = $1", path.rpartition("/")[2])[0][0]
    assert expires_at.date() == day, "after that it cannot be placed"
