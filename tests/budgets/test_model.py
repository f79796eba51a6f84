"""The rules of budgets: who counts towards one, in which period, and what it refuses."""

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from largesse.base.errors import BudgetExceeded
from largesse.budgets.model import ALL, Budget, PeriodKey, Spender, left_after, period_end, period_start, require_within

NOON = datetime(2030, 11, 24, 12, tzinfo=UTC)
CEM = Spender(1, "production", "GBP", user_id=3, role="member", account_id=9)
BOT = Spender(1, "production", "GBP", service_account_id=3, account_id=8)


def build(kind: str = "person", subject_id: int | None = 3, **changes: Any) -> Budget:
    budget = {
        "customer_id": 1, "id": 5, "environment": "production", "currency": "GBP", "name": "Marketing", "kind": kind,
        "subject_id": subject_id, "role": None, "period": "month", "limit_minor": 500, "per_gift_minor": None, "starts_at": NOON,
    }  # fmt: skip
    return Budget(**{**budget, **changes})


@pytest.mark.parametrize(
    ("budget", "spenders"),
    [
        (build("person", 3), {CEM}),
        (build("person", 4), set()),
        (build("group", None, user_ids=frozenset({3, 4})), {CEM}),
        (build("group", None, user_ids=frozenset({4})), set()),
        (build("role", None, role="member"), {CEM}),
        (build("role", None, role="admin"), set()),
        (build("service_account", 3), {BOT}),
        (build("account", 9), {CEM}),
        (build("account", 8), {BOT}),
        (build("person", 3, currency="EUR"), set()),
        (build("person", 3, environment="staging"), set()),
        (build("person", 3, customer_id=2), set()),
    ],
)
def test_whose_orders_count(budget: Budget, spenders: set[Spender]) -> None:
    assert {one for one in (CEM, BOT) if budget.limits(one)} == spenders


@pytest.mark.parametrize(
    ("period", "at", "start", "end"),
    [
        ("month", NOON, date(2030, 11, 1), date(2030, 12, 1)),
        ("month", datetime(2030, 12, 31, 23, 59, 59, tzinfo=UTC), date(2030, 12, 1), date(2031, 1, 1)),
        (
            "month",
            datetime(2030, 12, 1, 0, 30, tzinfo=timezone(timedelta(hours=1))),
            date(2030, 11, 1),
            date(2030, 12, 1),
        ),
        ("month", datetime(2028, 2, 29, tzinfo=UTC), date(2028, 2, 1), date(2028, 3, 1)),
        ("quarter", NOON, date(2030, 10, 1), date(2031, 1, 1)),
        ("quarter", datetime(2030, 3, 31, tzinfo=UTC), date(2030, 1, 1), date(2030, 4, 1)),
        ("quarter", datetime(2030, 4, 1, tzinfo=UTC), date(2030, 4, 1), date(2030, 7, 1)),
        ("total", NOON, ALL, None),
    ],
)
def test_periods_are_of_utc(period: str, at: datetime, start: date, end: date | None) -> None:
    assert (period_start(period, at), period_end(period, at)) == (start, end)


def refuse(budget: Budget, spent_minor: int, total_minor: int, gift_minor: int) -> BudgetExceeded | None:
    spent: dict[PeriodKey, int] = {budget.key(NOON): spent_minor}
    try:
        require_within([budget], spent, NOON, total_minor, gift_minor)
    except BudgetExceeded as refusal:
        return refusal
    return None


def test_a_sum_holds_to_the_last_minor_unit() -> None:
    assert refuse(build(), 300, 200, 200) is None
    refusal = refuse(build(), 300, 201, 201)
    assert refusal is not None
    assert refusal.detail == (
        "The order costs 2.01 GBP, and the budget 'Marketing' has 2.00 of 5.00 GBP left until 2030-12-01 (UTC)."
    )
    assert (refusal.budget, refusal.left_minor, refusal.per_gift_minor) == ("Marketing", 200, None)
    in_all = refuse(build(period="total"), 600, 1, 1)
    assert in_all is not None
    assert in_all.detail.endswith("has 0.00 of 5.00 GBP left.")


def test_a_gift_may_cost_so_much() -> None:
    of_gifts = build(limit_minor=None, per_gift_minor=100)
    assert refuse(of_gifts, 10_000, 1_000, 100) is None, "there is no sum"
    refusal = refuse(of_gifts, 0, 101, 101)
    assert refusal is not None
    assert refusal.detail == "A gift costs 1.01 GBP, and the budget 'Marketing' allows at most 1.00 GBP for each."
    assert (refusal.left_minor, refusal.per_gift_minor) == (None, 100)


def test_a_budget_of_nothing_allows_nothing() -> None:
    assert refuse(build(limit_minor=0), 0, 1, 1) is not None
    assert refuse(build(limit_minor=0), 0, 0, 0) is None


def test_what_an_order_leaves() -> None:
    left = left_after(build(spent_minor=450), 80)
    assert (left.before_minor, left.after_minor) == (50, 0)
    none = left_after(build(limit_minor=None, per_gift_minor=5), 80)
    assert (none.before_minor, none.after_minor) == (None, None)
