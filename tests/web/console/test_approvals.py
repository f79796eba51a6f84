"""Approvals: nobody sends what somebody else must approve first, nobody approves their own, and an answer counts once."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from tests.chained import actor_on
from tests.web.api.conftest import Service
from tests.web.console.approving import (
    WORLD,
    as_before,
    asked,
    decided,
    decided_as_seen,
    mails,
    orders_of,
    set_rule,
    set_user,
    state,
    user_id,
)
from tests.web.console.conftest import Browser, SignIn
from tests.web.console.sending import place, ready
from tests.web.console.test_automations import set_one

from largesse.approvals.service import MOST_LISTED
from largesse.db.pool import Database
from largesse.encryption.vault import Vault
from largesse.mail.people.writing import read_approval
from largesse.seed.load import load_file
from largesse.seed.reading import parse_seed

__all__ = ["WORLD", "as_before"]


def test_a_send_waits_is_approved_and_is_sent_as_its_persons(service: Service, ada: Browser, cem: Browser) -> None:
    assert set_rule(ada).status_code == 303
    path = ready(cem, service)
    assert "This send needs approval: Above ten." in cem.read(f"{path}/review")
    assert "Now You ask for approval. Nothing is charged. Once it is approved £20.00 is taken from" in cem.text
    assert "When Once it is approved" in cem.text
    assert "When you press the button" not in cem.text
    assert 'name="quote"' not in (cem.page.text if cem.page else "")
    assert cem.post(f"{path}/ask").status_code == 303
    reference = path.rpartition("/")[2]
    assert mails(service) == [("approval_asked", "Ada"), ("approval_asked", "Bea")]
    before = service.balance("gbp")
    assert "Coffee House e-gift Cem Waiting £20.00 Above ten" in cem.read("/app/approvals")
    assert "This send waits for approval until" in cem.read(f"{path}/review")
    assert "Now The send waits for approval. Nothing is charged. Once it is approved £20.00 is taken" in cem.text
    assert "1 send waits for your approval" in ada.read("/app")
    assert "Bo bo@example.com" in ada.read(f"/app/approvals/{reference}")
    assert service.balance("gbp") == before
    assert "Waiting for you What is sent Sent by Total Rules Requested" in ada.read("/app/approvals")
    assert "Coffee House e-gift Cem £20.00 Above ten" in ada.text
    other = asked(cem, service)
    answer = decided(ada, reference, note="Go on <b>")
    assert answer.headers["location"] == f"/app/approvals/{reference}"
    ada.sees(f"/app/approvals/{reference}", "Approved. The order was placed.", "Ada approved", "Go on <b>")
    assert [tuple(row) for row in orders_of(service, reference)] == [(user_id(service, "cem"), 20_00)]
    assert (state(service, reference), state(service, other)) == ("approved", "waiting")
    assert round(before - service.balance("gbp"), 2) == 20
    assert ("approval_ended", "Cem") in mails(service)
    [mail] = service.sql("SELECT due_at - created_at AS waits FROM people_mails WHERE kind = 'approval_ended'")
    assert mail["waits"] >= timedelta(seconds=10), (
        "it would say that the order was not placed, while it is being placed"
    )
    acts = service.sql("SELECT act, actor_name FROM audit_events WHERE act LIKE 'approval.%' ORDER BY id DESC LIMIT 2")
    assert [tuple(row) for row in acts] == [
        ("approval.given", "ada@acme.example"),
        ("approval.asked", "cem@acme.example"),
    ]
    ada.sees("/app/audit?kind=orders", "Ada approved …", "Total: £20.00")
    assert "Amount: £10.00" in ada.read("/app/audit?act=approval_rule.created")
    assert service.findings() == []


def test_a_send_that_waits_is_listed_however_many_newer_ones_are_decided(
    service: Service, ada: Browser, cem: Browser
) -> None:
    set_rule(ada)
    reference = asked(cem, service)
    service.sql(
        """
        INSERT INTO approval_requests
            (customer_id, environment, id, user_id, state, rule_ids, quote, digest, total_minor, currency, gift_name, code_count,
             draft_changed_at, asked_at, expires_at, ended_at)
        SELECT customer_id, environment, 'DECIDED-' || n, $3, 'approved', rule_ids, quote, digest, total_minor, currency, gift_name,
               code_count, draft_changed_at, asked_at + interval '1 second', expires_at, now()
        FROM approval_requests, generate_series(1, $2::int) AS n WHERE id = $1 RETURNING 1
        """,
        reference,
        MOST_LISTED,
        user_id(service, "mel"),
    )
    assert "1 send waits for your approval" in ada.read("/app")
    ada.get("/app/approvals")
    assert f"/app/approvals/{reference}" in ada.links
    decided(ada, reference, "decline")
    cem.get("/app/approvals")
    assert f"/app/approvals/{reference}" in cem.links, "it is their own"
    service.sql("DELETE FROM approval_requests WHERE id LIKE 'DECIDED-%' RETURNING 1")


@pytest.mark.slow
def test_what_needs_no_approval_is_sent_at_once(service: Service, ada: Browser, cem: Browser) -> None:
    set_rule(ada, above="20")
    path = ready(cem, service)
    place(cem, path)
    path = ready(cem, service)
    assert cem.submit(f"{path}/review", f"{path}/ask").status_code == 409


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["cem", "mel", "fin", "viv"])
def test_four_eyes_over_all_roles(service: Service, ada: Browser, cem: Browser, sign_in: SignIn, name: str) -> None:
    """Whoever is no approver sees nothing and decides nothing, and the person themselves decides nothing."""
    set_rule(ada)
    reference = asked(cem, service)
    other = cem if name == "cem" else sign_in(f"{name}@acme.example")
    other.get("/app/approvals")
    expected = 403 if name == "cem" else 404
    assert other.post(f"/app/approvals/{reference}", round="1", decision="approve", note="").status_code == expected
    assert other.get(f"/app/approvals/{reference}").status_code == (200 if name == "cem" else 404)
    assert 'value="approve"' not in (other.page.text if other.page else "")
    assert (state(service, reference), orders_of(service, reference)) == ("waiting", [])
    gil = sign_in("gil@globex.example")
    assert gil.get(f"/app/approvals/{reference}").status_code == 404
    assert (
        gil.submit("/app/approvals", f"/app/approvals/{reference}", round="1", decision="approve", note="").status_code
        == 404
    )


def test_an_empty_list_offers_what_is_next(ada: Browser, cem: Browser) -> None:
    assert "for those who ask and those who decide. Create a rule" in ada.read("/app/approvals")
    assert "for those who ask and those who decide. Send a gift" in cem.read("/app/approvals")


def test_two_approve_and_nobody_counts_twice(service: Service, sign_in: SignIn) -> None:
    ada, bea, cem = (sign_in(f"{name}@acme.example") for name in ("ada", "bea", "cem"))
    set_rule(ada, needed="2")
    reference = asked(cem, service)
    decided(ada, reference)
    assert "Somebody else has to approve it too" in ada.read(f"/app/approvals/{reference}")
    assert 'value="decline"' not in (ada.page.text if ada.page else "")
    assert "waits for your approval" not in ada.read("/app")
    assert "Waiting for you" not in ada.read("/app/approvals")
    for decision in ("approve", "decline"):
        decided(ada, reference, decision)
        assert "Your answer was not changed" in ada.read(f"/app/approvals/{reference}")
    assert (state(service, reference), orders_of(service, reference)) == ("waiting", [])
    other = asked(cem, service)
    decided(bea, other)
    assert (state(service, reference), state(service, other)) == ("waiting", "waiting"), "each needs two of its own"
    assert decided(bea, reference).status_code == 303
    assert len(orders_of(service, reference)) == 1
    assert service.findings() == []


def test_an_approval_of_somebody_who_left_counts_no_more(service: Service, sign_in: SignIn) -> None:
    ada, bea, cem = (sign_in(f"{name}@acme.example") for name in ("ada", "bea", "cem"))
    set_rule(ada, needed="2")
    reference = asked(cem, service)
    decided(ada, reference)
    assert "Does not count" not in bea.read(f"/app/approvals/{reference}")
    set_user(service, "ada", "role = 'member'")
    assert "Does not count any more" in bea.read(f"/app/approvals/{reference}")
    decided(bea, reference)
    assert (state(service, reference), orders_of(service, reference)) == ("waiting", [])
    assert (
        ada.submit("/app/approvals", f"/app/approvals/{reference}", round="1", decision="approve", note="").status_code
        == 404
    )
    set_user(service, "bea", "is_active = false")
    bea_again = bea.post(f"/app/approvals/{reference}", round="1", decision="approve", note="", token="x")
    assert bea_again.status_code in {303, 401, 403}
    assert orders_of(service, reference) == []


@pytest.mark.parametrize("by", ["page", "file", "both"])
def test_somebody_who_is_invited_again_has_approved_nothing_and_sends_nothing(
    service: Service, sign_in: SignIn, by: str
) -> None:
    ada, bea, cem = (sign_in(f"{name}@acme.example") for name in ("ada", "bea", "cem"))
    set_rule(ada, needed="2")
    set_one(bea, service, name="Birthdays")
    reference, other = asked(cem, service), f"/app/people/{user_id(service, 'bea')}"
    decided(bea, reference)
    assert bea.get("/app").status_code == 200
    if by == "file":
        assert (loaded(service, active=False), loaded(service, active=True)) == (0, 1)
    else:
        ada.submit(f"{other}/remove")
    if by == "page":
        ada.submit("/app/people", email="bea@acme.example", name="Eve", role="admin")
    if by == "both":
        assert loaded(service, active=True) == 1
    assert "/app/sign-in" in bea.get("/app").headers["location"]
    people = service.sql(
        "SELECT act, subject, customer_id FROM audit_events WHERE act IN ('person.removed', 'person.invited') ORDER BY id DESC LIMIT 2"
    )
    of_acme = ("bea@acme.example", service.ids["customers"]["acme"])
    assert [tuple(row) for row in people] == [("person.invited", *of_acme), ("person.removed", *of_acme)]
    decided(ada, reference)
    assert (state(service, reference), orders_of(service, reference)) == ("waiting", [])
    assert "Paused" in ada.read("/app/automations")
    acts = service.sql(
        "SELECT act, split_part(actor_name, ' (', 1) FROM audit_events WHERE act LIKE 'automation.%' ORDER BY id DESC LIMIT 1"
    )
    assert [tuple(row) for row in acts] == [("automation.paused", "ada@acme.example" if by == "page" else "a test")]
    bea = sign_in("bea@acme.example")
    ada.sees("/app/people", "Bea", "bea@acme.example")
    assert "Eve" not in ada.text
    decided(bea, reference)
    assert len(orders_of(service, reference)) == 1
    assert service.findings() == []
    service.sql("DELETE FROM automations")


def loaded(service: Service, *, active: bool) -> int:
    """Loads a seed file that says so of Bea; returns how many people it adds or activates again."""
    customer = f"name: Acme Ltd, plan: starter, funding: balance, users: [{{email: bea@acme.example, name: Bea, role: admin, active: {str(active).lower()}}}]"

    async def load(database: Database, vault: Vault) -> int:
        seed = parse_seed(f"customers: [{{key: acme, {customer}}}]".encode(), "world.yaml")
        return len((await load_file(await actor_on(database, vault), seed, invites=False)).new_users)

    found: int = service.on_pool(load)
    return found


def test_pages_say_when_too_few_people_may_approve(service: Service, sign_in: SignIn) -> None:
    ada, cem = (sign_in(f"{name}@acme.example") for name in ("ada", "cem"))
    set_rule(ada, needed="2")
    reference, few = asked(cem, service), "Too few people may still approve"
    decided(ada, reference)
    assert few not in cem.read(f"/app/approvals/{reference}")
    assert few not in ada.read("/app/approvals/rules")
    bea = f"/app/people/{user_id(service, 'bea')}/remove"
    ada.sees(bea, "Too few people may then approve under the rule Above ten.")
    ada.post("/app/environment", environment="staging")
    ada.sees(bea, "under the rule Above ten (Live).")
    ada.post("/app/environment", environment="production")
    assert ada.submit(bea).status_code == 303
    for browser in (cem, ada):
        browser.sees(f"/app/approvals/{reference}", f"{few} this send. An administrator has to end the rule.")
    assert "Somebody else has to approve it too" not in ada.text
    for browser in (cem, ada):
        browser.sees("/app", "Too few people may approve the send of")
        assert f"/app/approvals/{reference}" in browser.links
    ada.sees("/app/approvals/rules", f"{few}. Create another rule, and end this one.")
    fin = f"/app/people/{user_id(service, 'fin')}/remove"
    assert "Too few people" not in ada.read(fin)


@pytest.mark.slow
def test_named_people_approve_and_administrators_do_not(service: Service, sign_in: SignIn) -> None:
    ada, cem, fin = (sign_in(f"{name}@acme.example") for name in ("ada", "cem", "fin"))
    set_rule(ada, approver=[str(user_id(service, "fin"))])
    reference = asked(cem, service)
    assert mails(service) == [("approval_asked", "Fin")]
    ada.get(f"/app/approvals/{reference}")
    assert 'value="approve"' not in (ada.page.text if ada.page else "")
    assert decided(ada, reference).status_code == 404
    assert orders_of(service, reference) == []
    assert decided(fin, reference).status_code == 303
    assert len(orders_of(service, reference)) == 1


@pytest.mark.slow
def test_it_is_answered_once_however_often_pressed_and_raced(service: Service, sign_in: SignIn) -> None:
    ada, bea, cem = (sign_in(f"{name}@acme.example") for name in ("ada", "bea", "cem"))
    set_rule(ada)
    reference = asked(cem, service)
    before = service.balance("gbp")
    ada.get(f"/app/approvals/{reference}")
    bea.get(f"/app/approvals/{reference}")
    tokens = {ada.host: ada.token, bea.host: bea.token}

    def press(approver: Browser) -> int:
        answer = approver.post(
            f"/app/approvals/{reference}", token=tokens[approver.host], round="1", decision="approve", note=""
        )
        return answer.status_code

    with ThreadPoolExecutor(12) as threads:
        answers = list(threads.map(press, [ada, bea] * 12))
    assert set(answers) <= {303, 409}
    assert len(orders_of(service, reference)) == 1
    assert round(before - service.balance("gbp"), 2) == 20
    assert service.sql("SELECT count(*) FROM people_mails WHERE kind = 'approval_ended'")[0][0] == 1
    assert decided(ada, reference, "decline").status_code == 303
    assert state(service, reference) == "approved"
    assert service.findings() == []


@pytest.mark.parametrize("decision", ["approve", "decline"])
def test_a_decision_is_about_what_its_approver_saw(service: Service, ada: Browser, cem: Browser, decision: str) -> None:
    """An address is changed and approval requested again while the approver looks at the page."""
    set_rule(ada)
    reference = asked(cem, service)
    seen = ada.get(f"/app/approvals/{reference}").text
    rows = "email\na@example.com\nother@example.com\n"
    assert cem.submit(f"/app/send/{reference}/recipients", rows=rows, taking="replace").status_code == 303
    assert cem.submit(f"/app/send/{reference}/review", f"/app/send/{reference}/ask").status_code == 303
    assert decided_as_seen(ada, seen, reference, decision).status_code == 303
    ada.sees(
        f"/app/approvals/{reference}", "Somebody else changed this meanwhile. Look at how it is now, and try again."
    )
    assert (state(service, reference), orders_of(service, reference)) == ("waiting", [])
    assert decided(ada, reference, decision).status_code == 303
    assert state(service, reference) == ("approved" if decision == "approve" else "declined")


def test_approvers_see_which_addresses_were_corrected_after_they_approved(
    service: Service, ada: Browser, cem: Browser
) -> None:
    set_rule(ada)
    reference = asked(cem, service)
    assert decided(ada, reference).status_code == 303
    assert "corrected the address" not in ada.read(f"/app/approvals/{reference}")
    [email] = [
        row["email"]
        for row in service.of_order(reference, "recipient_email AS email", "lines", "ORDER BY number LIMIT 1")
    ]
    order = f"/app/orders/{reference}"
    assert cem.submit(order, f"{order}/correct", email=email, corrected="cem@home.example").status_code == 303
    ada.sees(
        f"/app/approvals/{reference}", "Addresses corrected since", "Cem corrected the address of", "cem@home.example"
    )
    assert email not in ada.text


@pytest.mark.slow
def test_who_withdraws_an_approved_send_is_not_told_that_it_was_not_approved(
    service: Service, ada: Browser, cem: Browser
) -> None:
    set_rule(ada)
    reference = asked(cem, service)
    service.sql("UPDATE approval_requests SET state = 'approved', ended_at = now() WHERE id = $1", reference)
    about = int(service.ids["customers"]["acme"]), user_id(service, "cem"), "approval_ended", reference
    assert service.run(lambda connection: read_approval(connection, *about))["state"] == "approved"
    assert cem.submit(f"/app/approvals/{reference}", f"/app/approvals/{reference}/withdraw").status_code == 303
    assert service.run(lambda connection: read_approval(connection, *about)) is None


def test_approve_races_decline_and_withdrawal(service: Service, sign_in: SignIn) -> None:
    """Whichever is first holds: sent, or not sent, never both."""
    ada, bea, cem = (sign_in(f"{name}@acme.example") for name in ("ada", "bea", "cem"))
    set_rule(ada)
    for _ in range(6):
        reference = asked(cem, service)
        for browser in (ada, bea, cem):
            browser.get(f"/app/approvals/{reference}")
        with ThreadPoolExecutor(3) as threads:
            threads.submit(ada.post, f"/app/approvals/{reference}", round="1", decision="approve", note="")
            threads.submit(bea.post, f"/app/approvals/{reference}", round="1", decision="decline", note="")
            threads.submit(cem.post, f"/app/approvals/{reference}/withdraw")
        is_sent = bool(orders_of(service, reference))
        assert state(service, reference) in ({"approved"} if is_sent else {"declined", "withdrawn"})
    assert service.findings() == []


def test_an_answer_that_is_none_decides_nothing(service: Service, ada: Browser, cem: Browser) -> None:
    set_rule(ada)
    reference = asked(cem, service)
    assert ada.submit(f"/app/approvals/{reference}", decision="maybe", note="").status_code == 422
    assert ada.post(f"/app/approvals/{reference}", decision="approve", note="x" * 501).status_code == 422
    assert (state(service, reference), orders_of(service, reference)) == ("waiting", [])


def test_home_leads_to_no_approved_send_whose_draft_is_gone(service: Service, ada: Browser, cem: Browser) -> None:
    """Drafts are deleted two weeks after their last change. The request stays for a year, and Home led to nothing."""
    set_rule(ada)
    reference, small = asked(cem, service, account="small"), service.ids["funding_accounts"]["small"]
    held = service.sql("SELECT balance_minor FROM accounts WHERE id = $1", small)[0][0]
    for balance_minor in (0, held):
        service.sql("UPDATE accounts SET balance_minor = $2 WHERE id = $1", small, balance_minor)
        decided(ada, reference)
    assert (state(service, reference), orders_of(service, reference)) == ("approved", [])
    assert "is approved, but not sent" in cem.read("/app")
    service.sql("DELETE FROM drafts WHERE id = $1", reference)
    assert "is approved, but not sent" not in cem.read("/app")
