"""A year of automations in staging passes in seconds, by the test clock: exactly the right gifts, each once."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import pytest
from tests.automations.conftest import add_contact, move_to, perform, placed, rule, runs, work
from tests.web.api.conftest import Service, ServiceFactory, on_database

from largesse.automations.service import create_automation, preview, skip_day
from largesse.automations.store import find_automation

DAY_S = 86_400


def of_a_year(year: int) -> list[tuple[str, date, str]]:
    """Whose gift, for which day, and how it stands."""
    return [
        ("Carl", date(year, 1, 3), "placed"),
        ("Cora", date(year, 1, 4), "placed"),
        ("Cyd", date(year, 1, 5), "skipped"),  # the cap of two a month is reached
        ("Leap", date(year, 2, 29), "placed"),
        ("Skipped", date(year, 4, 4), "skipped"),
        ("Weekend", date(year, 7, 8), "placed"),
    ]


@pytest.fixture(scope="module")
def staging(service: Service, start_service: ServiceFactory) -> Service:
    return start_service(like=service, environment="staging")


@pytest.fixture
def contacts(service: Service) -> Iterator[None]:
    for name, birthday in (
        ("Leap", 229), ("Weekend", 708), ("Skipped", 404), ("Carl", 103), ("Cora", 104), ("Cyd", 105),
    ):  # fmt: skip
        add_contact(service, name, "staging", birthday=birthday)
    add_contact(service, "Left", "staging", birthday=516, left_at=datetime(2027, 1, 1, tzinfo=UTC))
    add_contact(service, "Live", "production", birthday=517)
    yield
    service.sql("DELETE FROM automation_runs")


def set_up(service: Service, year: int) -> None:
    move_to(service, f"{year - 1}-12-01 06:00Z")
    own = rule(service, account_id=service.ids["funding_accounts"]["test-gbp"], cap=2, weekend="before")
    automation = perform(service, create_automation, own, environment="staging")
    contact = service.sql("SELECT id FROM contacts WHERE name = 'Skipped'")[0][0]
    work(service, places=False)
    perform(service, skip_day, automation, contact, date(year, 4, 4), skipped=True, environment="staging")


def advance(staging: Service, days: int) -> None:
    answer = staging.client("hr-test").post("/test/clock", json={"advanceSeconds": days * DAY_S})
    answer.raise_for_status()


@pytest.mark.slow
def test_a_year_passes_at_once(service: Service, staging: Service, contacts: Any) -> None:
    """Years in their order: `verify` looks at the orders of the last year, and at later ones."""
    for year, jumps in ((2028, [364]), (2032, [31, 30] * 5 + [31, 28]), (2036, [1, 363]), (2040, [200, 164])):
        set_up(service, year)
        for days in jumps:
            advance(staging, days)
            work(staging)
            service.sql(
                "UPDATE clock SET ahead_by = ahead_by + interval '1 minute'"
            )  # those that had to wait for others
            work(staging)
        last = date(year, 11, 29)
        assert [run for run in runs(service) if run[1] <= last] == of_a_year(year)
        assert all(state == "waiting" for _, day, state in runs(service) if day > last)
        orders = placed(service, year)
        assert sorted(email for email, _ in orders) == [
            f"{name}@example.com" for name in ("carl", "cora", "leap", "weekend")
        ]
        service.sql("DELETE FROM automations")
        assert service.findings() == []
        service.sql("DELETE FROM automation_runs")


def test_the_preview_goes_by_the_test_clock(service: Service, staging: Service, contacts: Any) -> None:
    move_to(service, "2043-12-01 06:00Z")
    own = rule(service, account_id=service.ids["funding_accounts"]["test-gbp"])
    automation_id = perform(service, create_automation, own, environment="staging")
    advance(staging, 60)  # to 30 January

    async def days(connection: Any) -> list[tuple[str, date]]:
        automation = await find_automation(connection, (1, "staging"), automation_id)
        return [(row["name"], row["on_day"]) for row in await preview(connection, automation)]

    leap = service.sql("SELECT id FROM contacts WHERE name = 'Leap'")[0][0]
    assert on_database(service.database_url, days) == [("Leap", date(2044, 2, 29))]
    for skipped in (True, False):
        assert perform(
            service, skip_day, automation_id, leap, date(2044, 2, 29), skipped=skipped, environment="staging"
        )
    advance(staging, 31)  # past it
    assert perform(service, skip_day, automation_id, leap, date(2043, 2, 28), skipped=True, environment="staging")
    assert not perform(service, skip_day, automation_id, leap, date(2043, 2, 28), skipped=False, environment="staging")
    service.sql("DELETE FROM automations")


def test_a_refused_gift_fails_after_three_days_of_the_test_clock(service: Service, staging: Service) -> None:
    move_to(service, "2047-05-14 12:00Z")
    add_contact(service, "May", "staging", birthday=515)
    own = rule(service, account_id=service.ids["funding_accounts"]["test-gbp"])
    perform(service, create_automation, own, environment="staging")
    service.sql("UPDATE templates SET removed_at = clock_now()")
    states = []
    for _ in range(5):
        advance(staging, 1)
        work(staging)
        states.append(runs(service)[0][2])
    service.sql("UPDATE templates SET removed_at = NULL")
    assert states == ["waiting", "waiting", "waiting", "failed", "failed"]
