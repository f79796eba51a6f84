"""Orders of people: the placer holds them to the role that the person has as the order is placed."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import pytest
from tests.chained import CHAIN, loaded
from tests.distributed import IS_DISTRIBUTED
from tests.orders.builder import build_order, open_session

from largesse.base.errors import BudgetExceeded, InvalidRequest, Unauthorized
from largesse.customers.authenticator import person_calls
from largesse.customers.principal import Principal
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.ledger.own_accounts import OwnAccounts, own_accounts
from largesse.orders.order import Order, Placed
from largesse.orders.placer import Placer

WORLD = b"""
customers:
  - key: acme
    name: Acme Ltd
    plan: starter
    funding: balance
    users:
      - {email: ada@acme.example, name: Ada, role: admin}
      - {email: cem@acme.example, name: Cem, role: member}
    service_accounts: [{key: bot, name: Bot}]
    funding_accounts:
      - {key: gbp, name: Float, master: true, currency: GBP, balance: 100.00}
      - {key: team, name: Team, currency: GBP, balance: 100.00, service_accounts: [bot]}
  - key: globex
    name: Globex
    plan: pro
    funding: balance
"""
ADA, CEM = 1, 2
FLOAT, TEAM = 1, 2
_BUDGET = """
    INSERT INTO budgets (customer_id, environment, currency, name, kind, subject_id, period, limit_minor, starts_at)
    VALUES (1, 'production', 'GBP', 'Small', 'person', $1, 'month', 20, now())
"""


class Desk:
    """Makes orders for people of the first customer."""

    def __init__(self, database: Database, own: OwnAccounts) -> None:
        self.database = database
        self._own = own

    async def principal(self, user_id: int, customer_id: int = 1) -> Principal:
        async with self.database.connection(OPERATOR) as connection:
            session_id = await open_session(connection, user_id)
            caller = await person_calls(
                connection, user_id=user_id, customer_id=customer_id, environment="production", session_id=session_id
            )
        return caller.principal

    async def order(self, user_id: int, account_id: int = FLOAT, codes: int = 1) -> Order:
        return build_order(await self.principal(user_id), self._own, account_id=account_id, codes=codes, cost_minor=10)


@pytest.fixture
async def desk(database_url: str) -> AsyncIterator[Desk]:
    async with loaded(database_url, WORLD) as database:
        async with database.connection(OPERATOR) as connection:
            own = await own_accounts(connection, 1, "production", "GBP")
        yield Desk(database, OwnAccounts(own["receivable"], own["sales"]))


@pytest.fixture
async def placer(desk: Desk) -> AsyncIterator[Placer]:
    placer = Placer(desk.database, CHAIN)
    yield placer
    await placer.close()


async def test_what_a_person_places_is_kept_as_theirs(desk: Desk, placer: Placer) -> None:
    """Whatever the plan is, which is about the API; by a large order's way as by a small one's."""
    orders = [await desk.order(ADA), await desk.order(CEM, codes=150), await desk.order(ADA, TEAM)]
    outcomes = await asyncio.gather(*map(placer.place, orders))
    assert [type(outcome) for outcome in outcomes] == [Placed] * 3
    rows = await desk.database.fetch(
        OPERATOR,
        "SELECT user_id, service_account_id, api_key_id, account_id FROM orders ORDER BY code_count, account_id",
    )
    assert [tuple(row) for row in rows] == [(ADA, None, None, FLOAT), (ADA, None, None, TEAM), (CEM, None, None, FLOAT)]


async def test_a_member_draws_on_no_account_that_is_assigned_to_others(desk: Desk, placer: Placer) -> None:
    with pytest.raises(InvalidRequest, match="no funding account"):
        await placer.place(await desk.order(CEM, TEAM))


@pytest.mark.parametrize("codes", [1, 150])
@pytest.mark.parametrize("change", ["is_active = false", "role = 'member'"])
async def test_a_right_that_was_taken_away_meanwhile_counts(
    desk: Desk, placer: Placer, codes: int, change: str
) -> None:
    order = await desk.order(ADA, codes=codes)
    await desk.database.execute(OPERATOR, f"UPDATE users SET {change} WHERE id = $1", ADA)
    with pytest.raises(Unauthorized):
        await placer.place(order)
    assert await desk.database.fetchval(OPERATOR, "SELECT count(*) FROM orders") == 0


@pytest.mark.parametrize("codes", [1, 150])
@pytest.mark.parametrize("change", ["ended_at = now()", "ends_at = created_at", "awaits_second_step = true"])
async def test_a_session_that_has_ended_meanwhile_places_nothing(
    desk: Desk, placer: Placer, codes: int, change: str
) -> None:
    order, other = await desk.order(ADA, codes=codes), await desk.order(ADA)
    await desk.database.execute(OPERATOR, f"UPDATE sessions SET {change} WHERE id = $1", order.principal.session_id)
    outcomes = await asyncio.gather(placer.place(order), placer.place(other), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [Unauthorized, Placed], "another of theirs is open"


async def test_who_is_no_person_of_the_customer_is_no_caller(desk: Desk) -> None:
    for user_id, customer_id in ((ADA, 2), (99, 1)):
        with pytest.raises(Unauthorized):
            await desk.principal(user_id, customer_id)


async def test_an_order_is_by_a_service_account_or_by_a_person(desk: Desk, placer: Placer) -> None:
    await placer.place(await desk.order(ADA))
    for change in ("user_id = NULL", "service_account_id = 1"):
        with pytest.raises(Exception, match="orders_by_somebody"):
            await desk.database.execute(OPERATOR, f"UPDATE orders SET {change}")


@pytest.mark.skipif(IS_DISTRIBUTED, reason="a coordinator is sent BEGIN as a message of its own")
async def test_what_a_budget_has_left_is_read_with_the_locks_once_it_is_known_that_there_is_one(
    desk: Desk, placer: Placer, trips: list[int]
) -> None:
    async def place() -> list[int]:
        trips.clear()
        await placer.place(await desk.order(ADA))
        return trips.copy()

    def execute(sql: str, *arguments: Any) -> Awaitable[Any]:
        return desk.database.execute(OPERATOR, sql, *arguments)

    assert await place() == [2]
    await execute(_BUDGET, ADA)
    await execute("UPDATE accounts SET has_budgets = true WHERE kind = 'sales'")
    assert await place() == [2, 1], "nobody knew of it"
    assert await place() == [3]
    await execute("UPDATE clock SET ahead_by = interval '40 days'")
    assert await place() == [3, 1], "another month"
    assert await place() == [3]
    with pytest.raises(BudgetExceeded):
        await place()
    await execute("UPDATE budgets SET limit_minor = 1000")
    assert await place() == [3], "as it is now"
    await execute("UPDATE budgets SET ended_at = now()")
    await execute("UPDATE accounts SET has_budgets = false")
    assert await place() == [3], "one for nothing"
    assert await place() == [2]
