"""A budget, the orders that count towards it, and the rules by which it refuses an order.

Periods are in UTC, and `starts_on` is their first day. A budget without periods has one, which starts on ALL.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, date, datetime
from typing import NamedTuple, TypeAlias

import msgspec

from largesse.base.errors import BudgetExceeded
from largesse.base.money import canonical

KINDS = ("person", "group", "role", "service_account", "account")
PERIODS = ("month", "quarter", "total")
ROLES = ("member", "admin")  # the roles that may send
ALL = date(1970, 1, 1)

# The key of the sum of a budget's period: customer, budget, and first day of the period.
PeriodKey: TypeAlias = tuple[int, int, date]
# The customer, environment and currency of an order. Only budgets with the same three can limit it.
BudgetScope: TypeAlias = tuple[int, str, str]


class Spender(NamedTuple):
    """The facts that decide which budgets an order counts towards."""

    customer_id: int
    environment: str
    currency: str
    user_id: int | None = None
    role: str | None = None
    service_account_id: int | None = None
    account_id: int | None = None

    @property
    def scope(self) -> BudgetScope:
        """The scope of the budgets that may limit the order."""
        return self.customer_id, self.environment, self.currency


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """A budget, with the amount spent in its current period."""

    customer_id: int
    id: int
    environment: str
    currency: str
    name: str
    kind: str
    subject_id: int | None
    role: str | None
    period: str
    limit_minor: int | None
    per_gift_minor: int | None
    starts_at: datetime
    user_ids: frozenset[int] = frozenset()  # the people of a group
    spent_minor: int = 0

    @property
    def scope(self) -> BudgetScope:
        """The scope of the orders that it may limit."""
        return self.customer_id, self.environment, self.currency

    @property
    def left_minor(self) -> int | None:
        """The amount that may still be spent in the current period, never below zero; None if the budget has no total."""
        return None if self.limit_minor is None else max(0, self.limit_minor - self.spent_minor)

    def key(self, at: datetime) -> PeriodKey:
        """Returns the key of the sum to which an order placed at that time is added."""
        return self.customer_id, self.id, period_start(self.period, at)

    def limits(self, spender: Spender) -> bool:
        """Returns whether the orders of this spender count towards the budget."""
        if self.scope != spender.scope:
            return False
        match self.kind:
            case "person":
                return spender.user_id == self.subject_id
            case "group":
                return spender.user_id in self.user_ids
            case "role":
                return spender.user_id is not None and spender.role == self.role
            case "service_account":
                return spender.service_account_id == self.subject_id
            case _:
                return spender.account_id == self.subject_id

    def is_of(self, user_id: int, role: str, account_ids: Collection[int] = ()) -> bool:
        """Returns whether the budget may limit a person who uses these accounts."""
        spender = Spender(*self.scope, user_id=user_id, role=role)
        return self.limits(spender) or (self.kind == "account" and self.subject_id in account_ids)


class Charge(msgspec.Struct, frozen=True, gc=False):
    """The amount of an order that counts towards a budget, in the period that starts on a day."""

    customer_id: int
    budget_id: int
    starts_on: date
    reference: str
    spent_minor: int


class BudgetLeft(msgspec.Struct, frozen=True):
    """What is left of a budget before and after an order; None for a budget without a total."""

    budget: Budget
    before_minor: int | None
    after_minor: int | None


def period_start(period: str, at: datetime) -> date:
    """Returns the first day of the period that contains a time."""
    day = at.astimezone(UTC).date()
    if period == "total":
        return ALL
    month = day.month if period == "month" else (day.month - 1) // 3 * 3 + 1
    return day.replace(month=month, day=1)


def period_end(period: str, at: datetime) -> date | None:
    """Returns the day on which the next period starts. None if `period` is `total`."""
    if period == "total":
        return None
    start = period_start(period, at)
    months = start.year * 12 + start.month - 1 + (1 if period == "month" else 3)
    return date(months // 12, months % 12 + 1, 1)


def budgets_of(spender: Spender, budgets: Iterable[Budget]) -> list[Budget]:
    """Returns the budgets that an order counts towards."""
    return [budget for budget in budgets if budget.limits(spender)]


def left_after(budget: Budget, total_minor: int) -> BudgetLeft:
    """Returns what is left of a budget after an order with that price."""
    before = budget.left_minor
    return BudgetLeft(budget, before, None if before is None else max(0, before - total_minor))


def require_within(
    budgets: Iterable[Budget], spent: Mapping[PeriodKey, int], at: datetime, total_minor: int, gift_minor: int
) -> None:
    """Raises BudgetExceeded if an order costs more than is left of one of its budgets, or a gift more than the budget allows."""
    for budget in budgets:
        currency = budget.currency
        if budget.per_gift_minor is not None and gift_minor > budget.per_gift_minor:
            raise BudgetExceeded(
                f"A gift costs {canonical(gift_minor, currency)} {currency}, and the budget {budget.name!r} allows at most "
                f"{canonical(budget.per_gift_minor, currency)} {currency} for each.",
                budget=budget.name,
                currency=currency,
                per_gift_minor=budget.per_gift_minor,
            )
        if budget.limit_minor is None:
            continue
        left_minor = max(0, budget.limit_minor - spent.get(budget.key(at), 0))
        if total_minor > left_minor:
            end = period_end(budget.period, at)
            until = f" until {end.isoformat()} (UTC)" if end else ""
            raise BudgetExceeded(
                f"The order costs {canonical(total_minor, currency)} {currency}, and the budget {budget.name!r} has "
                f"{canonical(left_minor, currency)} of {canonical(budget.limit_minor, currency)} {currency} left{until}.",
                budget=budget.name,
                currency=currency,
                left_minor=left_minor,
            )
