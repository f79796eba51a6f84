"""A gift whose process died before it placed the order is sent by another process only if it is still due."""

from collections.abc import Callable

import pytest
from tests.automations.conftest import add_contact, move_to, placed, work
from tests.automations.test_year import DEAD, service
from tests.web.api.conftest import Service

__all__ = ["service"]


def test_only_contacts_who_still_have_the_day_get_the_gift(service: Service, automation: Callable[..., int]) -> None:
    move_to(service, "2042-05-14 06:00Z")
    ids = {name: add_contact(service, name, birthday=515) for name in ("Stays", "Deleted", "Left", "Moved")}
    automation(cap=4)
    work(service)
    move_to(service, "2042-05-15 10:00Z")
    service.sql(f"UPDATE automation_runs SET {DEAD}")
    service.sql("DELETE FROM contacts WHERE name = 'Deleted'")
    service.sql("UPDATE contacts SET left_at = clock_now() WHERE name = 'Left'")
    service.sql("UPDATE contacts SET birthday = 1201 WHERE name = 'Moved'")
    work(service)
    rows = service.sql("SELECT contact_id, state, reason FROM automation_runs")
    assert {row["contact_id"]: (row["state"], row["reason"]) for row in rows} == {
        ids["Stays"]: ("placed", None),
        ids["Deleted"]: ("skipped", "left"),
        ids["Left"]: ("skipped", "left"),
        ids["Moved"]: ("skipped", "changed"),
    }
    assert [email for email, _ in placed(service, 2042)] == ["stays@example.com"]
    assert service.findings() == []


@pytest.mark.parametrize(
    ("change", "state", "reason"),
    [
        ("UPDATE automations SET paused_at = clock_now()", "skipped", "paused"),
        ("UPDATE automations SET asks_approval = true", "waiting", "not_approved"),
        ("UPDATE automation_runs SET due_at = due_at - interval '4 days'", "missed", None),
    ],
)
def test_nothing_is_sent_that_the_automation_would_not_send_now(
    service: Service, automation: Callable[..., int], change: str, state: str, reason: str | None
) -> None:
    move_to(service, "2042-05-14 06:00Z")
    add_contact(service, "May", birthday=515)
    automation()
    work(service)
    move_to(service, "2042-05-15 10:00Z")
    service.sql(f"UPDATE automation_runs SET {DEAD}")
    service.sql(change)
    work(service)
    assert [tuple(row) for row in service.sql("SELECT state, reason FROM automation_runs")] == [(state, reason)]
    assert placed(service, 2042) == []
