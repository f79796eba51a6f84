"""Finding a gift in the back office and what support does about it: each look and each act is told, with a reason, and no secret is shown."""

import re
from typing import Any

import pytest
from tests.reports.conftest import take_all
from tests.web.api.conftest import Service
from tests.web.claim.conftest import sent_code
from tests.web.console.conftest import Browser
from tests.web.office.conftest import SignIn, mail_job

from largesse.base.throttle import Rate, Throttle
from largesse.lines.codes import draw_codes, format_code
from largesse.web.office import gifts

SAM, ALEX = "sam.office@example.com", "alex.office@example.com"
REASON = "Ticket 4712: she asked by telephone"


def follow(service: Service) -> None:
    service.on_pool(lambda database, _: take_all(database))


@pytest.fixture
def gift(service: Service) -> str:
    """The path of the gift of Sam, whose mail has bounced."""
    recipients = [{"email": ALEX, "name": "Alex"}, {"email": SAM, "name": "Sam"}]
    reference = service.send("gift", "coffee", value=5, recipients=recipients).json()["reference"]
    job = mail_job(service, reference)
    service.sql(
        """
        INSERT INTO messages (customer_id, order_id, environment, email, name, line_numbers, state, attempts, due_at, rank_at, created_at, finished_at, reason, fault)
        SELECT l.customer_id, l.order_id, $3, l.recipient_email, l.recipient_name, ARRAY[l.number], 'bounced', 1, now(), now(), now(), now(),
               '550 5.1.1 <' || l.recipient_email || '> unknown', 'recipient'
        FROM lines l WHERE l.customer_id = $1 AND l.order_id = $2
        """,
        job["customer_id"],
        job["order_id"],
        job["environment"],
    )
    follow(service)
    return f"/office/gifts/{service.ids['customers']['acme']}/production/{reference}/2"


def reference_of(gift: str) -> str:
    return gift.split("/")[-2]


def code_of(service: Service, gift: str) -> str:
    return sent_code(service, reference_of(gift), 2)["code"]


def told(service: Service, customer_id: int) -> list[Any]:
    return service.sql(
        "SELECT actor, act, subject, after->>'reason' AS reason, after::text FROM audit_events WHERE customer_id = $1 ORDER BY id",
        customer_id,
    )


def search(browser: Browser, by: str, sought: str) -> Any:
    return browser.submit("/office/find", by=by, sought=sought)


def test_a_gift_is_found_in_each_way_and_the_search_is_told(service: Service, sign_in: SignIn, gift: str) -> None:
    browser, code = sign_in("support"), code_of(service, gift)
    order = gift.rpartition("/")[0]
    link = sent_code(service, reference_of(gift), 2)["redemptionUrl"]
    service.sql(
        """
        INSERT INTO shipments (customer_id, order_id, number, environment, product_id, country, sealed_address, requested_at, exported_at, shipped_at, sendings, carrier, tracking_number)
        SELECT customer_id, id, 2, environment, product_id, country, 'x', now(), now(), now(), 1, 'Post', 'TR-4711' FROM orders WHERE reference = $1
        """,
        reference_of(gift),
    )
    for by, sought, path in (
        ("address", SAM.upper(), gift),
        ("address", f"Sam Doe <{SAM}>", gift),
        ("reference", reference_of(gift).lower(), order),
        ("code", code.lower(), gift),
        ("code", f"{link}#pin=123456", gift),
        ("tracking", " TR-4711 ", gift),
        ("tracking", "tr-47 11", gift),
    ):
        page = search(browser, by, sought)
        assert page.status_code == 200
        assert f'href="{path}"' in page.text, by
        assert code not in page.text
        assert code.lower() not in page.text
        last = told(service, 0)[-1]
        assert (last["actor"], last["act"]) == ("staff", "gift.searched")
        assert sought.strip().lower() not in str(tuple(last)).lower()
    (other,) = draw_codes(1)
    assert "Nothing is found" in search(browser, "code", format_code(other.code)).text
    assert "type the whole reference" in search(browser, "reference", f"…{reference_of(gift)[-6:]}").text


@pytest.mark.parametrize(
    ("by", "sought", "status"),
    [
        ("address", "", 422),
        ("address", "a" * 254, 200),
        ("address", "a" * 255, 422),
        ("moon", "x", 422),
        ("code", "no code", 422),
        ("tracking", "a\u202ex", 422),
    ],
)
def test_a_search_has_limits(sign_in: SignIn, by: str, sought: str, status: int) -> None:
    assert search(sign_in("support"), by, sought).status_code == status


def test_searches_are_throttled(sign_in: SignIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gifts, "_searches", Throttle(Rate(2, 3600.0)))
    browser = sign_in("auditor")
    for _ in range(2):
        assert search(browser, "reference", "nothing").status_code == 200
    refused = search(browser, "reference", "nothing")
    assert refused.status_code == 429
    assert "Too many searches" in refused.text
    assert 'value="nothing"' in refused.text
    assert search(sign_in("owner"), "reference", "nothing").status_code == 200


def test_each_look_is_told_to_the_customer_and_shows_no_secret(service: Service, sign_in: SignIn, gift: str) -> None:
    acme = service.ids["customers"]["acme"]
    browser = sign_in("auditor")
    page = browser.get(gift)
    assert page.status_code == 200
    for said in ("Sam", SAM, "Bounced", "550 5.1.1"):
        assert said in browser.text.replace("\u200b", ""), said
    code = code_of(service, gift)
    assert code not in page.text
    assert code.replace("-", "") not in page.text
    assert "/gift/" not in page.text
    for log in (acme, 0):
        last = told(service, log)[-1]
        assert (last["actor"], last["act"], last["subject"]) == ("staff", "gift.viewed", f"order {reference_of(gift)}")
        assert SAM not in str(tuple(last))
    assert "<h2>Actions</h2>" not in browser.text
    for act in ("correct", "resend", "cancel"):
        assert browser.post(f"{gift}/{act}", token="x").status_code in {401, 403}
    assert sign_in("warehouse").get(gift).status_code == 403
    for wrong in (gift.replace("production", "staging"), gift.replace("production", "moon"), gift[:-1] + "3"):
        assert browser.get(wrong).status_code == 404
    globex = service.ids["customers"]["globex"]
    assert browser.get(gift.replace(f"/{acme}/", f"/{globex}/")).status_code == 404


def test_an_address_is_corrected_and_the_mail_sent_there(service: Service, sign_in: SignIn, gift: str) -> None:
    browser = sign_in("support")
    browser.get(gift)
    form = {"corrected": "samantha.office@example.com", "reason": REASON}
    for wrong in ({"corrected": "sam"}, {"corrected": ALEX}, {"reason": "a" * 9}, {"reason": "a" * 201}):
        refused = browser.post(f"{gift}/correct", **{**form, **wrong})
        assert refused.status_code == 422, wrong
        browser.get(gift)
    assert browser.post(f"{gift}/correct", **form).status_code == 303
    rows = service.of_order(
        reference_of(gift), "email, state, edition", "messages", "AND line_numbers = '{2}' ORDER BY edition"
    )
    assert [tuple(row) for row in rows] == [(form["corrected"], "bounced", 0), (form["corrected"], "pending", 1)]
    acts = [row for row in told(service, service.ids["customers"]["acme"]) if row["act"] == "order.readdressed"]
    assert (acts[-1]["actor"], acts[-1]["reason"]) == ("staff", REASON)
    assert "example.com" not in acts[-1]["after"]


def test_a_correction_asks_who_it_is_first(service: Service, sign_in: SignIn, gift: str) -> None:
    browser = sign_in("support")
    browser.get(gift)
    service.sql("UPDATE staff_sessions SET proved_at = now() - interval '1 day'")
    browser.page = browser.post(f"{gift}/correct", corrected="sam@elsewhere.example", reason=REASON)
    assert "Confirm it's you" in browser.text
    assert service.of_order(reference_of(gift), "email", "messages", "AND email LIKE '%elsewhere%'") == []


def test_a_mail_is_sent_again(service: Service, sign_in: SignIn, gift: str) -> None:
    browser = sign_in("support")
    assert browser.submit(gift, f"{gift}/resend", resend_reason="short").status_code == 422
    assert browser.submit(gift, f"{gift}/resend", resend_reason=REASON).status_code == 303
    assert browser.get(gift).status_code == 200
    assert "Sending" in browser.text
    acts = [row for row in told(service, service.ids["customers"]["acme"]) if row["act"] == "order.resent"]
    assert (acts[-1]["actor"], acts[-1]["reason"]) == ("staff", REASON)


def test_an_unclaimed_gift_is_cancelled_and_refunded(service: Service, sign_in: SignIn, gift: str) -> None:
    browser = sign_in("owner")
    assert browser.submit(gift, f"{gift}/cancel", cancel_reason="").status_code == 422
    done = browser.submit(gift, f"{gift}/cancel", cancel_reason=REASON)
    assert done.status_code == 303
    assert "Cancelled" in browser.read(gift)
    assert re.search(r"Refunded: £[0-9.]+", browser.text)
    acts = [row for row in told(service, service.ids["customers"]["acme"]) if row["act"] == "order.cancelled"]
    assert (acts[-1]["actor"], acts[-1]["reason"]) == ("staff", REASON)
    browser.get("/office/audit")
    assert re.search(r"Refunded: <ins>£[0-9.]+</ins>", browser.page.text), "no minor units"
    history = service.of_order(reference_of(gift), "act, user_id, service_account_id", "order_acts")
    assert [tuple(row) for row in history] == [("cancel", None, None)]
    browser.post(f"{gift}/cancel", cancel_reason=REASON)
    assert len(
        [row for row in told(service, service.ids["customers"]["acme"]) if row["act"] == "order.cancelled"]
    ) == len(acts)
