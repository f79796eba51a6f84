"""Addresses and ids of the test lab behave in staging, and are nothing special in production."""

from itertools import product
from typing import Any

import pytest
from tests.lab.conftest import Receiver
from tests.waiting import wait_until
from tests.web.api.conftest import Service
from tests.web.claim.conftest import Recipient

from largesse.base.email import Behaviour, behaviour_of
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.encryption.vault import Vault
from largesse.fulfilment.vouchers import Voucher, add_bought, allocate_all_waiting
from largesse.lab.service import FAILING_FROM, FAILURES

EVENTS = ["gift.sent", "gift.bounced", "gift.claimed", "gift.fulfilled"]


@pytest.fixture
def state_of(staging: Service) -> Any:
    """The state of an order's one message, and of its first line."""

    def read(reference: str) -> tuple[str, str]:
        answer = staging.client("hr-test").get(f"/orders/{reference}/deliveries").json()
        recipients = answer["recipients"] if isinstance(answer, dict) else answer
        return recipients[0]["state"], recipients[0]["lines"][0]["state"]

    return read


@pytest.mark.slow
def test_a_mail_bounces(working: None, send: Any, state_of: Any) -> None:
    for email in ("bounce@test.invalid", "Bounce+7@TEST.invalid"):
        reference = send(email)["reference"]
        assert wait_until(lambda reference=reference: state_of(reference)[0] == "bounced")


@pytest.mark.slow
def test_a_mail_comes_late(staging: Service, working: None, send: Any, state_of: Any) -> None:
    reference, client = send("late@test.invalid")["reference"], staging.client("hr-test")
    wait_until(lambda: staging.sql("SELECT FROM messages WHERE email = 'late@test.invalid' AND attempts = 1"))
    assert state_of(reference)[0] == "pending"
    client.post("/test/clock", json={"advanceSeconds": 3_600}).raise_for_status()
    assert wait_until(lambda: state_of(reference)[0] in {"sent", "captured"})


@pytest.mark.sampled(2)
@pytest.mark.parametrize("gift", [("gift", "coffee", 5), ("collection", "treats", 25)])
def test_a_recipient_claims(
    staging: Service, working: None, receiver: Receiver, send: Any, state_of: Any, gift: tuple[str, str, int]
) -> None:
    staging.client("hr-test").post("/webhooks", json={"targetUrl": receiver.url, "events": EVENTS}).raise_for_status()
    what, name, value = gift
    reference = send("claims+1@test.invalid", what=what, name=name, value=value)["reference"]
    wait_until(lambda: state_of(reference)[1] == "fulfilled")
    wait_until(lambda: set(receiver.events) >= {"gift.sent", "gift.claimed", "gift.fulfilled"})
    assert staging.sql("SELECT FROM captured_mail WHERE claims") == []


def test_a_claim_that_fails_stops_no_other(staging: Service, working: None, send: Any, state_of: Any) -> None:
    """Somebody wrote to the database, so that claims of second lines fail. Their gifts can still be claimed by hand."""
    staging.sql("ALTER TABLE line_states ADD CONSTRAINT fails CHECK (number <> 2 OR state = 'issued') NOT VALID")
    both = [{"email": "claims@test.invalid"}, {"email": "claims+2@test.invalid"}]
    odd = staging.send("gift", "coffee", key="hr-test", account="test-gbp", value=5, recipients=both).json()[
        "reference"
    ]
    usual = send("claims+3@test.invalid")["reference"]
    assert wait_until(lambda: state_of(usual)[1] == "fulfilled")
    assert wait_until(lambda: staging.sql("SELECT FROM captured_mail WHERE claims") == [])
    states = (
        "SELECT s.state FROM line_states s JOIN orders o ON o.id = s.order_id WHERE o.reference = $1 ORDER BY s.number"
    )
    assert [row[0] for row in staging.sql(states, odd)] == ["fulfilled"], "the second is as it was issued"
    staging.sql("ALTER TABLE line_states DROP CONSTRAINT fails")


@pytest.mark.slow
def test_a_gift_waits_for_a_voucher(working: None, send: Any, state_of: Any) -> None:
    reference = send("no-stock@test.invalid")["reference"]
    assert wait_until(lambda: state_of(reference)[1] == "chosen")


def test_what_waits_in_staging_takes_no_number_from_the_stock(service: Service, staging: Service, send: Any) -> None:
    """Staging has the products of production, and its orders cost nothing."""
    reference = send("no-stock@test.invalid")["reference"]
    staging.client("hr-test").post("/test/claim", json={"orderReference": reference}).raise_for_status()
    coffee = service.ids["products"]["coffee"]

    async def serve(database: Database, vault: Vault) -> int:
        async with database.transaction(OPERATOR) as connection:
            assert await add_bought(connection, vault, coffee, 500, Voucher("REAL-1")) is not None
        return await allocate_all_waiting(database, vault)

    assert service.on_pool(serve) == 0
    states = "SELECT s.state FROM line_states s JOIN orders o ON o.id = s.order_id WHERE o.reference = $1"
    assert [row["state"] for row in staging.sql(states, reference)] == ["chosen"]
    # A recipient of production gets it, and need not wait behind the one of staging.
    code, recipient = service.send("gift", "coffee", value=5, codeQuantity=1).json()["codes"][0], Recipient(service)
    assert "REAL-1" in recipient.get(recipient.gift(code)).text


@pytest.mark.slow
def test_a_recipient_never_claims(staging: Service, working: None, send: Any, state_of: Any) -> None:
    reference = send("never@test.invalid")["reference"]
    wait_until(lambda: state_of(reference)[0] in {"sent", "captured"})
    staging.client("hr-test").post("/test/clock", json={"advanceSeconds": 86_400}).raise_for_status()
    claimed = send("claims+after@test.invalid")["reference"]
    wait_until(lambda: state_of(claimed)[1] == "fulfilled")
    assert state_of(reference)[1] == "issued"


@pytest.mark.parametrize(
    ("email", "behaviour"),
    [
        ("bounce@test.invalid", Behaviour.BOUNCE),
        ("LATE+x+y@Test.Invalid", Behaviour.LATE),
        ("bounces@test.invalid", None),
        ("bounce@test.invalid.example.com", None),
        ("bounce@sub.test.invalid", None),
        ("x+bounce@test.invalid", None),
        ("bounce+@test.invalid", Behaviour.BOUNCE),
        (None, None),
    ],
)
def test_an_address_is_recognised(email: str | None, behaviour: Behaviour | None) -> None:
    assert behaviour_of(email) is behaviour


def test_ids_fail_on_purpose(staging: Service, problem: Any) -> None:
    before = staging.state()
    bodies = (
        ("gift", {**staging.body("gift", "coffee", account="test-gbp", value=5), "accountId": 0}, "accountId"),
        ("gift", staging.body("gift", "coffee", account="test-gbp", value=5), "productId"),
        ("collection", staging.body("collection", "treats", account="test-gbp", value=25), "collectionId"),
        ("template", staging.body("template", "welcome", account="test-gbp"), "templateId"),
    )
    for status, failure in FAILURES.items():
        for act, (what, body, member) in product(("send", "quote"), bodies):
            answer = staging.client("hr-test").post(f"/{act}/{what}", json={**body, member: FAILING_FROM + status})
            assert "on purpose" in problem(answer, status, failure().slug)
            assert (answer.headers.get("Retry-After") == "1") is (status in {429, 503})
    assert staging.state() == before


def test_a_used_reference_comes_before_a_failure(staging: Service, problem: Any) -> None:
    body = staging.body("gift", "coffee", account="test-gbp", value=5, externalReference="once")
    assert staging.client("hr-test").post("/send/gift", json=body).status_code == 200
    again = staging.client("hr-test").post("/send/gift", json={**body, "accountId": FAILING_FROM + 503})
    problem(again, 409, "reference-used")


def test_production_knows_none_of_them(service: Service, problem: Any) -> None:
    body = {**service.body("gift", "coffee", value=5), "accountId": FAILING_FROM + 503}
    assert "names no funding account" in problem(service.client("hr").post("/send/gift", json=body), 400)
    answer = service.send("gift", "coffee", value=5, recipients=[{"email": "bounce@test.invalid"}])
    assert "is not an email address" in problem(answer, 400)
