"""What a service account may order at once and in a day: to the last minor unit, within a batch and beside what was ordered before."""

from collections.abc import Mapping

import pytest
from msgspec.structs import replace
from tests.orders.test_rules import make_context, make_order

from largesse.base.errors import DailyLimit, OrderLimit
from largesse.customers.access import KeyStatus
from largesse.customers.restrictions import Limit, write_limits
from largesse.orders.order import SpendingKey
from largesse.orders.rules import BatchContext, decide, limited_daily

SPENT: SpendingKey = (1, 1, "production", "GBP")


def limited(spent: Mapping[SpendingKey, int] | None = None, /, **limits: int) -> BatchContext:
    """A context in which the first two keys may order so much in pounds."""
    status = KeyStatus("pro", True, write_limits({"GBP": Limit(**limits)}))
    return replace(make_context(), key_statuses={1: status, 2: status}, spending=dict(spent or {}))


def refused(costs: list[int], context: BatchContext) -> dict[int, type]:
    """Which of a batch of orders that cost so much are refused, and as what."""
    decided = decide([make_order(cost_minor=cost) for cost in costs], context)
    return {at: type(problem) for at, problem in decided.refusals.items()}


def test_what_one_order_may_cost() -> None:
    assert refused([300], limited(largest_order_minor=300)) == {}
    assert refused([301], limited(largest_order_minor=300)) == {0: OrderLimit}
    assert refused([300, 300, 300], limited(largest_order_minor=300)) == {}, "at once, not together"


def test_what_a_day_of_orders_may_cost() -> None:
    assert refused([100, 150, 50], limited(daily_minor=300)) == {}
    assert refused([100, 150, 51, 50], limited(daily_minor=300)) == {2: DailyLimit}, "what is refused is not spent"
    assert refused([1], limited({SPENT: 300}, daily_minor=300)) == {0: DailyLimit}
    assert refused([1], limited({SPENT: 299}, daily_minor=300)) == {}
    assert refused([300], limited({(1, 2, "production", "GBP"): 300}, daily_minor=300)) == {}, "another's"
    assert refused([300], limited({(1, 1, "staging", "GBP"): 300}, daily_minor=300)) == {}, "in test mode"


def test_the_smaller_of_both_limits_holds() -> None:
    both = {"largest_order_minor": 200, "daily_minor": 300}
    assert refused([200, 100], limited(**both)) == {}
    assert refused([201, 200, 101, 100], limited(**both)) == {0: OrderLimit, 2: DailyLimit}


def test_what_was_spent_is_added_up_where_a_day_is_limited() -> None:
    context = limited({SPENT: 40}, daily_minor=1_000)
    orders = [make_order(cost_minor=100, codes=2), make_order(cost_minor=30), make_order(service_account=2)]
    decided = decide(orders, context)
    assert decided.spent == {SPENT: 230, (1, 2, "production", "GBP"): 100}
    assert context.spending[SPENT] == 270
    assert decide([make_order()], limited(largest_order_minor=300)).spent == {}


@pytest.mark.parametrize(
    ("limits", "keys"),
    [
        ({"GBP": Limit(daily_minor=300)}, [SPENT]),
        ({"GBP": Limit(largest_order_minor=300)}, []),
        ({"EUR": Limit(daily_minor=300)}, []),
        (None, []),
    ],
)
def test_whose_day_is_read(limits: Mapping[str, Limit] | None, keys: list[SpendingKey]) -> None:
    key_statuses = {1: KeyStatus("pro", True, write_limits(limits) if limits else None)}
    orders = [make_order(), make_order(), make_order(key=2), make_order(key=3)]
    assert limited_daily(orders, key_statuses) == keys
