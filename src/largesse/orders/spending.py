"""The daily sums of service accounts with a daily limit, written under the lock of their customer's sales account.

Each order of a customer in an environment and currency holds that lock, so no two orders of a service account are decided at once, whichever
funding accounts pay. Where no service account has such a limit nothing is read or written. A day is one of UTC.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from largesse.base.errors import DailyLimit, OrderLimit
from largesse.base.money import canonical
from largesse.budgets.model import Spender
from largesse.customers.access import KeyStatus, PersonStatus
from largesse.customers.restrictions import Limit, read_limits
from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Connection, is_distributed
from largesse.db.sharding import at_node
from largesse.orders.order import Order

if TYPE_CHECKING:
    from largesse.orders.rules import LedgerAccount


# A daily sum: customer, service account, environment and currency.
SpendingKey = tuple[int, int | None, str, str]
_SPENT_TODAY = """
    SELECT currency, spent_minor FROM daily_spending
    WHERE customer_id = $1 AND service_account_id = $2 AND environment = $3 AND day = (clock_now() AT TIME ZONE 'UTC')::date
"""
_ADD = """
    INSERT INTO daily_spending AS known (customer_id, service_account_id, environment, currency, day, spent_minor)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (customer_id, service_account_id, environment, currency) DO UPDATE SET
        spent_minor = excluded.spent_minor + CASE WHEN known.day = excluded.day THEN known.spent_minor ELSE 0 END,
        day = excluded.day
"""


def limit_of(order: Order, status: KeyStatus | None) -> Limit | None:
    """Returns the limit of the order's service account in its currency; None if it has none."""
    if status is None or status.limits is None:
        return None
    return read_limits(status.limits).get(order.currency)


def spending_key(order: Order) -> SpendingKey:
    """Returns the daily sum that the order counts towards."""
    principal = order.principal
    return principal.customer_id, principal.service_account_id, principal.environment, order.currency


def limited_daily(orders: Iterable[Order], key_statuses: Mapping[int, KeyStatus]) -> list[SpendingKey]:
    """Returns the daily sums that limit the orders."""
    if all(status.limits is None for status in key_statuses.values()):
        return []
    limited = {
        spending_key(order): None
        for order in orders
        if order.principal.key_id is not None
        and (limit := limit_of(order, key_statuses.get(order.principal.key_id)))
        and limit.daily_minor is not None
    }
    return list(limited)


def require_within(order: Order, limit: Limit, spent_minor: int) -> None:
    """Raises OrderLimit or DailyLimit when the order costs more than its service account may order at once, or today."""
    total, currency = order.total_minor, order.currency
    name = order.principal.service_account_name
    if limit.largest_order_minor is not None and total > limit.largest_order_minor:
        raise OrderLimit(
            f"The order costs {canonical(total, currency)} {currency}, and the service account {name!r} may order "
            f"{canonical(limit.largest_order_minor, currency)} {currency} at once."
        )
    if limit.daily_minor is not None and spent_minor + total > limit.daily_minor:
        raise DailyLimit(
            f"The order costs {canonical(total, currency)} {currency}, and the service account {name!r} has ordered "
            f"{canonical(spent_minor, currency)} of the {canonical(limit.daily_minor, currency)} {currency} that it may order "
            "in a day (UTC)."
        )


def _spent(pin: str) -> Fragment:
    """Returns SQL for the sums of a day, by their keys."""
    return compose(
        """
        SELECT customer_id, service_account_id, environment, currency, spent_minor
        FROM daily_spending JOIN unnest($1::int[], $2::int[], $3::text[], $4::text[])
            AS wanted (customer_id, service_account_id, environment, currency)
            USING (customer_id, service_account_id, environment, currency)
        WHERE day = $5 AND customer_id = ANY($1::int[]) {node}
        """,
        node=at_node("daily_spending.customer_id", pin),
    )


# By whether customers are distributed over nodes.
_SPENT = {False: _spent(""), True: _spent("$6")}


async def read_spending(connection: Connection, keys: Sequence[SpendingKey], at: datetime) -> dict[SpendingKey, int]:
    """Returns the sums of the day of that instant, in minor units. Call it after the accounts are locked, as a statement of its own.

    A statement that began before the lock would not see what the last holder committed.
    """
    if not keys:
        return {}
    pin = [keys[0][0]] if is_distributed(connection) else []  # a batch is of one customer there
    rows = await connection.fetch(_SPENT[bool(pin)], *map(list, zip(*keys, strict=True)), at.date(), *pin)
    return {tuple(row)[:4]: row["spent_minor"] for row in rows}


async def read_spent_today(
    connection: Connection, customer_id: int, service_account_id: int, environment: str
) -> dict[str, int]:
    """Returns what a service account has ordered today, in minor units by currency, if it has or had a daily limit."""
    rows = await connection.fetch(_SPENT_TODAY, customer_id, service_account_id, environment)
    return {row["currency"]: row["spent_minor"] for row in rows}


async def add_spending(connection: Connection, spent: Mapping[SpendingKey, int], at: datetime) -> None:
    """Adds to the sums of the day of that instant. Sums of an earlier day are replaced."""
    if not spent:
        return
    await connection.executemany(_ADD, [(*key, at.date(), spent_minor) for key, spent_minor in spent.items()])


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
