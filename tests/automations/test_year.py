"""A year of automations: exactly the right gifts, each once, whatever stops in between."""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta

import pytest
from tests.automations.conftest import WORLD, add_contact, approve_all, move_to, perform, placed, rule, runs, work
from tests.conftest import Template
from tests.privacy.conftest import Run, dump, run
from tests.web.api.conftest import Service, on_database, services_on

from largesse.automations.model import RunKey
from largesse.automations.run_store import count_used
from largesse.automations.service import (
    OwnAutomation,
    approve_automation,
    change_automation,
    end_automation,
    pause_automation,
    skip_day,
)
from largesse.automations.tasks import TASKS
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.encryption.vault import Vault
from largesse.jobs.registry import age_s
from largesse.lines.states import LineKey
from largesse.notes.service import write_note

__all__ = ["run"]

# A run as a process leaves it that dies after it placed the order.
DEAD = "state = 'placing', order_reference = NULL, look_at = clock_now(), ended_at = NULL"


@pytest.fixture
def service(template: Template, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One of each test's own: `verify` would find orders of a later year, whose gifts another test has removed."""
    with services_on(template, tmp_path_factory) as start:
        yield start(WORLD)


@pytest.mark.slow
def test_a_year_day_by_day(service: Service, automation: Callable[..., int]) -> None:
    move_to(service, "2027-11-01 06:00Z")
    leap = add_contact(service, "Leap", birthday=229)
    may = add_contact(service, "May", birthday=515, start_date=date(2026, 6, 1))
    add_contact(service, "Left", birthday=516, left_at=datetime(2027, 1, 1, tzinfo=UTC))
    weekend = add_contact(service, "Weekend", birthday=108)  # a Saturday in 2028
    america = add_contact(service, "Sam", birthday=704, country="US")
    automation(leap_day="after", weekend="before")
    automation(name="Anniversaries", occasion="anniversary", years=(1, 2))
    for day in range(0, 500, 2):
        at = date(2027, 11, 1) + timedelta(days=day)
        if runs_around(service, at):
            move_to(service, f"{at} 23:30Z")
            work(service)
    assert [(name, str(day)) for name, day, state in runs(service) if state == "placed"] == [
        ("Weekend", "2028-01-08"),
        ("Leap", "2028-02-29"),
        ("May", "2028-05-15"),
        ("May", "2028-06-01"),
        ("Sam", "2028-07-04"),
        ("Weekend", "2029-01-08"),
        ("Leap", "2029-03-01"),
    ]
    orders = [*placed(service, 2027), *placed(service, 2028), *placed(service, 2029)]
    assert len(set(orders)) == len(orders) == 7
    sent_on = {
        (row["contact_id"], str(row["on_day"])): str(row["send_on"])
        for row in service.sql("SELECT contact_id, on_day, send_on FROM automation_runs")
    }
    assert sent_on[weekend, "2028-01-08"] == "2028-01-07"
    due = service.sql("SELECT due_at FROM automation_runs WHERE contact_id = $1", america)[0][0]
    assert due.astimezone(UTC).hour in {13, 14, 15, 16, 17, 18, 19}, "nine o'clock there"
    assert {leap, may} <= {
        row["contact_id"] for row in service.sql("SELECT contact_id FROM automation_runs WHERE state = 'placed'")
    }
    assert service.findings() == []


def runs_around(service: Service, day: date) -> bool:
    """Whether anybody has a day around that one: the days between are left out, to be quick."""
    keys = [(day + timedelta(days=at)) for at in range(-3, 5)]
    return any(
        (at.month, at.day) in {(1, 8), (2, 28), (2, 29), (3, 1), (5, 15), (5, 16), (6, 1), (7, 4)} for at in keys
    )


def test_a_process_that_dies_sends_nothing_twice(service: Service, automation: Callable[..., int]) -> None:
    move_to(service, "2040-05-14 06:00Z")
    add_contact(service, "May", birthday=515)
    automation()
    move_to(service, "2040-05-15 10:00Z")
    work(service)
    assert len(placed(service, 2040)) == 1
    before = placed(service, 2040)
    # What a process leaves that ends after its order was placed, and one that ends before it.
    service.sql(
        "UPDATE automation_runs SET state = 'placing', order_reference = NULL, look_at = clock_now(), ended_at = NULL"
    )
    work(service)
    assert [state for _, _, state in runs(service)] == ["placed"]
    assert placed(service, 2040) == before
    assert service.findings() == []


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM contacts",
        "UPDATE automations SET paused_at = clock_now()",
        "UPDATE users SET is_active = false WHERE name = 'Ada'",
        "UPDATE templates SET removed_at = clock_now()",
    ],
)
def test_what_a_process_placed_before_it_died_is_recorded_whatever_changed(
    service: Service, automation: Callable[..., int], change: str
) -> None:
    move_to(service, "2041-05-14 06:00Z")
    add_contact(service, "May", birthday=515)
    automation(cap=1)
    move_to(service, "2041-05-15 10:00Z")
    work(service)
    service.sql(f"UPDATE automation_runs SET {DEAD}")
    service.sql(change)
    work(service)
    [run] = service.sql("SELECT state, reason, order_reference FROM automation_runs")
    [order] = service.sql("SELECT reference FROM orders")
    assert tuple(run) == ("placed", None, order["reference"])
    assert service.findings() == []


def test_a_note_about_a_gift_of_an_automation_is_read_and_not_mailed(
    service: Service, automation: Callable[..., int]
) -> None:
    move_to(service, "2040-05-14 06:00Z")
    add_contact(service, "May", birthday=515)
    automation()
    move_to(service, "2040-05-15 10:00Z")
    work(service)
    [line] = service.sql("SELECT customer_id, order_id, number FROM lines")

    async def write(database: Database, vault: Vault) -> bool:
        async with database.transaction(OPERATOR) as connection:
            return await write_note(connection, vault, LineKey(*line), "production", "Thank you!")

    assert service.on_pool(write)
    assert service.sql("SELECT name FROM thank_you_notes n JOIN users u ON u.id = n.user_id") == [("Ada",)]
    assert service.sql("SELECT kind FROM people_mails") == []


def test_the_cap_is_of_a_month_and_holds(service: Service, automation: Callable[..., int]) -> None:
    move_to(service, "2041-05-13 06:00Z")
    for number in range(7):
        add_contact(service, f"P{number}", birthday=514 + number % 2)
    add_contact(service, "June", birthday=601)
    own = automation(cap=3)
    for minute in range(3):
        move_to(service, f"2041-05-15 12:0{minute}Z")
        work(service)
    move_to(service, "2041-06-01 12:00Z")
    work(service)
    assert Counter(state for _, _, state in runs(service)) == {"placed": 4, "skipped": 4}
    assert Counter(name for name, day, state in runs(service) if state == "placed" and day.month == 5) == {
        "P0": 1,
        "P2": 1,
        "P4": 1,
    }, "the first of the month"
    assert ("June", date(2041, 6, 1), "placed") in runs(service)
    may = RunKey(1, own, 0, date(2041, 5, 31))
    assert on_database(service.database_url, lambda connection: count_used(connection, may, may.on_day)) == (3, 0, None)
    assert {row[0] for row in service.sql("SELECT reason FROM automation_runs WHERE state = 'skipped'")} == {"cap"}


def test_gifts_behind_refused_ones_wait_as_long_as_those(service: Service, automation: Callable[..., int]) -> None:
    """They were looked at every five seconds for three days."""
    move_to(service, "2046-06-14 06:00Z")
    for number in range(6):
        add_contact(service, f"P{number}", birthday=615)
    automation(cap=4)
    service.sql("UPDATE users SET is_active = false WHERE name = 'Ada'")
    for second in (0, 10):
        move_to(service, f"2046-06-15 12:00:{second}Z")
        work(service)
    soon = "SELECT count(*) FROM automation_runs WHERE look_at < clock_now() + interval '50 minutes'"
    assert service.sql(soon) == [(0,)]
    service.sql("UPDATE users SET is_active = true WHERE name = 'Ada'")
    for minute in (10, 13):
        move_to(service, f"2046-06-15 13:{minute}Z")
        work(service)
    assert [state for _, _, state in runs(service)] == [*["placed"] * 4, *["skipped"] * 2]


def test_what_was_missed_is_made_up_for_within_three_days(service: Service, automation: Callable[..., int]) -> None:
    move_to(service, "2042-05-01 06:00Z")
    add_contact(service, "Early", birthday=510)
    add_contact(service, "Late", birthday=513)
    automation()
    move_to(service, "2042-05-16 07:30Z")  # nobody has looked for two weeks
    work(service)
    assert runs(service) == [("Early", date(2042, 5, 10), "missed"), ("Late", date(2042, 5, 13), "placed")]
    assert len(placed(service, 2042)) == 1


def test_a_gift_above_the_cap_was_not_missed_however_late_it_is_looked_at(
    service: Service, automation: Callable[..., int]
) -> None:
    move_to(service, "2042-06-08 06:00Z")
    add_contact(service, "First", birthday=609)
    add_contact(service, "Second", birthday=610)
    automation(cap=1)
    for instant in ("2042-06-09 10:00Z", "2042-06-20 10:00Z"):
        move_to(service, instant)
        work(service)
    assert runs(service) == [("First", date(2042, 6, 9), "placed"), ("Second", date(2042, 6, 10), "skipped")]
    assert service.sql("SELECT reason FROM automation_runs WHERE state = 'skipped'")[0][0] == "cap"


def test_what_came_before_the_automation_or_the_contact_is_not_made_up_for(
    service: Service, automation: Callable[..., int]
) -> None:
    move_to(service, "2043-05-15 12:00Z")
    add_contact(service, "Yesterday", birthday=514)
    automation()
    add_contact(service, "New", birthday=516)
    service.sql("UPDATE contacts SET created_at = '2043-05-16 15:00Z' WHERE name = 'New'")
    move_to(service, "2043-05-16 20:00Z")
    work(service)
    assert runs(service) == []


def test_pauses_skips_and_changes(service: Service, automation: Callable[..., int]) -> None:
    move_to(service, "2044-05-10 06:00Z")
    skipped, kept = add_contact(service, "Skipped", birthday=515), add_contact(service, "Kept", birthday=515)
    add_contact(service, "Paused", birthday=520)
    moved, left = add_contact(service, "Moved", birthday=525), add_contact(service, "Left", birthday=525)
    one = automation()
    day = date(2044, 5, 15)
    assert perform(service, skip_day, one, skipped, day, skipped=True)
    assert perform(service, skip_day, one, kept, day, skipped=True)
    service.sql("UPDATE automations SET plan_at = clock_now() + interval '1 hour'")
    assert perform(service, skip_day, one, kept, day, skipped=False)
    assert service.sql("SELECT plan_at <= clock_now() FROM automations") == [(True,)], "the day is planned at once"
    for at in range(13, 16):
        move_to(service, f"2044-05-{at} 12:00Z")
        work(service)
    assert not perform(service, skip_day, one, kept, day, skipped=True)  # it was sent
    service.sql(f"UPDATE automation_runs SET {DEAD} WHERE contact_id = $1", kept)
    assert not perform(service, skip_day, one, kept, day, skipped=True)  # it is being placed
    move_to(service, "2044-05-19 12:00Z")
    work(service)
    perform(service, pause_automation, one, paused=True)
    move_to(service, "2044-05-20 12:00Z")
    work(service)
    perform(service, pause_automation, one, paused=False)
    move_to(service, "2044-05-24 12:00Z")
    work(service)
    service.sql("UPDATE contacts SET birthday = 901 WHERE id = $1", moved)
    service.sql("UPDATE contacts SET left_at = clock_now() WHERE id = $1", left)
    move_to(service, "2044-05-25 12:00Z")
    work(service)
    assert {(name, state) for name, _, state in runs(service)} == {
        ("Skipped", "skipped"), ("Kept", "placed"), ("Paused", "skipped"), ("Moved", "skipped"), ("Left", "skipped"),
    }  # fmt: skip
    assert {row[0] for row in service.sql("SELECT reason FROM automation_runs WHERE state = 'skipped'")} == {
        "person", "paused", "changed", "left",
    }  # fmt: skip
    perform(service, end_automation, one)
    move_to(service, "2044-09-01 12:00Z")
    work(service)
    assert len(placed(service, 2044)) == 1


def test_the_gift_of_who_may_not_send_any_more_waits_three_days_for_somebody_else(
    service: Service, automation: Callable[..., int]
) -> None:
    move_to(service, "2045-05-14 06:00Z")
    for number in range(2):
        add_contact(service, f"P{number}", birthday=515 + 10 * number)
    own = automation()
    service.sql("UPDATE automations SET user_id = $1", service.sql("SELECT id FROM users WHERE name = 'Cem'")[0]["id"])
    service.sql("UPDATE users SET is_active = false WHERE name = 'Cem'")
    seen = []
    for at in ("15 12:00Z", "18 06:00Z", "18 09:00Z", "25 12:00Z"):
        move_to(service, f"2045-05-{at}")
        work(service)
        seen.append([(name, state) for name, _, state in runs(service)])
    assert seen == [[("P0", "waiting")], [("P0", "waiting")], [("P0", "failed")], [("P0", "failed"), ("P1", "waiting")]]
    assert placed(service, 2045) == []
    perform(service, change_automation, own, rule(service))
    work(service)
    assert [(name, state) for name, _, state in runs(service)] == [("P0", "failed"), ("P1", "placed")]
    assert service.findings() == []


def test_an_account_that_is_too_low_is_tried_again_for_three_days(
    service: Service, automation: Callable[..., int]
) -> None:
    move_to(service, "2046-05-14 06:00Z")
    for number in range(3):
        add_contact(service, f"P{number}", birthday=515)
    automation(account_id=service.ids["funding_accounts"]["small"])
    move_to(service, "2046-05-15 12:00Z")
    work(service)
    states = Counter(state for _, _, state in runs(service))
    assert states == {"placed": 2, "waiting": 1}
    reason = service.sql("SELECT reason FROM automation_runs WHERE state = 'waiting'")[0][0]
    assert reason == "balance"
    move_to(service, "2046-05-18 09:30Z")
    work(service)
    assert Counter(state for _, _, state in runs(service)) == {"placed": 2, "failed": 1}
    assert service.findings() == []


def test_an_automation_that_asks_for_approval_waits_for_somebody_else(
    service: Service, automation: Callable[..., int]
) -> None:
    move_to(service, "2047-05-14 06:00Z")
    add_contact(service, "May", birthday=515)
    one = automation(asks_approval=True)
    move_to(service, "2047-05-15 12:00Z")
    work(service)
    assert [state for _, _, state in runs(service)] == ["waiting"]
    assert on_database(service.database_url, lambda connection: age_s(connection, TASKS.queues[0])) == 0, (
        "that somebody has not approved it yet makes no queue late"
    )
    approve_all(service)
    move_to(service, "2047-05-15 14:00Z")
    work(service)
    assert [state for _, _, state in runs(service)] == ["placed"]
    perform(service, change_automation, one, rule(service, asks_approval=True, cap=5))
    assert service.sql("SELECT approved_by FROM automations")[0][0] is None
    with pytest.raises(OwnAutomation):
        perform(service, approve_automation, one, "", 1000)


def test_rules_about_approvals_hold_for_automations(service: Service, automation: Callable[..., int]) -> None:
    move_to(service, "2048-05-14 06:00Z")
    add_contact(service, "May", birthday=515)
    automation()
    service.sql(
        """
        INSERT INTO approval_rules (customer_id, environment, name, currency, above_minor, beyond_budget, account_ids, product_ids,
                                    collection_ids, approver_ids, needed, expires_days)
        VALUES (1, 'production', 'Dear', 'GBP', 500, false, '{}', '{}', '{}', '{}', 1, 7)
        """
    )
    move_to(service, "2048-05-15 12:00Z")
    work(service)
    assert [state for _, _, state in runs(service)] == ["waiting"]
    assert "Dear" in service.sql("SELECT reason FROM automation_runs")[0][0]
    approve_all(service)
    move_to(service, "2048-05-15 14:00Z")
    work(service)
    assert [state for _, _, state in runs(service)] == ["placed"]
    assert service.findings() == []


def test_who_is_erased_is_in_nothing_and_gets_nothing_more(
    service: Service, automation: Callable[..., int], run: Run
) -> None:
    move_to(service, "2049-05-13 06:00Z")
    add_contact(service, "Quillfeather", birthday=514, start_date=date(2040, 5, 17))
    automation()
    automation(name="Anniversaries", occasion="anniversary")
    move_to(service, "2049-05-14 12:00Z")
    work(service)
    assert [state for _, _, state in runs(service)] == ["placed", "waiting"]
    assert run("privacy", "erase", "quillfeather@example.com").exit_code == 0
    assert [line for line in dump(service).splitlines() if "quillfeather" in line.lower()] == []
    move_to(service, "2049-05-17 12:00Z")
    work(service)
    left = service.sql("SELECT state, reason FROM automation_runs ORDER BY on_day")
    assert [tuple(row) for row in left] == [("placed", None), ("skipped", "left")]
    assert len(placed(service, 2049)) == 1
    assert service.findings() == []
