"""Budgets hold orders of the API: to the last minor unit, raced by two processes, from month to month, and refunds give back."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from tests.budgets.conftest import perform, user
from tests.web.api.conftest import Service

from largesse.base.errors import InvalidRequest, NotFound, OperatorError
from largesse.budgets.service import (
    MOST_PEOPLE,
    BelowSpent,
    BudgetNameTaken,
    NewBudget,
    change_budget,
    create_budget,
    end_budget,
)

Budgets = Callable[..., int]
Problems = Callable[..., str]


def order(service: Service, value: float = 1, **members: Any) -> httpx.Response:
    return service.send("gift", "shop", value=value, **members)


def at(service: Service, time: str) -> None:
    """Sets the clock to a time of the test's year."""
    [[year]] = service.sql("SELECT to_char((now() + ahead_by) AT TIME ZONE 'UTC', 'YYYY-') FROM clock")
    service.sql("UPDATE clock SET ahead_by = ($1::text)::timestamptz - now()", f"{year}{time}")


def spent(service: Service) -> dict[str, int]:
    rows = service.sql("SELECT to_char(starts_on, 'MM-DD') AS day, spent_minor FROM budget_periods ORDER BY starts_on")
    return {row[0]: row[1] for row in rows}


def test_a_refused_order_names_the_budget_and_what_is_left(
    service: Service, budget: Budgets, problem: Problems
) -> None:
    budget(
        "Onboarding",
        limit=30_00,
        per_gift=20_00,
        kind="account",
        subject_id=service.ids["funding_accounts"]["gbp"],
        period="total",
    )
    assert order(service, 12.5).status_code == 200
    before = service.state()
    detail = problem(order(service, 17.51), 403, "budget-exceeded")
    assert detail == "The order costs 17.51 GBP, and the budget 'Onboarding' has 17.50 of 30.00 GBP left."
    detail = problem(order(service, 20.01), 403, "budget-exceeded")
    assert detail == "A gift costs 20.01 GBP, and the budget 'Onboarding' allows at most 20.00 GBP for each."
    assert service.state() == before
    assert order(service, 17.5).status_code == 200
    assert order(service, 1, account="team").status_code == 200, "another account"
    assert order(service, 1, key="crm").status_code == 403, "whoever draws from it"
    assert service.findings() == []


def test_the_balance_is_checked_after_the_budget(service: Service, budget: Budgets, problem: Problems) -> None:
    budget("Small", limit=1_000_00)
    problem(order(service, 900, account="team"), 402, "insufficient-balance")
    problem(order(service, 1_000.01, account="team"), 403, "budget-exceeded")


def test_two_hundred_at_once_in_two_processes_spend_what_fits_and_no_more(
    service: Service, start_service: Callable[..., Service], budget: Budgets
) -> None:
    other = start_service(like=service)
    budget("Raced", limit=37 * 50 + 49, period="total")
    service.client("hr"), other.client("hr")
    before = service.balance("gbp")

    def send(number: int) -> httpx.Response:
        return order((service, other)[number % 2], 0.5)

    with ThreadPoolExecutor(32) as threads:
        answers = list(threads.map(send, range(200)))
    placed = [answer.json()["reference"] for answer in answers if answer.status_code == 200]
    assert (len(placed), sum(answer.status_code == 403 for answer in answers)) == (37, 163)
    assert round(before - service.balance("gbp"), 2) == 18.5
    assert list(spent(service).values()) == [37 * 50]
    assert service.findings() == []
    cancelled = [service.client("hr").post(f"/orders/{reference}/cancel") for reference in placed[:5]]
    assert {answer.status_code for answer in cancelled} == {200}
    with ThreadPoolExecutor(32) as threads:
        again = [answer.status_code for answer in threads.map(send, range(40))]
    assert again.count(200) == 5, "what was refunded can be spent again"
    assert service.findings() == []


def test_a_large_order_is_held_as_a_small_one(service: Service, budget: Budgets, problem: Problems) -> None:
    budget("Large", limit=2_00)
    problem(order(service, 0.01, codeQuantity=201), 403, "budget-exceeded")
    assert order(service, 0.01, codeQuantity=200).status_code == 200
    problem(order(service, 0.01), 403, "budget-exceeded")
    assert service.findings() == []


def test_a_refund_goes_back_to_the_month_it_was_spent_in(service: Service, budget: Budgets) -> None:
    at(service, "01-30 12:00Z")
    budget("Monthly", limit=10_00)
    reference = order(service, 8, codeQuantity=1).json()["reference"]
    assert order(service, 3).status_code == 403
    at(service, "02-02 12:00Z")
    assert order(service, 9).status_code == 200, "a month of its own"
    assert service.client("hr").post(f"/orders/{reference}/cancel").status_code == 200
    assert spent(service) == {"01-01": 0, "02-01": 9_00}
    assert order(service, 2).status_code == 403, "January's refund is not February's"
    assert service.findings() == []


def test_a_quarter_goes_on_over_its_months(service: Service, budget: Budgets) -> None:
    at(service, "04-30 12:00Z")
    budget("Quarterly", limit=10_00, period="quarter")
    assert order(service, 6).status_code == 200
    at(service, "06-30 23:59Z")
    assert order(service, 5).status_code == 403
    at(service, "07-01 00:01Z")
    assert order(service, 5).status_code == 200
    assert spent(service) == {"04-01": 6_00, "07-01": 5_00}


def test_what_was_spent_this_month_counts_and_a_sum_below_it_is_refused(service: Service, budget: Budgets) -> None:
    at(service, "01-31 23:00Z")
    order(service, 50)
    at(service, "02-20 12:00Z")
    assert order(service, 7).status_code == 200
    kept = order(service, 2, codeQuantity=2).json()["reference"]
    service.client("hr").post(f"/orders/{kept}/cancel")
    with pytest.raises(BelowSpent) as refused:
        budget("Late", limit=6_99)
    assert refused.value.spent_minor == 7_00
    assert service.sql("SELECT count(*) FROM budgets")[0][0] == 0
    assert not any(row["has_budgets"] for row in service.sql("SELECT has_budgets FROM accounts"))
    budget_id = budget("Late", limit=8_00)
    assert spent(service) == {"02-01": 7_00}
    assert [order(service, 1.01).status_code, order(service, 1).status_code] == [403, 200]
    with pytest.raises(BelowSpent) as refused:
        perform(service, change_budget, budget_id, name="Late", limit_minor=7_99, per_gift_minor=None)
    assert refused.value.spent_minor == 8_00
    perform(service, change_budget, budget_id, name="Early", limit_minor=9_00, per_gift_minor=60)
    service.sql("UPDATE budgets SET limit_minor = 700")  # as after an approval beyond the budget
    perform(service, change_budget, budget_id, name="Renamed", limit_minor=7_00, per_gift_minor=60)
    service.sql("UPDATE budgets SET limit_minor = 900")
    assert [order(service, 0.61).status_code, order(service, 0.6).status_code] == [403, 200]
    assert service.findings() == []


def test_a_new_budget_counts_the_orders_of_its_own_period_currency_and_environment(
    service: Service, staging: Service, budget: Budgets
) -> None:
    at(service, "03-31 23:30Z")
    budget("First", limit=90_00)
    order(service, 5)
    at(service, "04-10 12:00Z")
    order(service, 7)
    assert service.send("gift", "books", value=20, country="IE", account="eur").status_code == 200
    assert staging.send("gift", "shop", key="hr-test", account="test-gbp", value=2).status_code == 200
    second = budget("Second", limit=90_00)
    counted = service.sql(
        "SELECT budget_id = $1, spent_minor FROM budget_periods ORDER BY starts_on, budget_id", second
    )
    assert [tuple(row) for row in counted] == [(False, 5_00), (False, 7_00), (True, 7_00)]


def test_all_budgets_of_an_order_hold(service: Service, budget: Budgets, problem: Problems) -> None:
    budget("Bot", limit=10_00, period="total")
    budget("Float", limit=5_00, period="total", kind="account", subject_id=service.ids["funding_accounts"]["gbp"])
    reference = order(service, 4, codeQuantity=1).json()["reference"]
    assert "'Float'" in problem(order(service, 2), 403, "budget-exceeded")
    assert order(service, 6, account="team").status_code == 200
    assert "'Bot'" in problem(order(service, 1), 403, "budget-exceeded")
    assert service.client("hr").post(f"/orders/{reference}/cancel").status_code == 200
    left = service.sql("SELECT spent_minor FROM budget_periods ORDER BY budget_id")
    assert [row["spent_minor"] for row in left] == [6_00, 0], "a refund goes once to each budget of its order"
    assert service.findings() == []


def test_the_people_of_a_group_are_changed_and_those_of_others_stay(service: Service, budget: Budgets) -> None:
    ada, cem = (user(service, f"{name}@acme.example") for name in ("ada", "cem"))
    one, other = (budget(name, limit=1_00, kind="group", user_ids=(ada,)) for name in ("One", "Other"))
    perform(service, change_budget, one, name="One", limit_minor=1_00, per_gift_minor=None, user_ids=(cem,))
    people = service.sql("SELECT budget_id, user_id FROM budget_people ORDER BY budget_id")
    assert [tuple(row) for row in people] == [(one, cem), (other, ada)]
    strangers = (cem, user(service, "gil@globex.example"))
    with pytest.raises(NotFound):
        perform(service, change_budget, one, name="One", limit_minor=1_00, per_gift_minor=None, user_ids=strangers)


def test_an_ended_budget_limits_nothing_and_takes_refunds(service: Service, budget: Budgets) -> None:
    budget_id = budget("Short", limit=1_00, period="total")
    reference = order(service, 1).json()["reference"]
    assert order(service, 1).status_code == 403
    assert perform(service, end_budget, budget_id) == "Short"
    assert order(service, 1).status_code == 200
    assert service.client("hr").post(f"/orders/{reference}/cancel").status_code == 200
    assert spent(service) == {"01-01": 0}
    assert service.findings() == []
    with pytest.raises(NotFound):
        perform(service, end_budget, budget_id)
    with pytest.raises(NotFound):
        perform(service, change_budget, budget_id, name="Short", limit_minor=1, per_gift_minor=None)


def test_environments_are_apart(service: Service, staging: Service, budget: Budgets) -> None:
    budget("Test", limit=1_00, environment="staging")
    assert order(service, 5).status_code == 200
    assert staging.send("gift", "shop", key="hr-test", account="test-gbp", value=2).status_code == 403
    assert service.findings() == []


def test_an_order_without_budgets_reads_and_writes_nothing_for_them(service: Service, budget: Budgets) -> None:
    assert order(service).status_code == 200
    budget("Euro only", limit=1, kind="account", subject_id=service.ids["funding_accounts"]["team"])
    assert order(service, 5, account="gbp").status_code == 200
    assert list(spent(service).values()) == [0]
    assert service.sql("SELECT count(*) FROM budget_orders")[0][0] == 0


def test_a_quote_says_it_too(service: Service, budget: Budgets, problem: Problems) -> None:
    budget("Quoted", limit=1_00)
    body = service.body("gift", "shop", value=2)
    assert "'Quoted' has 1.00 of 1.00 GBP left" in problem(
        service.client("hr").post("/quote/gift", json=body), 403, "budget-exceeded"
    )


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"name": ""}, InvalidRequest),
        ({"name": "x" * 61}, InvalidRequest),
        ({"currency": "XXX"}, OperatorError),
        ({"kind": "team"}, InvalidRequest),
        ({"period": "week"}, InvalidRequest),
        ({"kind": "role", "role": "viewer"}, InvalidRequest),
        ({"kind": "group", "user_ids": ()}, InvalidRequest),
        ({"kind": "group", "user_ids": (999_999,)}, NotFound),
        ({"kind": "group", "user_ids": range(900_000, 900_000 + MOST_PEOPLE)}, NotFound),
        ({"kind": "group", "user_ids": range(900_000, 900_001 + MOST_PEOPLE)}, InvalidRequest),
        ({"kind": "person", "subject_id": 999_999}, NotFound),
        ({"kind": "service_account", "subject_id": 999_999}, NotFound),
        ({"kind": "account", "subject_id": 999_999}, NotFound),
        ({"limit_minor": None}, InvalidRequest),
        ({"limit_minor": -1}, InvalidRequest),
        ({"per_gift_minor": 0}, InvalidRequest),
    ],
)
def test_what_is_no_budget(service: Service, changes: dict[str, Any], error: type[Exception]) -> None:
    sound = {
        "name": "Sound", "currency": "GBP", "kind": "service_account", "limit_minor": 1,
        "subject_id": service.ids["service_accounts"]["hr-bot"],
    }  # fmt: skip
    with pytest.raises(error):
        perform(service, create_budget, NewBudget(**{**sound, **changes}))
    assert service.sql("SELECT count(*) FROM budgets")[0][0] == 0


def test_a_name_is_used_once_and_another_customers_subject_never(service: Service, budget: Budgets) -> None:
    budget("Twice", limit=1_00)
    with pytest.raises(BudgetNameTaken):
        budget("twice", limit=2_00)
    for kind, subject_id in (
        ("person", user(service, "gil@globex.example")),
        ("service_account", service.ids["service_accounts"]["globex-bot"]),
        ("account", service.ids["funding_accounts"]["globex-gbp"]),
        ("account", service.ids["funding_accounts"]["eur"]),
    ):
        with pytest.raises(NotFound):
            budget("Others", limit=1_00, kind=kind, subject_id=subject_id)


def test_what_was_changed_from_outside_is_found(service: Service, budget: Budgets) -> None:
    budget("Checked", limit=9_00, period="total")
    order(service, 2)
    assert service.findings() == []
    for forgery, found in (
        ("UPDATE budget_periods SET spent_minor = 1", "budgets-add-up"),
        ("UPDATE budget_orders SET spent_minor = 1", "budgets-count-orders"),
        ("DELETE FROM budget_orders", "budgets-miss-no-order"),
        ("UPDATE accounts SET has_budgets = false", "accounts-know-budgets"),
    ):
        service.sql(forgery)
        assert any(found in one for one in service.findings()), found
