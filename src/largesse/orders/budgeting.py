"""Which budgets an order counts towards. Nothing is read or written for an order whose customer has none in its environment and currency."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from largesse.budgets.model import Spender
from largesse.customers.access import PersonStatus
from largesse.orders.order import Order

if TYPE_CHECKING:
    from largesse.orders.rules import LedgerAccount


def spender_of(order: Order, people: Mapping[int, PersonStatus]) -> Spender:
    """Returns what decides which budgets the order counts towards. `people` are found by `Principal.person_key`."""
    principal, row = order.principal, order.row
    person = None if principal.person_key is None else people.get(principal.person_key)
    return Spender(
        row.customer_id,
        row.environment,
        row.currency,
        principal.user_id,
        None if person is None else person.role,
        principal.service_account_id if principal.user_id is None else None,
        row.account_id,
    )


def budgeted(
    orders: Iterable[Order], accounts: Mapping[int, LedgerAccount], people: Mapping[int, PersonStatus]
) -> set[Spender]:
    """Returns the spenders that budgets may limit, as the accounts of their orders say."""
    if not any(account.has_budgets for account in accounts.values()):
        return set()
    return {
        spender_of(order, people)
        for order in orders
        if any((account := accounts.get(one)) is not None and account.has_budgets for one in order.account_ids)
    }
