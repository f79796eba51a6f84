"""POST /orders/{reference}/cancel: unclaimed lines are voided and refunded, once."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

RECIPIENTS = [{"email": "sam@example.com", "quantity": 2}, {"email": "kim@example.com"}]


def cancel(service: Any, reference: str, key: str = "hr") -> httpx.Response:
    response: httpx.Response = service.client(key).post(f"/orders/{reference}/cancel")
    return response


def claim(service: Any, reference: str, number: int) -> None:
    """Marks a line as claimed, as a claim does."""
    service.sql(
        "INSERT INTO line_states (customer_id, order_id, number, state, claimed_at) "
        "SELECT customer_id, id, $2, 'claimed', now() FROM orders WHERE reference = $1",
        reference,
        number,
    )
    service.sql(
        "WITH waits AS (INSERT INTO order_changes (customer_id, order_id, changed_at)"
        " SELECT customer_id, id, now() FROM orders WHERE reference = $1) "
        "INSERT INTO line_events (customer_id, order_id, number, event, at) "
        "SELECT s.customer_id, s.order_id, s.number, 'claimed', s.claimed_at FROM orders o "
        "JOIN line_states s ON s.order_id = o.id AND s.number = $2 WHERE o.reference = $1",
        reference,
        number,
    )


def test_unclaimed_codes_are_voided_and_refunded_to_the_account(service: Any) -> None:
    before = service.balance("gbp")
    reference = service.send("gift", "coffee", value=10, codeQuantity=3).json()["reference"]
    claim(service, reference, 2)
    answer = cancel(service, reference)
    assert answer.status_code == 200
    assert answer.json() == {
        "reference": reference,
        "codeCount": 3,
        "cancelledCount": 2,
        "claimedCount": 1,
        "refunded": 20.0,
        "currency": "GBP",
    }
    assert service.balance("gbp") == before - 10
    rows = service.of_order(reference, "number, state", "line_states", "ORDER BY 1")
    assert [tuple(row) for row in rows] == [(1, "cancelled"), (2, "claimed"), (3, "cancelled")]
    events = service.of_order(reference, "count(*)", "line_events", "AND event = 'cancelled'")
    assert events[0][0] == 2
    assert service.findings() == []


def test_cancelling_again_changes_nothing(service: Any) -> None:
    reference = service.send("gift", "coffee", value=5, codeQuantity=2).json()["reference"]
    first = cancel(service, reference)
    state = service.state()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: cancel(service, reference), range(16)))
    assert {answer.status_code for answer in answers} == {200}
    assert {answer.content for answer in answers} == {first.content}
    assert service.state() == state


def test_twenty_cancellations_at_once_refund_once(service: Any) -> None:
    before = service.balance("gbp")
    reference = service.send("gift", "coffee", value=25, codeQuantity=40).json()["reference"]
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: cancel(service, reference), range(20)))
    assert {answer.json()["refunded"] for answer in answers} == {1000.0}
    assert service.balance("gbp") == before
    refunds = service.of_order(reference, "count(*)", "entries", "AND kind = 'refund'")
    assert refunds[0][0] == 2  # one transfer has two sides


def test_a_physical_gift_is_refunded_with_postage_and_vat(service: Any) -> None:
    before = service.balance("gbp")
    sent = service.send("gift", "hamper", codeQuantity=2).json()
    assert sent["totalCost"] == pytest.approx(104.28)
    assert cancel(service, sent["reference"]).json()["refunded"] == pytest.approx(104.28)
    assert service.balance("gbp") == before


def test_an_invoiced_order_is_taken_off_what_the_customer_owes(service: Any) -> None:
    sent = service.send("gift", "coffee", key="initech", account=None, value=10, codeQuantity=3).json()
    assert cancel(service, sent["reference"], "initech").json()["refunded"] == 30.0
    owed = service.sql(
        "SELECT sum(balance_minor) FROM accounts a JOIN customers c ON c.id = a.customer_id "
        "WHERE c.key = 'initech' AND kind = 'receivable'"
    )
    assert owed[0][0] == 0
    assert service.findings() == []


def test_a_scheduled_order_is_refunded_and_its_mail_never_leaves(service: Any) -> None:
    before = service.balance("gbp")
    at = (datetime.now(UTC) + timedelta(days=2)).isoformat()
    sent = service.send("gift", "coffee", value=10, recipients=RECIPIENTS, sendAt=at).json()
    assert cancel(service, sent["reference"]).json()["cancelledCount"] == 3
    assert service.balance("gbp") == before
    waiting = service.of_order(sent["reference"], "count(*)", "mail_jobs", "AND fanned_out_at IS NULL")
    assert waiting[0][0] == 0
    assert service.findings() == []


def test_messages_that_wait_lose_the_voided_codes(service: Any) -> None:
    reference = service.send("gift", "coffee", value=10, recipients=RECIPIENTS).json()["reference"]
    for email, numbers in (("sam@example.com", [1, 2]), ("kim@example.com", [3])):
        service.sql(
            "INSERT INTO messages (customer_id, order_id, environment, email, line_numbers, due_at, rank_at, created_at) "
            "SELECT customer_id, id, environment, $2, $3, now(), now(), now() FROM orders WHERE reference = $1",
            reference,
            email,
            numbers,
        )
    claim(service, reference, 2)
    cancel(service, reference)
    rows = service.of_order(reference, "email, state, line_numbers", "messages", "ORDER BY id")
    assert [tuple(row) for row in rows] == [("sam@example.com", "pending", [2]), ("kim@example.com", "cancelled", [3])]
