"""What is done to one automation is done to no other."""

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from tests.automations.conftest import add_contact, add_group, move_to, perform, rule, work
from tests.web.api.conftest import Service

from largesse.automations.model import MOST_AUTOMATIONS, MOST_DAYS, MOST_YEARS
from largesse.automations.service import (
    AutomationFault,
    TooManyAutomations,
    change_automation,
    end_automation,
    pause_automation,
    skip_day,
)
from largesse.automations.store import approve_automation, lock_automation
from largesse.customers.actor import Actor
from largesse.customers.roles import Right


async def approve(actor: Actor, automation_id: int) -> None:
    """Saves an approval as if Bea had given it."""
    async with actor.transaction(Right.CONTACTS) as transaction:
        automation = await lock_automation(transaction.connection, actor.place, automation_id)
        assert automation is not None
        await approve_automation(transaction.connection, automation, automation.user_id + 1, 1000)
        await transaction.record("automation.approved", f"automation {automation_id}", after={"name": automation.name})


def test_the_other_automations_stay_as_they_are(service: Service, automation: Callable[..., int]) -> None:
    day = date(2040, 5, 10)
    move_to(service, "2040-05-09 12:00Z")
    zoe, yan = (add_contact(service, name, birthday=510) for name in ("Zoe", "Yan"))
    one, other = (automation(name=name, asks_approval=True) for name in ("One", "Other"))
    work(service, places=False)
    service.sql("UPDATE automation_runs SET reason = 'not_approved', look_at = look_at + interval '1 hour'")
    assert service.sql("SELECT count(*) FROM automation_runs WHERE automation_id = $1", other)[0][0] == 2

    def others() -> list[Any]:
        return [
            service.sql("SELECT * FROM automations WHERE id = $1", other),
            service.sql("SELECT * FROM automation_runs WHERE automation_id = $1 ORDER BY contact_id", other),
            service.sql("SELECT * FROM automation_runs WHERE contact_id = $1 AND state = 'skipped'", yan),
            service.sql("SELECT * FROM automation_runs WHERE on_day > $1 ORDER BY on_day", day),
        ]

    perform(service, skip_day, other, zoe, day, skipped=True)
    perform(service, skip_day, one, yan, day, skipped=True)
    perform(service, skip_day, one, zoe, day.replace(year=2041), skipped=True)
    before = others()
    assert before[3]
    assert perform(service, skip_day, one, zoe, day, skipped=True)
    assert perform(service, skip_day, one, zoe, day, skipped=False)
    perform(service, pause_automation, one, paused=True)
    perform(service, approve, one)
    assert others() == before
    service.sql("UPDATE automations SET paused_at = clock_now()")
    before = others()
    perform(service, pause_automation, one, paused=False)
    perform(service, change_automation, one, rule(service, name="New", asks_approval=True))
    assert others()[:2] == before[:2]
    perform(service, end_automation, one)
    assert others()[:2] == before[:2]
    assert service.sql("SELECT ended_at IS NULL AS is_there FROM automations ORDER BY id") == [(False,), (True,)]


def test_a_gift_that_is_placed_leaves_those_of_other_years(service: Service, automation: Callable[..., int]) -> None:
    move_to(service, "2040-05-09 12:00Z")
    zoe, one = add_contact(service, "Zoe", birthday=510), automation()
    service.sql(
        """
        INSERT INTO automation_runs (customer_id, environment, automation_id, contact_id, on_day, send_on, due_at, look_at, state, reason, ended_at)
        VALUES (1, 'production', $1, $2, '2039-05-10', '2039-05-10', '2039-05-10Z', '2039-05-10Z', 'failed', 'balance', '2039-05-13Z')
        """,
        one,
        zoe,
    )
    move_to(service, "2040-05-10 12:00Z")
    work(service)
    found = service.sql("SELECT state, order_reference IS NOT NULL FROM automation_runs ORDER BY on_day")
    assert [tuple(row) for row in found] == [("failed", False), ("placed", True)]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"occasion": "joined", "days": MOST_DAYS}, "group"),  # the group is not there, and the days are right
        ({"occasion": "joined", "days": 0}, "group"),
        ({"occasion": "joined", "days": MOST_DAYS + 1}, "days"),
        ({"occasion": "joined", "days": -1}, "days"),
        ({"occasion": "joined"}, "days"),
        ({"days": 1}, "days"),
        ({"occasion": "anniversary", "years": tuple(range(1, MOST_YEARS + 1))}, "group"),
        ({"occasion": "anniversary", "years": tuple(range(1, MOST_YEARS + 2))}, "years"),
        ({"years": (1,)}, "years"),
    ],
)
def test_limits_of_a_rule(
    service: Service, automation: Callable[..., int], changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(AutomationFault) as refused:
        automation(**{"group_id": 999_999, **changes})
    assert refused.value.field == field


def test_a_group_of_the_other_environment_and_a_removed_template_are_refused(
    service: Service, automation: Callable[..., int]
) -> None:
    with pytest.raises(AutomationFault, match="`group`"):
        automation(group_id=add_group(service, environment="staging"))
    service.sql("UPDATE templates SET removed_at = clock_now()")
    try:
        with pytest.raises(AutomationFault, match="`template`"):
            automation()
    finally:
        service.sql("UPDATE templates SET removed_at = NULL")


def test_there_are_at_most_a_hundred(service: Service, automation: Callable[..., int]) -> None:
    """Ended automations and those of the other environment leave room."""
    first = automation()
    copy = """
        INSERT INTO automations (customer_id, environment, user_id, name, occasion, template_id, account_id, zone, years, leap_day, weekend,
                                 asks_approval, planned_through, plan_at, ended_at)
        SELECT customer_id, $1, user_id, $1 || n, occasion, template_id, account_id, zone, years, leap_day, weekend, asks_approval,
               planned_through, plan_at, CASE WHEN $2 THEN clock_now() END FROM automations, generate_series(1, $3) AS n WHERE id = $4
    """
    service.sql(copy, "production", False, MOST_AUTOMATIONS - 2, first)
    service.sql(copy, "production", True, MOST_AUTOMATIONS, first)
    service.sql(copy, "staging", False, MOST_AUTOMATIONS, first)
    automation(name="The hundredth")
    with pytest.raises(TooManyAutomations):
        automation(name="One more")
