"""The test clock: what is weeks away in staging happens at once, and in production nothing of it is there."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.lab.conftest import Receiver
from tests.waiting import wait_until
from tests.web.api.conftest import RICH_WORLD, Service

_OTHER = "      - {key: globex-gbp, name: Globex float, master: true, currency: GBP, balance: 1000.00}\n"
_TEST_YEN = (
    "      - {key: test-jpy, name: Test yen, master: true, currency: JPY, environment: staging, balance: 100000}\n"
)
WORLD = RICH_WORLD.replace(
    _OTHER,
    _OTHER + _OTHER.replace("globex-gbp,", "globex-test-gbp, environment: staging,").replace("float", "test float"),
).replace("    templates:\n", _TEST_YEN + "    templates:\n", 1)
WITHIN_S = 10.0
DAY_S = 86_400


@pytest.fixture
def advance(staging: Service) -> Callable[..., dict[str, Any]]:
    def advancing(**members: Any) -> dict[str, Any]:
        answer = staging.client("hr-test").post("/test/clock", json=members)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    return advancing


@pytest.fixture
def subscribe(staging: Service, receiver: Receiver) -> Iterator[Callable[..., str]]:
    """Subscribes the receiver to events until the test ends."""
    client, ids = staging.client("hr-test"), []

    def subscribing(*events: str) -> str:
        answer = client.post("/webhooks", json={"targetUrl": receiver.url, "events": events})
        assert answer.status_code == 201, answer.text
        ids.append(str(answer.json()["id"]))
        return ids[-1]

    yield subscribing
    for one in ids:
        client.delete(f"/webhooks/{one}").raise_for_status()


@pytest.mark.slow
def test_a_schedule_weeks_ahead_is_reached_at_once(
    staging: Service, working: None, receiver: Receiver, send: Any, advance: Any, subscribe: Any
) -> None:
    subscribe("gift.sent")
    waiting = advance(advanceSeconds=0)["moved"]
    at = datetime.now(UTC) + timedelta(weeks=6)
    order = send("sam@example.com", sendAt=at.isoformat())
    client = staging.client("hr-test")
    due_at = datetime.fromisoformat(client.get("/test/clock").json()["nextDueAt"])
    assert due_at <= at
    early = client.post("/test/claim", json={"orderReference": order["reference"]})
    assert early.status_code == 409
    began_s = time.monotonic()
    nearer = advance(advanceSeconds=5 * 7 * DAY_S)
    assert (nearer["advancedSeconds"], nearer["moved"]) == (5 * 7 * DAY_S, waiting + 1)
    left = datetime.fromisoformat(client.get(f"/orders/{order['reference']}").json()["scheduledFor"]) - at
    assert left == -timedelta(weeks=5)
    assert "gift.sent" not in receiver.events
    advance(advanceSeconds=7 * DAY_S)
    wait_until(lambda: "gift.sent" in receiver.events)
    assert time.monotonic() - began_s < WITHIN_S
    (audited,) = staging.sql(
        "SELECT after::text FROM audit_events WHERE act = 'clock.advanced' ORDER BY id DESC LIMIT 1 OFFSET 1"
    )
    assert audited["after"] == '{"seconds":3024000}'
    claimed = client.post("/test/claim", json={"orderReference": order["reference"]})
    assert claimed.json()["state"] == "fulfilled"


@pytest.mark.slow
def test_the_twelfth_attempt_of_a_webhook_is_reached_at_once(
    staging: Service, working: None, receiver: Receiver, advance: Any, subscribe: Any
) -> None:
    receiver.status = 500
    subscription = subscribe("gift.claimed")
    client = staging.client("hr-test")
    client.post("/test/events", json={"event": "gift.claimed"}).raise_for_status()
    began_s = time.monotonic()

    def delivery() -> Any:
        return client.get(f"/webhooks/{subscription}/deliveries").json()[0]

    wait_until(lambda: receiver.events)
    for made in range(1, 12):
        wait_until(lambda made=made: len(delivery()["attempts"]) == made)
        advance(to=delivery()["nextAttemptAt"])
    wait_until(lambda: delivery()["state"] == "exhausted")
    assert time.monotonic() - began_s < WITHIN_S
    assert receiver.events == ["gift.claimed"] * 12
    assert delivery()["nextAttemptAt"] is None


@pytest.mark.slow
def test_a_claimed_gift_expires_at_once(
    staging: Service, working: None, receiver: Receiver, send: Any, advance: Any, subscribe: Any
) -> None:
    subscribe("gift.expired")
    order = send("sam@example.com", what="collection", name="treats", value=25)
    client = staging.client("hr-test")
    claimed = client.post("/test/claim", json={"orderReference": order["reference"]}).json()
    assert claimed["state"] == "claimed"
    began_s = time.monotonic()
    advance(advanceSeconds=364 * DAY_S)
    lines = client.get(f"/orders/{order['reference']}/deliveries").json()[0]["lines"]
    assert lines[0]["state"] == "claimed"
    advance(advanceSeconds=2 * DAY_S)
    wait_until(lambda: "gift.expired" in receiver.events)
    assert time.monotonic() - began_s < WITHIN_S


def test_a_claim_by_date_is_reached_at_once(
    staging: Service, working: None, receiver: Receiver, send: Any, advance: Any, subscribe: Any
) -> None:
    subscribe("gift.cancelled")
    by = datetime.now(UTC) + timedelta(days=30)
    order = send("never@test.invalid", claimBy=by.isoformat())
    account = "SELECT balance_minor FROM accounts WHERE id = $1"
    (before,) = staging.sql(account, staging.ids["funding_accounts"]["test-gbp"])
    began_s = time.monotonic()
    advance(advanceSeconds=31 * DAY_S)
    wait_until(lambda: "gift.cancelled" in receiver.events)
    assert time.monotonic() - began_s < WITHIN_S
    claimed = staging.client("hr-test").post("/test/claim", json={"orderReference": order["reference"]})
    assert claimed.status_code == 409
    (after,) = staging.sql(account, staging.ids["funding_accounts"]["test-gbp"])
    assert after["balance_minor"] - before["balance_minor"] == 500


@pytest.mark.slow
def test_each_reminder_is_reached_at_once_by_day_and_by_night(
    staging: Service, working: None, send: Any, advance: Any
) -> None:
    """One of the two countries has night, or early morning, whenever the test runs."""
    for country, product, value in (("GB", "coffee", 5), ("JP", "ramen", 500)):
        account = staging.ids["funding_accounts"]["test-gbp" if country == "GB" else "test-jpy"]
        order = send(
            "never@test.invalid", name=product, value=value, country=country, accountId=account, reminderDays=[3, 10]
        )

        def reminded(reference: str = order["reference"]) -> list[str]:
            rows = staging.sql(
                "SELECT kind FROM messages JOIN orders AS o ON o.id = order_id WHERE o.reference = $1"
                " AND messages.state IN ('sent', 'captured') ORDER BY messages.id",
                reference,
            )
            return [row["kind"] for row in rows]

        wait_until(lambda reminded=reminded: reminded() == ["gift"])
        began_s = time.monotonic()
        advance(advanceSeconds=3 * DAY_S)
        wait_until(lambda reminded=reminded: reminded() == ["gift", "reminder_1"])
        advance(to=staging.client("hr-test").get("/test/clock").json()["nextDueAt"])
        wait_until(lambda reminded=reminded: reminded() == ["gift", "reminder_1", "reminder_2"])
        assert time.monotonic() - began_s < WITHIN_S


def test_time_that_passes_before_a_worker_looks_counts_for_what_is_due(
    staging: Service, send: Any, advance: Any
) -> None:
    """Two advances at once are one of both: the first made a reminder due, which counts its days as the next one does."""
    order = send("never@test.invalid", reminderDays=[3, 10])
    for days in (3, 7):
        advance(advanceSeconds=days * DAY_S)
    [row] = staging.sql(
        "SELECT o.created_at - f.sent_at AS passed FROM follow_ups f JOIN orders o ON o.id = f.order_id WHERE o.reference = $1",
        order["reference"],
    )
    assert row["passed"] == timedelta(days=10)


@pytest.mark.slow
def test_nothing_of_production_and_of_another_customer_moves(
    service: Service, staging: Service, advance: Any, send: Any
) -> None:
    advance(advanceSeconds=8 * DAY_S)
    waiting = advance(advanceSeconds=0)["moved"]
    at = datetime.now(UTC) + timedelta(days=9)
    members = {"recipients": [{"email": "sam@example.com"}], "sendAt": at.isoformat(), "value": 5}
    ours = service.send("gift", "coffee", **members)
    theirs = staging.send("gift", "coffee", key="globex-test", account="globex-test-gbp", **members)
    assert (ours.status_code, theirs.status_code) == (200, 200), theirs.text

    def due() -> list[Any]:
        return service.sql(
            "SELECT due_at FROM mail_jobs JOIN orders ON orders.id = order_id WHERE reference = ANY($1) ORDER BY order_id",
            [answer.json()["reference"] for answer in (ours, theirs)],
        )

    before = due()
    assert advance(advanceSeconds=0)["moved"] == waiting
    own = send("sam@example.com", sendAt=at.isoformat())
    assert advance(advanceSeconds=8 * DAY_S)["moved"] == waiting + 1
    assert due() == before
    assert [row["due_at"] for row in before] == [at, at]
    orders = {
        row["reference"]: row["scheduled_for"] for row in service.sql("SELECT reference, scheduled_for FROM orders")
    }
    assert orders[own["reference"]] == at - timedelta(days=8)
    assert orders[theirs.json()["reference"]] == at
    assert "/test/clock" not in service.client().get("/openapi.json").json()["paths"]
    for path in ("/test/clock", "/test/claim"):
        assert service.client("hr").post(path, json={}).status_code == 404
    assert service.client("hr").get("/test/clock").status_code == 404


def test_a_time_without_an_offset_is_utc(staging: Service) -> None:
    soon = (datetime.now(UTC) + timedelta(seconds=30)).replace(tzinfo=None).isoformat()
    advanced = staging.client("hr-test").post("/test/clock", json={"to": soon})
    assert advanced.status_code == 200
    assert 0 < advanced.json()["advancedSeconds"] <= 30


def test_the_clock_only_goes_forward(staging: Service, problem: Any) -> None:
    client = staging.client("hr-test")
    yesterday = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    for body in (
        {"to": yesterday},
        {"to": yesterday.removesuffix("+00:00")},
        {"advanceSeconds": -1},
        {"advanceSeconds": -(10**12)},
    ):
        assert "only goes forward" in problem(client.post("/test/clock", json=body), 409, "state-conflict")
    for body, said in (
        ({}, "either `advanceSeconds` or `to`"),
        ({"advanceSeconds": 1, "to": yesterday}, "either `advanceSeconds` or `to`"),
        ({"advanceSeconds": 3_661 * DAY_S}, "`advanceSeconds` must be at most 3660 days"),
        ({"advanceSeconds": 10**15}, "`advanceSeconds` must be at most 3660 days"),
        ({"to": "9999-12-31T23:59:59Z"}, "`to` must be at most 3660 days"),
        ({"to": "soon"}, "`to`"),
        ({"advanceSeconds": 1.5}, "`advanceSeconds`"),
    ):
        assert said in problem(client.post("/test/clock", json=body), 400)


def test_a_schedule_that_was_moved_is_marked(staging: Service, send: Any, advance: Any) -> None:
    """`largesse verify` finds orders that were changed from outside: these bear a mark of their change."""
    order = send("sam@example.com", sendAt=(datetime.now(UTC) + timedelta(days=9)).isoformat())
    advance(advanceSeconds=8 * DAY_S)
    (row,) = staging.sql("SELECT placed_digest, mac FROM orders WHERE reference = $1", order["reference"])
    assert row["placed_digest"] is not None
    assert row["mac"] is not None
