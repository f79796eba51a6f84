"""Claim-by dates in the web application: in a send, on the page of an order, and the company's default."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest
from tests.distributed import IS_DISTRIBUTED
from tests.plans import rows_read
from tests.web.api.conftest import Service, held, on_database, work_off
from tests.web.console.conftest import Browser
from tests.web.console.sending import WORLD, begin, browser_text, place, ready

from largesse.db.roles import Role
from largesse.orders import claim_by_store
from largesse.orders.tasks import follow_up

__all__ = ["WORLD"]


@pytest.fixture(autouse=True)
def left_as_it_was(service: Service) -> Iterator[None]:
    yield
    service.sql("UPDATE customers SET follow_up = NULL")


def day(days: int) -> date:
    return datetime.now(UTC).date() + timedelta(days=days)


def work(service: Service) -> None:
    work_off(service, follow_up)


def deliver(browser: Browser, service: Service, path: str, **fields: str) -> httpx.Response:
    browser.get(f"{path}/delivery")
    account = str(service.ids["funding_accounts"]["gbp"])
    return browser.post(f"{path}/delivery", **{"when": "now", "account": account, "reference": "", **fields})


def claim_by(service: Service, reference: str) -> datetime | None:
    rows = service.of_order(reference, "claim_by", "follow_ups")
    return rows[0][0] if rows else None


@pytest.mark.slow
def test_a_send_has_a_date_and_the_review_says_what_happens(ada: Browser, service: Service) -> None:
    path = ready(ada, service)
    deliver(ada, service, path, claim_by=str(day(20)))
    ada.sees(f"{path}/review", "Unclaimed gifts are then cancelled and refunded in full.")
    assert "at any time" not in ada.text
    assert "Recipients can open their gift until" in ada.text
    assert "Claim it by" in ada.get(f"{path}/claim").text
    reference = place(ada, path)
    assert "Recipients can open their gift until" in ada.get(f"{path}/sent").text
    assert claim_by(service, reference) == datetime.combine(day(20), time(23, 59, 59), UTC)


def test_without_a_day_nothing_is_stored(ada: Browser, service: Service) -> None:
    assert claim_by(service, place(ada, ready(ada, service))) is None


DAY_IS_OVER = "The gifts leave after this day. Choose a later one."


@pytest.mark.parametrize(
    ("fields", "wrong", "said"),
    [
        ({"claim_by": "soon"}, "claim_by", "Type a date, such as 31 December 2026. “soon” cannot be read."),
        ({"claim_by": "2020-01-01"}, "claim_by", DAY_IS_OVER),
        ({"claim_by": "9999-12-31"}, "claim_by", "Choose a day at most 3,650 days after the gifts leave."),
        ({"when": "later", "at": f"{day(10)}T09:00", "claim_by": str(day(9))}, "claim_by", DAY_IS_OVER),
        ({"when": "later", "at": f"{day(10)}T02:00", "claim_by": str(day(10))}, "claim_by", "Recipients"),
        ({"reminder_days": "3, 30", "claim_by": str(day(20))}, "reminder_days", "The last reminder would leave"),
        *(
            ({"reminder_days": typed}, "reminder_days", "")
            for typed in ("soon", "0", "366", "10, 3", "3, 3", "1, 2, 3, 4", "1.5", "-2")
        ),
    ],
)
def test_a_day_that_cannot_be_is_said_beside_its_field_and_nothing_is_lost(
    ada: Browser, service: Service, fields: dict[str, str], wrong: str, said: str
) -> None:
    path = ready(ada, service)
    answer = deliver(ada, service, path, reference="Keep me", **fields)
    assert answer.status_code == 422
    assert f'id="{wrong}-error">{said}' in answer.text
    assert f'value="{fields[wrong]}"' in answer.text
    assert 'value="Keep me"' in answer.text


def test_the_default_is_filled_in_and_can_be_taken_out(ada: Browser, service: Service) -> None:
    assert ada.submit("/app/unclaimed", claim_by_days="30").status_code == 303
    path = ready(ada, service)  # which has emptied the day
    assert claim_by(service, place(ada, path)) is None
    path = begin(ada, service)
    assert f'value="{day(30)}"' in ada.get(f"{path}/delivery").text
    assert "Filled in from your company's settings." in ada.text.replace("&#39;", "'")


@pytest.mark.parametrize("typed", ["0", "3651", "soon", "-1", "1.5"])
def test_a_default_that_cannot_be_is_refused(ada: Browser, service: Service, typed: str) -> None:
    answer = ada.submit("/app/unclaimed", claim_by_days=typed, of_api="yes")
    assert answer.status_code == 422
    assert "Type a whole number from 1 to 3,650, or leave it empty." in answer.text
    assert f'value="{typed}"' in answer.text
    assert service.sql("SELECT follow_up FROM customers WHERE key = 'acme'")[0][0] is None


def test_the_default_is_in_the_audit_log(ada: Browser, service: Service) -> None:
    ada.submit("/app/unclaimed", claim_by_days="45", of_api="yes")
    assert "changed what happens to gifts that nobody claims" in ada.read("/app/audit")
    [stored] = service.sql("SELECT follow_up::text FROM customers WHERE key = 'acme'")
    assert stored[0] == '{"of_api": true, "claim_by_days": 45}'


def ordered(browser: Browser, service: Service, days: int = 20) -> tuple[str, str]:
    """Returns the reference of an order with a date, and the date as its page names it."""
    path = ready(browser, service)
    deliver(browser, service, path, claim_by=str(day(days)))
    reference = place(browser, path)
    at = claim_by(service, reference)
    assert at is not None
    return reference, at.isoformat()


def test_people_give_more_time_and_never_less(ada: Browser, cem: Browser, service: Service) -> None:
    reference, seen = ordered(ada, service)
    page = f"/app/orders/{reference}"
    assert "Give more time" in ada.read(page)
    for earlier in (day(19), day(20)):
        answer = ada.post(f"{page}/claim-by", seen=seen, claim_by=str(earlier))
        assert answer.status_code == 422
        assert "Choose a later day: recipients know the date they were given." in answer.text
        ada.get(page)
    assert ada.post(f"{page}/claim-by", seen=seen, claim_by="").status_code == 422
    assert ada.submit(page, f"{page}/claim-by", seen=seen, claim_by=str(day(30))).status_code == 303
    assert "Ada moved the claim-by date from" in ada.read(page)
    ada.post(f"{page}/claim-by", seen=seen, claim_by=str(day(40)))
    assert "Somebody else has just changed the claim-by date" in ada.read(page)
    moved = claim_by(service, reference)
    assert moved is not None
    assert moved.date() == day(30)
    assert cem.submit("/app", f"{page}/claim-by", seen=moved.isoformat(), claim_by=str(day(50))).status_code == 403
    assert claim_by(service, reference) == moved
    [act] = service.sql("SELECT act FROM audit_events WHERE subject = $1", f"order {reference}")
    assert act[0] == "order.claim_by_moved"


@pytest.mark.slow
def test_after_the_date_the_page_says_what_came_back(ada: Browser, service: Service) -> None:
    reference, seen = ordered(ada, service, days=2)
    page = f"/app/orders/{reference}"
    # The session would end before the clock had come to the date.
    service.sql(
        "UPDATE follow_ups f SET claim_by = created_at, due_at = created_at FROM orders o "
        "WHERE o.customer_id = f.customer_id AND o.id = f.order_id AND reference = $1",
        reference,
    )
    work(service)
    ada.get(page)
    text = browser_text(ada.text)
    assert "2 gifts were not claimed in time: £20.00 came back" in text
    assert "The gifts could be claimed until" in text
    assert "Give more time" not in text
    assert "Refunded £20.00" in text
    assert "Refund" in text
    assert "Not claimed in time" in text
    ada.post(f"{page}/claim-by", seen=seen, claim_by=str(day(30)))
    assert "The claim-by date has passed: it cannot be changed any more." in ada.read(page)


@pytest.mark.skipif(IS_DISTRIBUTED, reason="that the change waits for its person does not show on a cluster")
def test_a_date_that_is_carried_out_while_its_change_waits_is_not_moved(ada: Browser, service: Service) -> None:
    reference, seen = ordered(ada, service)
    page, person = f"/app/orders/{reference}", "SELECT FROM users WHERE email = 'ada@acme.example' FOR UPDATE"
    ada.get(page)
    with ThreadPoolExecutor(1) as pool:
        with held(service, person) as waits:
            late = pool.submit(ada.post, f"{page}/claim-by", seen=seen, claim_by=str(day(30)))
            assert waits(1)
            # Only for the worker: a transaction that has begun goes by the time at its start.
            service.sql("UPDATE clock SET ahead_by = '21 days'")
            work(service)
            service.sql("UPDATE clock SET ahead_by = '0'")
        assert late.result().status_code == 303
    assert "The claim-by date has passed: it cannot be changed any more." in ada.read(page)
    assert str(claim_by(service, reference)) == str(datetime.fromisoformat(seen))


def test_a_schedule_cannot_be_moved_past_the_date(ada: Browser, service: Service) -> None:
    path = ready(ada, service)
    deliver(ada, service, path, when="later", at=f"{day(5)}T09:00", claim_by=str(day(10)))
    reference = place(ada, path)
    [row] = service.sql("SELECT scheduled_for FROM orders WHERE reference = $1", reference)
    page = f"/app/orders/{reference}"
    answer = ada.submit(page, f"{page}/schedule", seen=row[0].isoformat(), when="later", at=f"{day(10)}T02:00")
    assert answer.status_code == 422
    assert "Recipients would have less than a day until the claim-by date. Move that first" in answer.text


def test_days_and_times_are_those_of_the_persons_zone(ada: Browser, service: Service) -> None:
    """New York is four hours behind UTC in summer, and five in winter."""

    def dates() -> tuple[str, str]:
        [row] = service.sql("SELECT scheduled_for FROM orders WHERE reference = $1", reference)
        until = claim_by(service, reference)
        assert until is not None
        return f"{row[0]:%Y-%m-%d %H:%M}", f"{until:%Y-%m-%d %H:%M:%S}"

    service.sql("UPDATE people SET zone = 'America/New_York' WHERE email = 'ada@acme.example'")
    try:
        path = ready(ada, service)
        deliver(ada, service, path, when="later", at="2031-07-01T21:30", claim_by="2031-07-20")
        reference = place(ada, path)
        assert dates() == ("2031-07-02 01:30", "2031-07-21 03:59:59")
        page, seen = f"/app/orders/{reference}", claim_by(service, reference)
        assert seen is not None
        assert ada.submit(page, f"{page}/claim-by", seen=seen.isoformat(), claim_by="2031-12-20").status_code == 303
        [row] = service.sql("SELECT scheduled_for FROM orders WHERE reference = $1", reference)
        later = {"seen": row[0].isoformat(), "when": "later", "at": "2031-12-01T21:30"}
        assert ada.submit(page, f"{page}/schedule", **later).status_code == 303
        assert dates() == ("2031-12-02 02:30", "2031-12-21 04:59:59")
    finally:
        service.sql("UPDATE people SET zone = NULL WHERE email = 'ada@acme.example'")


def test_a_time_keeps_its_moment_if_the_zone_changes_while_its_form_is_open(ada: Browser, service: Service) -> None:
    path = ready(ada, service)
    fields = {"when": "later", "at": "2031-07-01T09:00", "claim_by": "2031-07-20", "reference": ""}
    account = str(service.ids["funding_accounts"]["gbp"])
    for times_in, sent_at, until in (
        ("UTC", "2031-07-01 09:00", "2031-07-20 23:59:59"),
        ("Asia/Tokyo", "2031-07-01 00:00", "2031-07-20 14:59:59"),
        ("Nowhere", "2031-07-01 13:00", "2031-07-21 03:59:59"),  # in the person's own zone
    ):
        assert 'name="times_in" value="UTC"' in ada.get(f"{path}/delivery").text
        service.sql("UPDATE people SET zone = 'America/New_York' WHERE email = 'ada@acme.example'")
        try:
            ada.post(f"{path}/delivery", **fields, account=account, times_in=times_in)
        finally:
            service.sql("UPDATE people SET zone = NULL WHERE email = 'ada@acme.example'")
        [row] = service.sql(
            "SELECT content->>'send_at', content->>'claim_by' FROM drafts WHERE id = $1", path.split("/")[-1]
        )
        assert [one.replace("T", " ").removesuffix("Z") for one in row] == [f"{sent_at}:00", until]


def test_the_default_is_so_many_days_later_in_every_zone(ada: Browser, service: Service) -> None:
    service.sql("UPDATE customers SET follow_up = '{\"claim_by_days\": 30}' WHERE key = 'acme'")
    path = begin(ada, service)
    for zone in ("Pacific/Auckland", "Pacific/Honolulu"):
        service.sql("UPDATE people SET zone = $1 WHERE email = 'ada@acme.example'", zone)
        before = datetime.now(ZoneInfo(zone)).date()
        shown = ada.get(f"{path}/delivery").text
        service.sql("UPDATE people SET zone = NULL WHERE email = 'ada@acme.example'")
        days = {one + timedelta(days=30) for one in (before, datetime.now(ZoneInfo(zone)).date())}
        assert any(f'name="claim_by" type="date" value="{one}"' in shown for one in days)


def reminders(service: Service, reference: str) -> list[int]:
    rows = service.of_order(reference, "reminder_days", "follow_ups")
    return rows[0][0] if rows else []


def test_a_send_has_reminders_and_the_page_of_the_order_says_so(ada: Browser, service: Service) -> None:
    path = ready(ada, service)
    deliver(ada, service, path, reminder_days="3, 10")
    assert "Days after sending: 3, 10" in ada.read(f"{path}/review")
    reference = place(ada, path)
    assert reminders(service, reference) == [3, 10]
    assert "Days after sending: 3, 10" in ada.read(f"/app/orders/{reference}")


def test_reminders_have_a_default_that_people_can_take_out(ada: Browser, service: Service) -> None:
    refused = ada.submit("/app/unclaimed", claim_by_days="5", reminder_days="3, 9")
    assert refused.status_code == 422
    assert ada.submit("/app/unclaimed", claim_by_days="", reminder_days="3, 9").status_code == 303
    path = begin(ada, service)
    assert 'value="3, 9"' in ada.get(f"{path}/delivery").text
    path = ready(ada, service)
    deliver(ada, service, path, reminder_days="")
    assert reminders(service, place(ada, path)) == []


@pytest.mark.skipif(IS_DISTRIBUTED, reason="what a node reads is not among what its coordinator explains")
def test_the_list_of_the_command_reads_no_more_than_it_shows(service: Service) -> None:
    service.sql(
        """
        INSERT INTO follow_ups (customer_id, order_id, environment, claim_by, due_at, sent_at)
        SELECT 1, 1000000 + n, 'production', now() + interval '1 year', now() + n * interval '1 day', now() FROM generate_series(1, 2000) AS n
        """
    )

    async def read(connection: Any) -> int:
        await connection.execute("ANALYZE follow_ups")
        return await rows_read(connection, Role.OPERATOR, "follow_ups", claim_by_store._LIST, None, 10)

    assert on_database(service.database_url, read) == 10
    service.sql("DELETE FROM follow_ups WHERE order_id > 1000000")
