"""An automation sends a contact no second gift when the contact's day is corrected, or when the contact joins the group again."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

import pytest
from tests.automations.conftest import add_contact, add_group, join, move_to, runs, work
from tests.web.api.conftest import Service, on_database

from largesse.automations import store
from largesse.automations.service import preview


@pytest.mark.parametrize(
    ("moved_to", "is_cancelled", "state"),
    [
        (520, False, "skipped"),
        (1210, False, "skipped"),  # in the same year
        (103, False, "placed"),  # in the next year, and not within half a year
        (520, True, "placed"),  # somebody cancelled the gift for the wrong day
    ],
)
def test_a_corrected_birthday_gives_no_second_gift_in_a_year(
    service: Service, automation: Callable[..., int], moved_to: int, is_cancelled: bool, state: str
) -> None:
    move_to(service, "2045-05-10 06:00Z")
    add_contact(service, "Twice", birthday=510)
    one = automation()
    move_to(service, "2045-05-10 12:00Z")
    work(service)
    service.sql("UPDATE contacts SET birthday = $1", moved_to)
    if is_cancelled:
        service.sql(
            """
            INSERT INTO line_states (customer_id, order_id, number, state)
            SELECT o.customer_id, o.id, 1, 'cancelled' FROM orders o JOIN automation_runs r ON r.order_reference = o.reference
            """
        )
    again = date(2046 if moved_to < 510 else 2045, moved_to // 100, moved_to % 100)
    move_to(service, f"{again - timedelta(days=5)} 12:00Z")
    assert [row["state"] for row in _upcoming(service, one)] == ["waiting" if state == "placed" else state]
    move_to(service, f"{again} 12:00Z")
    work(service)
    assert runs(service) == [("Twice", date(2045, 5, 10), "placed"), ("Twice", again, state)]


def test_a_contact_who_joins_a_group_again_gets_no_second_gift(
    service: Service, automation: Callable[..., int]
) -> None:
    move_to(service, "2047-03-03 06:00Z")
    group, contact = add_group(service), add_contact(service, "Again")
    automation(occasion="joined", group_id=group, days=0)
    for day in (4, 8):
        move_to(service, f"2047-03-{day:02} 06:00Z")
        service.sql("DELETE FROM contact_members")
        join(service, group, contact, date(2047, 3, day))
        move_to(service, f"2047-03-{day:02} 12:00Z")
        work(service)
    assert runs(service) == [("Again", date(2047, 3, 4), "placed"), ("Again", date(2047, 3, 8), "skipped")]


@pytest.mark.parametrize(("address", "state"), [("Back@example.com", "skipped"), ("other@example.com", "placed")])
def test_a_contact_who_is_deleted_and_added_again_gets_no_second_gift(
    service: Service, automation: Callable[..., int], address: str, state: str
) -> None:
    move_to(service, "2051-05-10 06:00Z")
    add_contact(service, "Back", birthday=510)
    one = automation()
    move_to(service, "2051-05-10 12:00Z")
    work(service)
    service.sql("DELETE FROM contacts")
    move_to(service, "2051-06-10 06:00Z")
    again = add_contact(service, "Back", birthday=612, email=address, email_key=address.lower())
    service.sql("UPDATE contacts SET created_at = clock_now()")
    assert [row["state"] for row in _upcoming(service, one)] == ["waiting" if state == "placed" else state]
    move_to(service, "2051-06-12 12:00Z")
    work(service)
    assert runs(service) == [("Back", date(2051, 6, 12), state)]
    service.sql("DELETE FROM contacts WHERE id = $1", again)


def test_a_new_employee_who_is_added_twice_on_the_first_day_gets_one_gift(
    service: Service, automation: Callable[..., int]
) -> None:
    move_to(service, "2051-07-03 06:00Z")
    automation(occasion="first_day")
    for hour, state in ((9, "placed"), (12, "skipped")):
        move_to(service, f"2051-07-03 {hour:02}:00Z")
        service.sql("DELETE FROM contacts")
        add_contact(service, "New", start_date=date(2051, 7, 3))
        service.sql("UPDATE contacts SET created_at = clock_now()")
        service.sql("UPDATE automations SET plan_at = clock_now()")
        work(service)
        assert runs(service) == [("New", date(2051, 7, 3), state)]


def _upcoming(service: Service, automation_id: int) -> Sequence[Mapping[str, Any]]:
    async def read(connection: Any) -> Sequence[Mapping[str, Any]]:
        found = await store.find_automation(connection, (1, "production"), automation_id)
        assert found is not None
        return await preview(connection, found)

    return on_database(service.database_url, read)
