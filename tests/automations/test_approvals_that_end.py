"""An approval of an automation ends when its gift costs more, or when a rule needs it and its approver may not give it any more."""

from collections.abc import Callable, Iterator

import pytest
from tests.automations.conftest import add_contact, move_to, runs, work
from tests.web.api.conftest import Service


def approve(service: Service, minor: int) -> None:
    [bea] = service.sql("SELECT id FROM users WHERE name = 'Bea'")
    service.sql(
        "UPDATE automations SET approved_minor = $1, approved_at = clock_now(), approved_by = $2", minor, bea["id"]
    )


@pytest.fixture
def due(service: Service, automation: Callable[..., int]) -> Iterator[None]:
    """An approved automation with a gift of £10 that is due."""
    move_to(service, "2050-05-14 06:00Z")
    add_contact(service, "May", birthday=515)
    automation(asks_approval=True)
    approve(service, 1000)
    service.sql("DELETE FROM people_mails")
    move_to(service, "2050-05-15 12:00Z")
    yield
    service.sql("DELETE FROM people_mails")


def asked(service: Service) -> list[str]:
    """Who is asked by mail to approve an automation."""
    rows = service.sql(
        "SELECT u.name FROM people_mails m JOIN users u ON u.id = m.user_id WHERE m.kind = 'automation_asked'"
    )
    return sorted(row["name"] for row in rows)


@pytest.mark.usefixtures("due")
def test_a_gift_that_costs_more_waits_for_another_approval(service: Service) -> None:
    service.sql("UPDATE automations SET approved_minor = 999")
    work(service)
    assert [state for _, _, state in runs(service)] == ["waiting"]
    assert service.sql("SELECT reason FROM automation_runs")[0][0] == "not_approved"
    stands = service.sql("SELECT approved_by, approved_minor FROM automations")[0]
    assert tuple(stands) == (None, 999), "the page says at which price it was approved"
    assert asked(service) == ["Bea"]
    approve(service, 1000)
    move_to(service, "2050-05-15 14:00Z")
    work(service)
    assert [state for _, _, state in runs(service)] == ["placed"]


@pytest.mark.usefixtures("due")
def test_a_gift_that_costs_less_is_sent(service: Service) -> None:
    service.sql("UPDATE automations SET approved_minor = 1001")
    work(service)
    assert [state for _, _, state in runs(service)] == ["placed"]


@pytest.mark.usefixtures("due")
@pytest.mark.parametrize(("has_rule", "state"), [(False, "placed"), (True, "waiting")])
def test_an_approval_of_somebody_who_left_stands_unless_a_rule_needs_it(
    service: Service, has_rule: bool, state: str
) -> None:
    service.sql("UPDATE users SET role = 'finance' WHERE name = 'Bea'")
    if has_rule:
        service.sql(
            """
            INSERT INTO approval_rules (customer_id, environment, name, currency, above_minor, beyond_budget, account_ids, product_ids,
                                        collection_ids, approver_ids, needed, expires_days)
            VALUES (1, 'production', 'Dear', 'GBP', 500, false, '{}', '{}', '{}', '{}', 1, 7)
            """
        )
    work(service)
    assert [one for _, _, one in runs(service)] == [state]
    assert service.sql("SELECT approved_by IS NULL FROM automations")[0][0] is has_rule
