"""Planning says in SQL what the rules of the model say, for any contact, rule and day."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import partial
from random import Random
from typing import Any, cast

import msgspec
import pytest
from babel.core import get_global
from tests.automations.conftest import add_contact, add_group, join, move_to, perform, rule, runs, work
from tests.web.api.conftest import Service, on_database

from largesse.automations import run_store, store
from largesse.automations.days_store import zone_columns
from largesse.automations.model import Automation, AutomationRule, Days, has_day, send_day
from largesse.automations.service import MAIN_ZONES, AutomationFault, change_automation, next_days, preview
from largesse.contacts.groups import save_members

PLACE = (1, "production")
FIRST, LAST = date(2027, 12, 20), date(2029, 3, 10)


@pytest.mark.parametrize(
    "changes",
    [
        {"leap_day": "before", "weekend": "before"},
        {"leap_day": "after", "weekend": "after"},
        {"occasion": "anniversary"},
        {"occasion": "anniversary", "years": (1, 8), "leap_day": "after"},
        {"occasion": "first_day", "weekend": "after"},
        {"occasion": "joined", "days": 40},
        {"is_of_group": True, "weekend": "before"},
        {"is_of_group": True, "is_large": True, "leap_day": "after"},
        {"is_of_group": True, "occasion": "anniversary", "years": (1, 8), "leap_day": "after"},
        {"is_of_group": True, "is_large": True, "occasion": "anniversary"},
        {"is_of_group": True, "occasion": "first_day"},
    ],
    ids=lambda changes: "-".join(map(str, changes.values())),
)
def test_planning_and_the_model_agree(
    service: Service, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    random, changes = Random(7), dict(changes)
    if changes.pop("is_large", False):  # the group is large enough to be read by its days
        monkeypatch.setattr(run_store, "_PREVIEW", run_store._PREVIEW.replace("OFFSET 10000", "OFFSET 9"))
    group, people = add_group(service), {}
    for number in range(60):
        birthday = (
            229 if number % 6 == 0 else random.choice([228, 301, random.randint(1, 12) * 100 + random.randint(1, 28)])
        )
        started = random.choice(
            [date(2020, 2, 29), date(2028, 2, 29), date(2027, 1, 1) + timedelta(days=random.randint(0, 700))]
        )
        joined = random.choice([None, date(2027, 11, 1) + timedelta(days=random.randint(0, 400))])
        left = number % 9 == 0
        contact = add_contact(
            service,
            f"P{number}",
            birthday=birthday,
            start_date=started,
            left_at=datetime(2026, 1, 1, tzinfo=UTC) if left else None,
        )
        if joined is not None:
            join(service, group, contact, joined)
        people[contact] = Days(birthday, started, joined, not left)
    of_group = changes.pop("is_of_group", False) or changes.get("occasion") == "joined"
    wanted = rule(service, group_id=group if of_group else None, **changes)
    expected = {
        (contact, day, send_day(day, wanted.weekend))
        for contact, one in people.items()
        for day in (FIRST + timedelta(days=at) for at in range(-2, (LAST - FIRST).days + 1))
        if has_day(wanted, _in(one, wanted), day) and max(day, send_day(day, wanted.weekend)) >= FIRST
    }
    rows = _previewed(service, wanted)
    assert len(expected) > 5
    assert {(row["contact_id"], row["on_day"], row["send_on"]) for row in rows} == expected
    assert len(rows) == len(expected)
    assert [row["send_on"] for row in rows] == sorted(row["send_on"] for row in rows)


def test_a_contact_gets_the_gift_in_the_morning_of_most_people_of_the_country(
    service: Service, automation: Callable[..., int]
) -> None:
    """The first zone of the United States in the CLDR is that of the Aleutians, five hours behind New York."""
    move_to(service, "2027-05-05T00:00Z")
    for country in ("US", "ID"):
        add_contact(service, f"Sam{country}", birthday=506, country=country)
    automation()
    work(service, places=False)
    due = service.sql("SELECT due_at FROM automation_runs ORDER BY due_at")
    assert [row["due_at"].hour for row in due] == [2, 13]  # in UTC
    assert all(zone in get_global("territory_zones")[country] for country, zone in MAIN_ZONES.items())


def test_a_zone_that_the_server_does_not_know_stops_no_other_automation(
    service: Service, automation: Callable[..., int]
) -> None:
    """Python's data can be newer than PostgreSQL's. Gifts of an unknown zone leave at nine o'clock in UTC."""
    today = service.sql("SELECT (clock_now() AT TIME ZONE 'UTC')::date + 2")[0][0]
    add_contact(service, "Zoe", birthday=today.month * 100 + today.day, country=None)
    odd, _ = automation(name="Odd"), automation(name="Usual", zone="Asia/Tokyo")
    service.sql("UPDATE automations SET zone = 'Mars/Olympus', plan_at = '2000-01-01Z' WHERE id = $1", odd)
    work(service, places=False)
    planned = service.sql("SELECT automation_id, due_at AT TIME ZONE 'UTC' FROM automation_runs ORDER BY automation_id")
    assert [(row[0] == odd, row[1].hour) for row in planned] == [(True, 9), (False, 0)]


def test_zones_are_read_once_and_an_unknown_one_of_a_country_is_utc(service: Service) -> None:
    """The server reads a file for each of its zones: 40 ms, for each statement about days."""

    async def read(connection: Any) -> list[int]:
        given = [("GB", "Europe/London"), ("XX", "Mars/Olympus")]
        countries, zones = await zone_columns(connection, given)
        assert (countries, zones[:2]) == (["GB", "XX"], ["Europe/London", "UTC"])
        assert {"Asia/Tokyo", "UTC"} <= set(zones[2:])
        assert await zone_columns(cast("Any", None), given) == (countries, zones)  # no connection is needed now
        return []

    assert on_database(service.database_url, read) == []


@pytest.mark.parametrize(
    ("added", "weekend", "is_planned"),
    [
        ("2027-05-09T08:00Z", "keep", True),
        ("2027-05-09T16:00Z", "keep", True),  # a Sunday, after nine o'clock
        ("2027-05-09T22:30Z", "keep", True),  # half an hour before midnight in London
        ("2027-05-09T23:30Z", "keep", False),
        ("2027-05-08T16:00Z", "before", True),  # the Friday is over, the day is not
        ("2027-05-10T07:00Z", "after", True),  # an hour before the Monday's gift
        ("2027-05-10T10:00Z", "after", False),
    ],
)
def test_a_contact_who_is_added_on_the_first_day_gets_the_gift_late(
    service: Service, automation: Callable[..., int], added: str, weekend: str, is_planned: bool
) -> None:
    move_to(service, "2027-05-01T12:00Z")
    number = automation(occasion="first_day", weekend=weekend)
    move_to(service, added)
    added_now(service)
    service.sql("UPDATE automations SET plan_at = clock_now() WHERE id = $1", number)
    work(service, places=False)
    assert runs(service) == ([("Zoe", date(2027, 5, 9), "waiting")] if is_planned else [])


@pytest.mark.parametrize(("filled_in", "is_planned"), [("2027-05-12T16:00Z", True), ("2027-05-13T16:00Z", False)])
def test_a_birthday_that_is_filled_in_late_is_sent_within_three_days(
    service: Service, automation: Callable[..., int], filled_in: str, is_planned: bool
) -> None:
    move_to(service, "2027-05-01T12:00Z")
    number = automation()
    add_contact(service, "Zoe")
    work(service, places=False)
    move_to(service, filled_in)
    service.sql("UPDATE contacts SET birthday = 509")
    service.sql("UPDATE automations SET plan_at = clock_now(), planned_through = '2027-05-12' WHERE id = $1", number)
    work(service, places=False)
    assert runs(service) == ([("Zoe", date(2027, 5, 9), "waiting")] if is_planned else [])


@pytest.mark.parametrize(("created", "is_planned"), [("2027-05-09T15:00Z", True), ("2027-05-09T17:00Z", False)])
def test_a_contact_who_is_added_after_the_automation_on_its_first_day_gets_the_gift(
    service: Service, automation: Callable[..., int], created: str, is_planned: bool
) -> None:
    move_to(service, "2027-05-09T16:00Z")
    added_now(service)
    move_to(service, created)
    automation(occasion="first_day")
    work(service, places=False)
    assert runs(service) == ([("Zoe", date(2027, 5, 9), "waiting")] if is_planned else [])


@pytest.mark.parametrize(
    ("created", "joined", "country", "is_planned"),
    [
        ("2027-05-09T15:00Z", "2027-05-09T16:00Z", "GB", True),  # after the automation
        ("2027-05-09T15:00Z", "2027-05-09T14:00Z", "GB", False),  # before it, and it after nine o'clock
        ("2027-05-09T06:00Z", "2027-05-09T05:00Z", "GB", True),  # both before nine o'clock
        ("2027-05-08T15:00Z", "2027-05-09T23:30Z", "GB", True),
        ("2027-05-08T15:00Z", "2027-05-09T23:30Z", "NZ", True),  # where that day is over
    ],
)
def test_a_contact_who_joins_on_the_day_of_the_automation_gets_the_gift_if_after_it(
    service: Service, automation: Callable[..., int], created: str, joined: str, country: str, is_planned: bool
) -> None:
    zoe, group = add_contact(service, "Zoe", country=country), add_group(service)

    def create() -> None:
        move_to(service, created)
        automation(occasion="joined", group_id=group, days=0)

    def join_now() -> None:
        move_to(service, joined)
        service.sql("UPDATE contacts SET created_at = clock_now() WHERE id = $1 AND country = 'NZ'", zoe)
        on_database(service.database_url, lambda connection: save_members(connection, PLACE, [(group, zoe)], []))

    for step in (create, join_now) if created < joined else (join_now, create):
        step()
    service.sql("UPDATE automations SET plan_at = clock_now()")
    work(service, places=False)
    assert runs(service) == ([("Zoe", date(2027, 5, 9), "waiting")] if is_planned else [])


@pytest.mark.parametrize("created", ["2027-05-01T12:00Z", "2027-05-09T15:00Z"])
def test_the_preview_shows_who_was_added_today(service: Service, automation: Callable[..., int], created: str) -> None:
    move_to(service, created)
    number = automation(occasion="first_day")
    move_to(service, "2027-05-09T16:00Z")
    added_now(service)

    upcoming, following = on_database(service.database_url, partial(_next_of, number))
    assert [row["name"] for row in upcoming] == ["Zoe"]
    assert following == {number: date(2027, 5, 9)}


@pytest.mark.parametrize(("today", "is_shown"), [("2027-05-09", True), ("2027-05-10", True), ("2027-05-11", False)])
def test_a_gift_for_a_weekend_is_shown_until_the_monday_on_which_it_is_sent(
    service: Service, automation: Callable[..., int], today: str, is_shown: bool
) -> None:
    move_to(service, "2027-05-01T12:00Z")
    number = automation(occasion="first_day", weekend="after")
    add_contact(service, "Sam", start_date=date(2027, 5, 8))  # a Saturday
    move_to(service, f"{today}T06:00Z")
    upcoming, following = on_database(service.database_url, partial(_next_of, number))
    assert [(row["name"], row["send_on"]) for row in upcoming] == [("Sam", date(2027, 5, 10))] * is_shown
    assert following == ({number: date(2027, 5, 10)} if is_shown else {})


def test_a_change_plans_its_next_days_anew(service: Service, automation: Callable[..., int]) -> None:
    move_to(service, "2027-05-05T12:00Z")
    add_contact(service, "Sam", start_date=date(2027, 5, 8))  # a Saturday
    number = automation(occasion="first_day")
    work(service, places=False)
    perform(service, change_automation, number, rule(service, occasion="first_day", weekend="before"))
    work(service, places=False)
    assert [row["send_on"] for row in service.sql("SELECT send_on FROM automation_runs")] == [date(2027, 5, 7)]


def test_a_change_loses_no_gift_for_a_weekend_that_is_still_tried(
    service: Service, automation: Callable[..., int]
) -> None:
    """The Saturday is five days ago at the end of the three days in which a gift for the Monday is tried."""
    move_to(service, "2027-05-05T12:00Z")
    add_contact(service, "Sam", birthday=508)  # a Saturday, whose gift leaves on Monday, 10 May, at 8:00 in UTC
    number = automation(weekend="after", asks_approval=True)
    move_to(service, "2027-05-13T07:30Z")
    work(service)
    assert runs(service) == [("Sam", date(2027, 5, 8), "waiting")]
    perform(service, change_automation, number, rule(service, weekend="after"))
    work(service)
    assert runs(service) == [("Sam", date(2027, 5, 8), "placed")]


@pytest.mark.parametrize(
    "zone", ["posix/Europe/London", "right/Europe/London", "localtime", "Mars/Olympus", "", "../UTC"]
)
def test_what_is_no_zone_is_refused(service: Service, automation: Callable[..., int], zone: str) -> None:
    """Python opens the first two, and PostgreSQL does not."""
    with pytest.raises(AutomationFault, match="`zone` must be a time zone"):
        automation(zone=zone)


def added_now(service: Service) -> None:
    """Adds a contact whose first day at work is Sunday, 9 May 2027, at the time of the database's clock."""
    zoe = add_contact(service, "Zoe", start_date=date(2027, 5, 9))
    service.sql("UPDATE contacts SET created_at = clock_now() WHERE id = $1", zoe)


async def _next_of(number: int, connection: Any) -> tuple[list[Any], dict[int, date]]:
    """The preview of an automation, and when its next gift is sent."""
    one = await store.find_automation(connection, (1, "production"), number)
    return await preview(connection, one), await next_days(connection, [one])


def _in(contact: Days, wanted: AutomationRule) -> Days:
    """As the store reads a contact: since when they are in the rule's group."""
    return Days(contact.birthday, contact.start_date, contact.joined_on if wanted.group_id else None, contact.is_active)


@pytest.mark.parametrize("weekend", ["before", "after", "keep"])
@pytest.mark.parametrize("grouped", [False, True])
def test_the_first_gifts_are_shown_without_reading_about_all(service: Service, weekend: str, grouped: bool) -> None:
    """With a few birthdays, 100,000 contacts were each looked up among the gifts before a page showed the first 500."""
    service.sql(
        """
        INSERT INTO contacts (customer_id, environment, email, email_key, name, sought, country, birthday, created_at)
        SELECT 1, 'production', 'p' || n || '@many.example', 'p' || n || '@many.example', 'P' || n * 7919 % 12000, 'p', 'GB',
               CASE WHEN n % 100 = 0 THEN 108 + n / 100 % 6 ELSE 114 + n % 3 END, '2000-01-01Z' FROM generate_series(1, 12000) AS n
        """
    )
    service.sql("INSERT INTO contact_groups (customer_id, environment, name) VALUES (1, 'production', 'Many')")
    service.sql(
        """
        INSERT INTO contact_members (customer_id, environment, group_id, contact_id, joined_on)
        SELECT 1, 'production', g.id, c.id, '2000-01-01' FROM contacts c JOIN contact_groups g ON g.customer_id = c.customer_id
        WHERE c.customer_id = 1 AND g.name = 'Many' AND c.id % 10 > 0
        """
    )
    group = service.sql("SELECT id FROM contact_groups WHERE customer_id = 1 AND name = 'Many'")[0]["id"]
    service.sql("ANALYZE contacts, contact_members")
    wanted = rule(service, weekend=weekend, group_id=group if grouped else None)
    everything = _previewed(service, wanted)
    assert len(everything) == 10_000
    for limit in (1, 50, 200):
        assert _previewed(service, wanted, limit) == everything[:limit]


def _previewed(service: Service, wanted: AutomationRule, limit: int = 10_000) -> list[Any]:
    now = datetime(2027, 1, 1, tzinfo=UTC)
    draft = Automation(
        **msgspec.structs.asdict(wanted), customer_id=1, id=0, environment="production", user_id=0, approved_by=None, approved_minor=None,
        paused_at=None, ended_at=None, created_at=now, planned_through=now.date(),
    )  # fmt: skip

    async def read(connection: Any) -> list[Any]:
        return await run_store.preview_days(
            connection, [("GB", "Europe/London")], draft, first=FIRST, last=LAST, limit=limit
        )

    rows: list[Any] = on_database(service.database_url, read)
    return rows


def test_a_change_of_days_sends_nothing_for_days_before_it(service: Service, automation: Callable[..., int]) -> None:
    """The page shows no gift for them. One that waits already is still sent if it is right by the new rule."""
    move_to(service, "2044-07-01 06:00Z")
    for day in (13, 14, 15, 16):
        add_contact(service, f"Other{day}", birthday=700 + day)
    own = automation(group_id=add_group(service, add_contact(service, "Member", birthday=714)))
    service.sql("UPDATE users SET is_active = false WHERE name = 'Ada'")
    move_to(service, "2044-07-15 12:00Z")
    work(service)
    assert runs(service) == [("Member", date(2044, 7, 14), "waiting")]
    service.sql("UPDATE users SET is_active = true WHERE name = 'Ada'")
    perform(service, change_automation, own, rule(service))
    move_to(service, "2044-07-16 12:00Z")
    work(service)
    assert runs(service) == [("Member", date(2044, 7, 14), "placed"), ("Other16", date(2044, 7, 16), "placed")]


def test_who_joins_the_group_after_the_day_gets_nothing_for_it(
    service: Service, automation: Callable[..., int]
) -> None:
    """As a contact who is added after the day. An import of a department sent gifts for its last three days."""
    move_to(service, "2044-07-01 06:00Z")
    group = add_group(service)
    contacts = [add_contact(service, f"P{day}", birthday=700 + day) for day in (14, 15, 16)]
    automation(group_id=group)
    move_to(service, "2044-07-15 12:00Z")
    pairs = [(group, contact) for contact in contacts]
    on_database(service.database_url, lambda connection: save_members(connection, PLACE, pairs, ()))
    work(service)
    assert runs(service) == [("P16", date(2044, 7, 16), "waiting")]
