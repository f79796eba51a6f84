"""What campaigns give: as many gifts as were ordered, one to a mailbox, for a right code in time; and what comes back at their end."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.campaigns.conftest import Desk, code_of, on_desk, reserve, taken, work
from tests.reports.conftest import take_all
from tests.web.api.conftest import Service

from largesse.base.errors import InsufficientBalance, NotFound, TooManyRequests
from largesse.campaigns.model import CODES_OF_MAILBOX, State
from largesse.campaigns.service import close_campaign
from largesse.campaigns.visiting import Outcome
from largesse.db.scope import LOOKUP
from largesse.lines.attempts import ADDRESS_REFILL, ASKS_ALLOWANCE
from largesse.orders.acts import cancel_order, read_receipt

HOST = "203.0.113.7"


def ask(service: Service, token: str, *emails: str, host: str = HOST, language: str = "en") -> None:
    """Visitors ask for codes, and the worker decides."""

    async def run(desk: Desk) -> None:
        for email in emails:
            await desk.services.visiting.ask(token, email, host, language)

    on_desk(service, run)
    work(service)


def take(service: Service, token: str, email: str, code: str | None, host: str = HOST) -> Any:
    return on_desk(service, lambda desk: desk.services.visiting.take(token, email, code or "", host))


def prove(service: Service, token: str, email: str, language: str = "en") -> Any:
    ask(service, token, email, language=language)
    return take(service, token, email, code_of(service, email))


def move(service: Service, ahead: timedelta) -> None:
    service.sql("UPDATE clock SET ahead_by = ahead_by + $1", ahead)


def campaign_id(service: Service, token: str) -> int:
    return int(service.sql("SELECT id FROM campaigns WHERE token = $1", token)[0][0])


def test_the_money_is_reserved_at_once_and_the_rest_comes_back_at_the_end(service: Service) -> None:
    before = service.balance("gbp")
    token = reserve(service, gifts=5)
    assert service.balance("gbp") == before - 50
    for name in ("zoe", "yan"):
        assert prove(service, token, f"{name}@acme.example").outcome is Outcome.GIVEN
    move(service, timedelta(days=1, minutes=1))
    work(service)
    assert service.balance("gbp") == before - 20
    work(service)
    assert service.balance("gbp") == before - 20
    states = service.sql(
        """
        SELECT l.recipient_email, s.state FROM lines l JOIN orders o ON o.customer_id = l.customer_id AND o.id = l.order_id
        JOIN campaigns c ON c.order_reference = o.reference
        LEFT JOIN line_states s ON s.customer_id = l.customer_id AND s.order_id = l.order_id AND s.number = l.number
        WHERE c.token = $1 ORDER BY l.number
        """,
        token,
    )
    assert [tuple(row) for row in states] == [
        ("zoe@acme.example", None), ("yan@acme.example", None), *[(None, "cancelled")] * 3
    ]  # fmt: skip
    assert service.sql("SELECT ended_at IS NOT NULL FROM campaigns WHERE token = $1", token)[0][0]
    assert service.findings() == []


@pytest.mark.slow
def test_an_invoiced_customer_reserves_on_its_invoice(service: Service) -> None:
    owed = "SELECT sum(balance_minor) FROM accounts WHERE kind = 'receivable'"
    before = service.sql(owed)[0][0] or 0
    token = reserve(
        service,
        "gil@globex.example",
        gifts=4,
        account_id=None,
        template_id=service.ids["templates"]["hello"],
        domains=("globex.example",),
    )
    assert abs(service.sql(owed)[0][0] - before) == 2000
    assert prove(service, token, "zed@globex.example").outcome is Outcome.GIVEN
    move(service, timedelta(days=2))
    work(service)
    assert abs(service.sql(owed)[0][0] - before) == 500
    assert service.findings() == []


def test_postage_and_vat_are_reserved_as_an_order_would_cost(service: Service) -> None:
    before = service.balance("gbp")
    reserve(service, gifts=3, template_id=service.ids["templates"]["parcel"])
    assert round(before - service.balance("gbp"), 2) == round(3 * 52.14, 2)  # (38.50 + 4.95) * 1.2


def test_what_cannot_be_paid_is_not_reserved(service: Service) -> None:
    with pytest.raises(InsufficientBalance):
        reserve(service, gifts=5, account_id=service.ids["funding_accounts"]["small"])
    token = service.sql("SELECT token FROM campaigns ORDER BY id DESC LIMIT 1")[0][0]
    with pytest.raises(NotFound):
        on_desk(service, lambda desk: desk.services.visiting.see(token))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "again", ["zoe@acme.example", "ZOE@Acme.example", "zoe+2@acme.example", "Zoe+a+b@ACME.EXAMPLE"]
)
def test_a_mailbox_gets_one_gift_and_finds_it_again(service: Service, again: str) -> None:
    token = reserve(service)
    first = prove(service, token, "zoe@acme.example")
    second = prove(service, token, again.rpartition("@")[0] + "@" + again.rpartition("@")[2].lower())
    assert (first.outcome, second.outcome) == (Outcome.GIVEN, Outcome.HAD)
    assert (first.link, first.pin) == (second.link, second.pin)
    assert taken(service, token) == [("zoe@acme.example", 1)]


@pytest.mark.slow
def test_a_code_can_be_sent_twice_and_gives_one_gift(service: Service) -> None:
    token = reserve(service)
    ask(service, token, "zoe@acme.example")
    code = code_of(service, "zoe@acme.example")

    async def twice(desk: Desk) -> Any:
        return await asyncio.gather(
            *(desk.services.visiting.take(token, "zoe@acme.example", code or "", HOST) for _ in range(8))
        )

    visits = on_desk(service, twice)
    assert sorted(visit.outcome.name for visit in visits) == ["GIVEN", *["HAD"] * 7]
    assert len({visit.link for visit in visits}) == 1
    assert len(taken(service, token)) == 1


def test_never_more_than_its_gifts(service: Service) -> None:
    token = reserve(service, gifts=3)
    people = [f"p{number}@acme.example" for number in range(12)]
    ask(service, token, *people)
    codes = {email: code_of(service, email) for email in people}

    async def all_at_once(desk: Desk) -> Any:
        return await asyncio.gather(
            *(desk.services.visiting.take(token, email, codes[email] or "", HOST) for email in people)
        )

    outcomes = [visit.outcome for visit in on_desk(service, all_at_once)]
    assert outcomes.count(Outcome.GIVEN) == 3
    assert outcomes.count(Outcome.NOT_OPEN) == 9
    assert sorted(number for _, number in taken(service, token)) == [1, 2, 3]
    assert on_desk(service, lambda desk: desk.services.visiting.see(token)).state is State.FULL
    assert service.findings() == []


def test_only_its_domains_and_its_list_are_mailed(service: Service) -> None:
    token = reserve(service)
    ask(service, token, "zoe@acme.example", "zoe@sub.acme.example", "zoe@other.example")
    assert code_of(service, "zoe@acme.example")
    assert code_of(service, "zoe@sub.acme.example") is None
    assert code_of(service, "zoe@other.example") is None
    listed = reserve(service, domains=(), mailboxes=("ann@list.example",))
    ask(service, listed, "Ann+x@list.example", "bob@list.example")
    assert code_of(service, "Ann+x@list.example")
    assert code_of(service, "bob@list.example") is None
    assert take(service, listed, "ann@list.example", code_of(service, "Ann+x@list.example")).outcome is Outcome.GIVEN


@pytest.mark.slow
def test_a_mailbox_is_mailed_a_few_codes_an_hour_and_only_the_last_counts(service: Service) -> None:
    token = reserve(service)
    sent = set()
    for _ in range(CODES_OF_MAILBOX + 2):
        ask(service, token, "zoe@acme.example")
        sent.add(code_of(service, "zoe@acme.example"))
    count = "SELECT count(*) FROM messages WHERE kind = 'campaign_code' AND email = 'zoe@acme.example' AND order_id = (SELECT max(order_id) FROM messages)"
    assert service.sql(count)[0][0] == CODES_OF_MAILBOX
    assert len(sent) == CODES_OF_MAILBOX
    # The last requests got no mail: the last code that was mailed stays valid, whoever made them.
    old = code_of(service, "zoe@acme.example")
    assert take(service, token, "zoe@acme.example", old).outcome is Outcome.GIVEN
    move(service, timedelta(hours=1, minutes=1))
    ask(service, token, "zoe@acme.example")
    assert take(service, token, "zoe@acme.example", old).outcome is Outcome.REFUSED
    assert take(service, token, "zoe@acme.example", code_of(service, "zoe@acme.example")).outcome is Outcome.HAD


@pytest.mark.slow
def test_a_code_is_good_for_a_quarter_of_an_hour(service: Service) -> None:
    token = reserve(service)
    ask(service, token, "zoe@acme.example", "yan@acme.example")
    move(service, timedelta(minutes=14, seconds=50))
    assert take(service, token, "zoe@acme.example", code_of(service, "zoe@acme.example")).outcome is Outcome.GIVEN
    move(service, timedelta(seconds=11))
    assert take(service, token, "yan@acme.example", code_of(service, "yan@acme.example")).outcome is Outcome.REFUSED


def wrong(code: str | None) -> str:
    return f"{(int(code or 0) + 1) % 1_000_000:06d}"


@pytest.mark.slow
def test_a_network_that_guesses_waits_and_others_do_not(service: Service) -> None:
    token = reserve(service)
    ask(service, token, "zoe@acme.example")

    async def guess(desk: Desk) -> int:
        for tried in range(200):
            try:
                await desk.services.visiting.take(token, f"p{tried}@acme.example", "000000", HOST)
            except TooManyRequests:
                return tried
        return 200

    assert 100 <= on_desk(service, guess) <= 103
    code = code_of(service, "zoe@acme.example")
    with pytest.raises(TooManyRequests):
        take(service, token, "zoe@acme.example", code)
    assert take(service, token, "zoe@acme.example", code, "198.51.100.9").outcome is Outcome.GIVEN


def test_a_network_asks_for_so_many_codes_and_others_for_more(service: Service) -> None:
    token = reserve(service)
    began_s = 0.0

    async def flood(desk: Desk) -> int:
        nonlocal began_s
        began_s = time.monotonic()
        for asked in range(1_000):
            try:
                await desk.services.visiting.ask(token, f"p{asked}@acme.example", "203.0.113.99", "en")
            except TooManyRequests:
                return asked
        return 1_000

    asked = on_desk(service, flood)
    refilled = (time.monotonic() - began_s) * ASKS_ALLOWANCE / ADDRESS_REFILL.total_seconds()
    assert ASKS_ALLOWANCE <= asked <= ASKS_ALLOWANCE + refilled + 1
    ask(service, token, "zoe@acme.example")
    assert code_of(service, "zoe@acme.example")


def test_it_gives_nothing_before_it_opens_and_after_it_closes(service: Service) -> None:
    now = datetime.now(UTC)
    token = reserve(service, opens_at=now + timedelta(hours=2), closes_at=now + timedelta(hours=4))
    see = lambda: on_desk(service, lambda desk: desk.services.visiting.see(token)).state  # noqa: E731
    assert see() is State.SCHEDULED
    ask(service, token, "zoe@acme.example")
    assert code_of(service, "zoe@acme.example") is None
    move(service, timedelta(hours=2, minutes=1))
    assert see() is State.OPEN
    ask(service, token, "zoe@acme.example")
    code = code_of(service, "zoe@acme.example")
    move(service, timedelta(hours=1, minutes=50))
    ask(service, token, "yan@acme.example")
    late = code_of(service, "yan@acme.example")
    assert code
    move(service, timedelta(minutes=10))
    assert take(service, token, "yan@acme.example", late).outcome is Outcome.NOT_OPEN
    assert see() is State.ENDING
    work(service)
    assert see() is State.ENDED
    assert taken(service, token) == []


def test_one_that_is_ended_before_its_time_refunds_once(service: Service) -> None:
    before = service.balance("gbp")
    token = reserve(service, gifts=5)
    assert prove(service, token, "zoe@acme.example").outcome is Outcome.GIVEN
    number = campaign_id(service, token)
    on_desk(service, lambda desk: close_campaign(desk.actor, number))
    with pytest.raises(NotFound):
        on_desk(service, lambda desk: close_campaign(desk.actor, number))
    work(service)
    assert service.balance("gbp") == before - 10
    acts = service.sql("SELECT act FROM audit_events WHERE subject = $1 ORDER BY id", f"campaign {number}")
    assert [row[0] for row in acts] == ["campaign.created", "campaign.closed", "campaign.refunded"]
    assert service.findings() == []


def test_gifts_that_are_cancelled_from_the_order_are_passed_over(service: Service) -> None:
    before = service.balance("gbp")
    token = reserve(service, gifts=3)
    assert prove(service, token, "zoe@acme.example").outcome is Outcome.GIVEN
    reference = service.sql("SELECT order_reference FROM campaigns WHERE token = $1", token)[0][0]
    ask(service, token, "yan@acme.example", "zoe@acme.example")
    on_desk(service, lambda desk: cancel_order(desk.actor, desk.caller.principal, reference))
    assert on_desk(service, lambda desk: desk.services.visiting.see(token)).state is State.FULL
    assert take(service, token, "yan@acme.example", code_of(service, "yan@acme.example")).outcome is Outcome.NOT_OPEN
    assert take(service, token, "zoe@acme.example", code_of(service, "zoe@acme.example")).outcome is Outcome.WITHDRAWN
    move(service, timedelta(days=2))
    work(service)
    assert service.balance("gbp") == before
    assert service.findings() == []


def test_its_codes_are_nobodys_to_read_but_its_visitors(service: Service) -> None:
    token = reserve(service)
    reference = service.sql("SELECT order_reference FROM campaigns WHERE token = $1", token)[0][0]
    receipt = on_desk(
        service,
        lambda desk: read_receipt(desk.actor, desk.caller.principal, desk.services.vault, "http://x", reference),
    )
    assert receipt.code_count == 20
    assert receipt.codes == []


def test_the_gift_is_mailed_and_the_order_says_to_whom(service: Service) -> None:
    token = reserve(service)
    prove(service, token, "zoe+gift@acme.example")
    rows = service.sql(
        """
        SELECT m.email, m.line_numbers, l.recipient_email, o.source, o.delivery_mode FROM campaigns c
        JOIN orders o ON o.reference = c.order_reference JOIN lines l ON l.customer_id = o.customer_id AND l.order_id = o.id AND l.number = 1
        JOIN messages m ON m.customer_id = o.customer_id AND m.order_id = o.id AND m.kind = 'gift' WHERE c.token = $1
        """,
        token,
    )
    assert [tuple(row) for row in rows] == [
        ("zoe+gift@acme.example", [1], "zoe+gift@acme.example", "campaign", "manual")
    ]
    assert service.findings() == []


def test_the_order_is_found_by_the_address_of_each_visitor(service: Service) -> None:
    token = reserve(service)
    service.on_pool(lambda database, _: take_all(database))  # as the worker does long before anybody comes
    for name in ("zoe", "yan"):
        prove(service, token, f"{name}@acme.example")
    found = service.sql("SELECT word FROM report_words WHERE word LIKE '%@acme.example' ORDER BY word")
    assert {"yan@acme.example", "zoe@acme.example"} <= {row["word"] for row in found}
    # The worker does not read all recipients again for each visitor.
    assert service.sql("SELECT FROM order_changes WHERE texts") == []
    assert service.findings() == []


def test_a_visitor_before_the_worker_knows_the_order_is_found_as_well(service: Service) -> None:
    prove(service, reserve(service), "xia@acme.example")
    service.on_pool(lambda database, _: take_all(database))
    assert service.sql("SELECT FROM report_words WHERE word IN ('xia@acme.example', 'acme')")
    assert service.findings() == []


def test_another_environment_does_not_know_the_link(service: Service) -> None:
    token = reserve(service)

    async def look(desk: Desk) -> Any:
        async with desk.services.database.transaction(LOOKUP) as connection:
            return await connection.fetch("SELECT * FROM campaign_of_token($1, 'staging')", token)

    assert on_desk(service, look) == []
