"""One mail for a day's first gift of an automation that is refused or missed, to the person it sends as, or to the administrators."""

from collections.abc import Callable, Iterator

import pytest
from tests.automations.conftest import add_contact, approve_all, move_to, runs, work
from tests.web.api.conftest import Service


@pytest.fixture(autouse=True)
def no_mail(service: Service) -> Iterator[None]:
    service.sql("DELETE FROM people_mails")
    yield
    service.sql("DELETE FROM people_mails")
    service.sql("UPDATE templates SET removed_at = NULL")


@pytest.fixture
def refuses(service: Service, automation: Callable[..., int]) -> int:
    """An automation whose template is gone, with two gifts on a Monday and one on the Tuesday."""
    move_to(service, "2050-05-14 06:00Z")
    for name, birthday in (("May", 516), ("Moe", 516), ("Tim", 517)):
        add_contact(service, name, birthday=birthday)
    automation_id = automation()
    service.sql("UPDATE templates SET removed_at = clock_now()")
    return automation_id


def mailed(service: Service) -> list[str]:
    rows = service.sql(
        "SELECT u.name FROM people_mails m JOIN users u ON u.id = m.user_id WHERE m.kind = 'automation_refused' ORDER BY m.id"
    )
    return [row["name"] for row in rows]


@pytest.mark.usefixtures("refuses")
def test_a_days_refused_gifts_are_one_mail_however_often_they_are_tried(service: Service) -> None:
    for at, mails in (
        ("2050-05-16 12:00Z", 1),
        ("2050-05-16 14:00Z", 1),
        ("2050-05-17 12:00Z", 2),
        ("2050-05-18 12:00Z", 2),
        ("2050-05-21 12:00Z", 2),
    ):
        move_to(service, at)
        work(service)
        assert mailed(service) == ["Ada"] * mails, at
    assert {state for _, _, state in runs(service)} == {"failed"}
    assert service.sql("SELECT due_at > created_at FROM people_mails LIMIT 1")[0][0], "it counts those that follow"


@pytest.mark.usefixtures("refuses")
@pytest.mark.parametrize("change", ["role = 'finance'", "is_active = false"])
def test_administrators_are_mailed_when_the_person_may_not_send_any_more(service: Service, change: str) -> None:
    service.sql(f"UPDATE users SET {change} WHERE name = 'Ada'")
    move_to(service, "2050-05-16 12:00Z")
    work(service)
    assert mailed(service) == ["Bea"]


@pytest.mark.usefixtures("refuses")
def test_gifts_that_were_missed_are_one_mail(service: Service) -> None:
    move_to(service, "2050-05-15 12:00Z")
    work(service)
    move_to(service, "2050-05-21 12:00Z")
    work(service)
    assert {state for _, _, state in runs(service)} == {"missed"}
    assert mailed(service) == ["Ada"]


def test_a_gift_that_is_sent_or_waits_for_approval_is_none(service: Service, automation: Callable[..., int]) -> None:
    move_to(service, "2050-05-14 06:00Z")
    add_contact(service, "May", birthday=516)
    automation(asks_approval=True)
    move_to(service, "2050-05-16 12:00Z")
    work(service)
    assert [state for _, _, state in runs(service)] == ["waiting"]
    approve_all(service)
    move_to(service, "2050-05-16 14:00Z")
    work(service)
    assert [state for _, _, state in runs(service)] == ["placed"]
    assert mailed(service) == []
