"""What is done with a part of an order: one recipient is cancelled, a few are mailed again, the schedule changes. Races have one winner."""

from __future__ import annotations

import csv
import io
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.orders.test_cancelling import claim
from tests.web.api.conftest import Service, held
from tests.web.claim.conftest import Recipient
from tests.web.console.conftest import Browser, signed_in
from tests.web.console.orders import WORLD, ada, cem, send, sent_mail, work

from largesse.mail.resending import MAX_CHOSEN, MAX_RESENDS_A_DAY

__all__ = ["WORLD", "ada", "cem"]

LATER = "2999-01-01T09:00:00Z"
THREE = [{"email": f"{name}@acme.example", "name": name.title(), "quantity": 1 + (name == "kim")} for name in ("kim", "lea", "max")]  # fmt: skip


@pytest.fixture
def order(service: Service, ada: Browser) -> str:
    """An order of four codes for three people, whose mail has left."""
    reference = send(service, recipients=THREE)
    work(service)
    sent_mail(service, reference)
    return reference


@pytest.fixture
def scheduled(service: Service, ada: Browser) -> str:
    reference = send(service, recipients=THREE, sendAt=LATER)
    work(service)
    return reference


def seen(browser: Browser, reference: str) -> dict[str, str]:
    """What the form of the schedule holds."""
    browser.get(f"/app/orders/{reference}")
    [at] = re.findall(r'name="seen" value="([^"]+)"', browser.page.text)
    return {"seen": at}


def due(service: Service, reference: str) -> tuple[datetime, datetime]:
    [row] = service.sql(
        "SELECT scheduled_for, due_at FROM orders o JOIN mail_jobs m ON m.order_id = o.id WHERE reference = $1",
        reference,
    )
    return row[0], row[1]


@contextmanager
def held_of(service: Service, query: str, reference: str) -> Iterator[Callable[[int], bool]]:
    """`held` for rows of an order: `query` gets its customer and id."""
    [key] = service.sql("SELECT customer_id, id FROM orders WHERE reference = $1", reference)
    with held(service, query, *key) as waits:
        yield waits


def test_one_recipient_is_cancelled_and_refunded_to_the_penny(ada: Browser, service: Service, order: str) -> None:
    before = service.balance("gbp")
    page = f"/app/orders/{order}/recipients/1/cancel?q=kim"
    ada.sees(page, "Cancel the gift: Kim", "Void 2 codes and return £20.00 to Acme float")
    token = ada.token
    for _ in range(2):
        assert ada.post(page, token=token).headers["location"] == f"/app/orders/{order}?q=kim#r1"
    assert service.balance("gbp") == before + 20
    ada.sees(f"/app/orders/{order}", "Cancelled: Kim. Refunded: £20.00.", "Ada cancelled 2 gifts: Kim")
    ada.says("Refunded £20.00")
    assert "there is nothing to cancel" in ada.read(page)
    ada.post(page)
    assert service.balance("gbp") == before + 20
    [audited] = service.sql("SELECT act, after FROM audit_events WHERE subject = $1", f"order {order}")
    assert tuple(audited) == ("order.cancelled", '{"line":1,"cancelled":2,"refunded_minor":2000}')
    done = service.client("hr").post(f"/orders/{order}/cancel").json()
    assert (done["cancelledCount"], done["refunded"]) == (4, 40.0)
    assert service.balance("gbp") == before + 40
    work(service)
    assert service.findings() == []


def test_cancelling_the_rest_says_what_it_refunds_and_not_what_was_refunded_before(
    ada: Browser, service: Service, order: str
) -> None:
    assert ada.submit(f"/app/orders/{order}/recipients/1/cancel").status_code == 303
    page = f"/app/orders/{order}/cancel"
    assert "Void 2 codes and return £20.00 to Acme float" in ada.read(page)
    ada.post(page)
    assert "Codes cancelled: 2. Refunded: £20.00." in ada.read(f"/app/orders/{order}")
    audited = service.sql("SELECT after FROM audit_events WHERE subject = $1 ORDER BY id", f"order {order}")
    assert [row["after"] for row in audited] == [
        '{"line":1,"cancelled":2,"refunded_minor":2000}',
        '{"cancelled":2,"refunded_minor":2000}',
    ]


def test_the_query_of_the_docs_names_keys_and_people(ada: Browser, service: Service, order: str) -> None:
    ada.submit(f"/app/orders/{order}/recipients/1/cancel")
    page = (Path(__file__).parents[3] / "docs/audit.md").read_text()
    [query] = re.findall(r"```sql\n(WITH placed.*?)```", page, re.DOTALL)
    acts = service.sql(query.replace("0WBQK7M2PXR4D9VA1C3E", order))
    assert [(act["what"], act["service_account"], act["person"]) for act in acts] == [
        ("placed", "hr-bot", None),
        ("cancel", None, "ada@acme.example"),
    ]
    assert acts[0]["key"] is not None
    assert acts[1]["key"] is None


def test_nobody_cancels_what_is_not_theirs(cem: Browser, service: Service, order: str) -> None:
    cem.get("/app/orders")
    for act in ("cancel", "link"):
        assert cem.post(f"/app/orders/{order}/recipients/1/{act}", token=other_token(cem)).status_code == 404
    fay = signed_in(service, "fay@acme.example")
    assert fay.submit("/app", f"/app/orders/{order}/recipients/1/cancel").status_code == 403
    assert fay.post(f"/app/orders/{order}/schedule", seen=LATER).status_code == 403


def other_token(browser: Browser) -> str:
    browser.get("/app")
    return browser.token


def test_a_recipient_that_is_none_is_not_found(ada: Browser, order: str) -> None:
    ada.get("/app")
    for number in ("0", "5", "99999999999"):
        assert ada.get(f"/app/orders/{order}/recipients/{number}/cancel").status_code == 404
        assert ada.submit("/app", f"/app/orders/{order}/recipients/{number}/cancel").status_code == 404


@pytest.mark.parametrize("first", ["claim", "cancel"])
def test_of_a_claim_and_a_cancellation_one_wins(ada: Browser, service: Service, first: str) -> None:
    sent = service.send("gift", "coffee", value=5, codeQuantity=2).json()
    reference, code = sent["reference"], sent["codes"][0]
    before = service.balance("gbp")
    recipient = Recipient(service)
    ada.get(f"/app/orders/{reference}/recipients/1/cancel")
    lock = "SELECT FROM lines WHERE customer_id = $1 AND order_id = $2 AND number = 1 FOR UPDATE"

    def take() -> None:
        with suppress(AssertionError):  # where it is too late
            recipient.gift(code)

    acts = {"claim": take, "cancel": lambda: ada.post(f"/app/orders/{reference}/recipients/1/cancel")}
    order = [first, "cancel" if first == "claim" else "claim"]
    with ThreadPoolExecutor(2) as pool, held_of(service, lock, reference) as waits:
        acting: list[Future[Any]] = []
        for at, name in enumerate(order, 1):
            acting.append(pool.submit(acts[name]))
            assert waits(at)
    for one in acting:
        one.result()
    states = service.of_order(reference, "state", "line_states", "AND number = 1")
    [state] = [row["state"] for row in states]
    assert (state == "cancelled") is (first == "cancel")
    assert service.balance("gbp") == before + (5 if state == "cancelled" else 0)
    ada.get(f"/app/orders/{reference}")
    said = "Cancelled: Code 1." if state == "cancelled" else "as the gift was claimed: Code 1."
    assert said in ada.text
    work(service)
    assert service.findings() == []


def test_a_few_are_mailed_again(ada: Browser, service: Service, order: str) -> None:
    ada.get(f"/app/orders/{order}")
    path = f"/app/orders/{order}/resend-chosen?state=unclaimed"
    answer = ada.post(path, number=["1", "4"])
    assert answer.headers["location"] == f"/app/orders/{order}?state=unclaimed#r1"
    ada.sees(f"/app/orders/{order}", "2 mails leave again.", "Ada sent 2 mails again")
    rows = service.of_order(order, "email, edition, state, line_numbers", "messages", "AND edition > 0 ORDER BY email")
    assert [tuple(row) for row in rows] == [
        ("kim@acme.example", 1, "pending", [1, 2]),
        ("max@acme.example", 1, "pending", [4]),
    ]
    ada.post(path, number=["1", "3"])
    assert "1 mail leaves again. 1 recipient was left out" in ada.read(f"/app/orders/{order}")
    ada.post(path)
    assert f"Choose the recipients to mail again first, at most {MAX_CHOSEN}." in ada.read(f"/app/orders/{order}")
    assert ada.post(path, number=[str(number) for number in range(1, MAX_CHOSEN + 1)]).status_code == 303
    ada.get(f"/app/orders/{order}")
    ada.post(path, number=[str(number) for number in range(1, MAX_CHOSEN + 2)])
    assert f"at most {MAX_CHOSEN}." in ada.read(f"/app/orders/{order}")


def test_the_chosen_are_mailed_as_often_as_one_alone(ada: Browser, service: Service, order: str) -> None:
    for _ in range(MAX_RESENDS_A_DAY):
        ada.submit(f"/app/orders/{order}", f"/app/orders/{order}/resend-chosen", number=["3"])
        sent_mail(service, order)
    ada.submit(f"/app/orders/{order}", f"/app/orders/{order}/resend-chosen", number=["3"])
    assert "1 recipient was left out" in ada.read(f"/app/orders/{order}")
    ada.post(f"/app/orders/{order}/resend", number="3")
    assert f"A recipient is mailed again at most {MAX_RESENDS_A_DAY} times a day." in ada.read(f"/app/orders/{order}")


def test_two_who_mail_the_same_few_at_once_mail_them_once(ada: Browser, service: Service, order: str) -> None:
    tokens = []
    for _ in range(2):
        ada.get(f"/app/orders/{order}")
        tokens.append(ada.token)
    path = f"/app/orders/{order}/resend-chosen"
    with ThreadPoolExecutor(2) as pool:
        posts = [pool.submit(ada.post, path, token=token, number=["1", "3"]) for token in tokens]
    assert [post.result().status_code for post in posts] == [303, 303]
    editions = service.of_order(order, "count(*)", "messages", "AND edition > 0")
    assert editions[0][0] == 2


@pytest.mark.parametrize(
    ("act", "said"), [("resend", "sent again after you opened the page"), ("resend-chosen", "1 recipient was left out")]
)
def test_a_page_from_before_a_resend_mails_nobody_once_more(
    ada: Browser, service: Service, order: str, act: str, said: str
) -> None:
    ada.get(f"/app/orders/{order}")
    assert ada.page is not None
    assert 'name="number" value="3-0"' in ada.page.text
    tokens = [ada.token]
    ada.get(f"/app/orders/{order}")
    tokens.append(ada.token)
    for token in tokens:
        ada.post(f"/app/orders/{order}/{act}", token=token, number="3-0")
        sent_mail(service, order)
    assert said in ada.read(f"/app/orders/{order}")
    assert 'value="3-1"' in ada.page.text
    assert service.of_order(order, "count(*)", "messages", "AND edition > 0")[0][0] == 1


def test_a_schedule_is_changed_and_then_sent_now(ada: Browser, service: Service, scheduled: str) -> None:
    fields = seen(ada, scheduled)
    assert "The mail leaves on 1 Jan 2999, 09:00 (UTC)." in ada.text
    assert "Send 4 gifts now" in ada.text  # to three people
    for wrong, said in (("", "Choose a day and a time."), ("2020-01-01T10:00", "This time has passed.")):
        ada.page = ada.post(f"/app/orders/{scheduled}/schedule", **fields, when="later", at=wrong)
        assert ada.page.status_code == 422
        assert said in ada.text
        assert not wrong or f'value="{wrong}"' in ada.page.text
    answer = ada.post(f"/app/orders/{scheduled}/schedule", **fields, when="later", at="2998-05-01T10:30")
    assert answer.status_code == 303
    assert due(service, scheduled) == (datetime(2998, 5, 1, 10, 30, tzinfo=UTC),) * 2
    fields = seen(ada, scheduled)
    assert "The order leaves on 1 May 2998, 10:30." in ada.text
    assert "Ada moved the order from 1 Jan 2999, 09:00 to 1 May 2998, 10:30" in ada.text
    receipt, request = f"/orders/{scheduled}", f"/orders/{scheduled}/request"
    assert service.client("hr").get(receipt).json()["scheduledFor"] == "2998-05-01T10:30:00Z"
    assert service.client("hr").get(request).json()["sendAt"] == LATER, "by which clients recognise a repeated request"
    work(service)
    assert service.findings() == []
    ada.post(f"/app/orders/{scheduled}/schedule", **fields, when="now")
    assert due(service, scheduled)[1] <= datetime.now(UTC)
    assert "Ada sent the scheduled order at once" in ada.read(f"/app/orders/{scheduled}")
    assert service.client("hr").get(request).json()["sendAt"] == LATER
    assert 'name="seen"' not in ada.page.text
    work(service)
    made = service.of_order(scheduled, "count(*)", "messages")
    assert made[0][0] == 3
    acts = service.sql("SELECT act FROM audit_events WHERE subject = $1", f"order {scheduled}")
    assert [row["act"] for row in acts] == ["order.rescheduled"] * 2
    assert service.findings() == []


def test_of_two_schedule_changes_one_wins(ada: Browser, service: Service, scheduled: str) -> None:
    fields, tokens = seen(ada, scheduled), []
    for _ in range(2):
        ada.get(f"/app/orders/{scheduled}")
        tokens.append(ada.token)
    lock = "SELECT FROM mail_jobs WHERE customer_id = $1 AND order_id = $2 FOR UPDATE"
    path, times = f"/app/orders/{scheduled}/schedule", ("2990-01-01T10:00", "2991-01-01T10:00")
    with ThreadPoolExecutor(2) as pool, held_of(service, lock, scheduled) as waits:
        acting = [
            pool.submit(ada.post, path, token=token, **fields, when="later", at=at)
            for token, at in zip(tokens, times, strict=True)
        ]
        assert waits(2)
    assert [one.result().status_code for one in acting] == [303, 303]
    at, due_at = due(service, scheduled)
    assert at == due_at
    assert at.year in {2990, 2991}
    acts = service.of_order(scheduled, "count(*)", "order_acts")
    assert acts[0][0] == 1
    work(service)
    assert service.findings() == []


@pytest.mark.slow
@pytest.mark.parametrize("is_worker_first", [True, False])
def test_a_schedule_change_and_the_worker_that_starts_it(ada: Browser, service: Service, is_worker_first: bool) -> None:
    soon = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=3)
    scheduled = send(service, recipients=THREE, sendAt=soon.isoformat())
    work(service)
    fields = seen(ada, scheduled)
    path = f"/app/orders/{scheduled}/schedule"
    if is_worker_first:
        time.sleep(max((soon - datetime.now(UTC)).total_seconds() + 0.1, 0))
        work(service)
        ada.post(path, **fields, when="later", at="2990-01-01T10:00")
        assert "The order has left already" in ada.read(f"/app/orders/{scheduled}")
        assert due(service, scheduled)[1] == soon
    else:
        ada.post(path, **fields, when="later", at="2990-01-01T10:00")
        time.sleep(max((soon - datetime.now(UTC)).total_seconds() + 0.1, 0))
        work(service)
        assert due(service, scheduled)[1].year == 2990
    made = service.of_order(scheduled, "count(*)", "messages")
    assert made[0][0] == (3 if is_worker_first else 0)


def test_a_cancelled_schedule_cannot_be_changed(ada: Browser, service: Service, scheduled: str) -> None:
    fields = seen(ada, scheduled)
    assert "Cancel the order…" in ada.text
    service.client("hr").post(f"/orders/{scheduled}/cancel")
    ada.post(f"/app/orders/{scheduled}/schedule", **fields, when="now")
    assert "The order has left already, or was cancelled" in ada.read(f"/app/orders/{scheduled}")
    for wrong in ("", "yesterday", "9999-12-31T23:59:59-23:00"):
        assert ada.post(f"/app/orders/{scheduled}/schedule", seen=wrong, when="now").status_code in {303, 404}


def test_a_link_is_copied_by_who_proves_that_it_is_them(
    ada: Browser, cem: Browser, service: Service, order: str, scheduled: str
) -> None:
    service.sql("UPDATE sessions SET proved_at = now() - interval '1 day'")
    ada.get(f"/app/orders/{order}")
    path = f"/app/orders/{order}/recipients/1/link?q=kim"
    assert "claim/" not in ada.post(path).text
    service.sql("UPDATE sessions SET proved_at = now()")
    shown = ada.submit(f"/app/orders/{order}", path)
    links = re.findall(r"https://gifts\.example(/claim/[^\"<#&]+)", shown.text)
    assert len(set(links)) == 2, "Kim has two codes"
    assert shown.headers["cache-control"] == "no-store"
    assert Recipient(service).get(links[0]).status_code == 200
    assert "Ada copied the claim link of Kim" in ada.read(f"/app/orders/{order}")
    [reading] = service.of_order(order, "line_number", "code_readings")
    assert reading[0] == 1
    [audited] = service.sql("SELECT act, after FROM audit_events WHERE subject = $1", f"order {order}")
    assert tuple(audited) == ("codes.read", '{"line":1}')
    ada.get(f"/app/orders/{scheduled}")
    assert "Copy the claim link" not in ada.page.text, "it has not left"
    ada.post(f"/app/orders/{scheduled}/recipients/1/link")
    assert "There is no link to copy" in ada.read(f"/app/orders/{scheduled}")


def test_recipients_are_exported_with_their_state(ada: Browser, service: Service, order: str) -> None:
    claim(service, order, 3)
    answer: httpx.Response = ada.get(f"/app/orders/{order}/recipients.csv")
    rows = list(csv.DictReader(io.StringIO(answer.text.removeprefix("\ufeff"))))
    assert [(*tuple(row.values())[:4], row["State"]) for row in rows] == [
        ("1", "Kim", "kim@acme.example", "2", "Mailed"),
        ("3", "Lea", "lea@acme.example", "1", "Claimed"),
        ("4", "Max", "max@acme.example", "1", "Mailed"),
    ]
    assert rows[0]["Mailed at (UTC)"]
    fay, vic = (signed_in(service, f"{name}@acme.example") for name in ("fay", "vic"))
    assert fay.get(f"/app/orders/{order}/recipients.csv").status_code == 200
    assert vic.get(f"/app/orders/{order}/recipients.csv").status_code == 403
