"""Top-ups and the journal: balanced, append-only, once for each reference."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest
from tests.chained import CHAIN, loaded
from tests.distributed import IS_DISTRIBUTED

from largesse.base.errors import OperatorError
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.ledger.own_accounts import own_accounts
from largesse.ledger.posting import top_up

WORLD = b"""
customers:
  - key: acme
    name: Acme Ltd
    plan: pro
    funding: balance
    funding_accounts:
      - {key: gbp, name: Float, master: true, currency: GBP}
      - {key: jpy, name: Yen, currency: JPY, balance: 500}
      - {key: test, name: Test, currency: GBP, environment: staging}
"""


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with loaded(database_url, WORLD) as database:
        yield database


async def credit(database: Database, account_id: int, amount_minor: int, reference: str | None = None) -> int:
    async with database.transaction(OPERATOR) as connection:
        return (await top_up(connection, CHAIN, account_id, amount_minor, reference)).balance_minor


async def entries(database: Database, account_id: int) -> list[tuple[int, int]]:
    rows = await database.fetch(
        OPERATOR, "SELECT amount_minor, balance_minor FROM entries WHERE account_id = $1 ORDER BY id", account_id
    )
    return [(row[0], row[1]) for row in rows]


async def test_a_top_up_is_a_balanced_movement(database: Database) -> None:
    assert await credit(database, 1, 1050) == 1050
    assert await credit(database, 1, 1) == 1051
    assert await entries(database, 1) == [(1050, 1050), (1, 1051)]
    sums = await database.fetch(OPERATOR, "SELECT sum(amount_minor)::int FROM entries GROUP BY movement_id")
    assert {row[0] for row in sums} == {0}
    balances = await database.fetch(
        OPERATOR,
        "SELECT kind, balance_minor FROM accounts WHERE currency = 'GBP' AND environment = 'production' ORDER BY kind",
    )
    assert [tuple(row) for row in balances] == [("deposits", -1051), ("funding", 1051), ("receivable", 0), ("sales", 0)]


async def test_an_opening_balance_is_a_top_up(database: Database) -> None:
    assert await entries(database, 2) == [(500, 500)]


async def test_a_reference_credits_an_account_once(database: Database) -> None:
    assert await credit(database, 1, 100, "transfer-1") == 100
    assert await credit(database, 1, 100, "transfer-1") == 100
    with pytest.raises(OperatorError, match=r"'transfer-1' already credited £1\.00"):
        await credit(database, 1, 101, "transfer-1")
    assert await credit(database, 3, 101, "transfer-1") == 101
    assert await credit(database, 1, 100, "transfer-2") == 200
    assert await entries(database, 1) == [(100, 100), (100, 200)]


@pytest.mark.slow
async def test_top_ups_at_once_lose_nothing_and_repeat_nothing(database: Database) -> None:
    await asyncio.gather(*(credit(database, 1, 1 + n, f"r{n}") for n in range(20) for _ in range(3)))
    assert await database.fetchval(OPERATOR, "SELECT balance_minor FROM accounts WHERE id = 1") == 210
    found = await entries(database, 1)
    assert sorted(amount for amount, _ in found) == list(range(1, 21))
    running = 0
    for amount, balance in found:
        running += amount
        assert balance == running


@pytest.mark.parametrize("amount_minor", [0, -1])
async def test_an_amount_that_is_not_positive_is_refused(database: Database, amount_minor: int) -> None:
    with pytest.raises(OperatorError, match="greater than zero"):
        await credit(database, 1, amount_minor)


async def test_only_funding_accounts_are_topped_up(database: Database) -> None:
    others = await database.fetch(OPERATOR, "SELECT id FROM accounts WHERE kind <> 'funding'")
    for account_id in [row["id"] for row in others] + [999_999]:
        with pytest.raises(OperatorError, match=f"there is no funding account {account_id}"):
            await credit(database, account_id, 100)


async def test_a_customers_own_accounts_are_made_once_however_many_ask(database: Database) -> None:
    async def ask() -> dict[str, int]:
        async with database.connection(OPERATOR) as connection:
            return await own_accounts(connection, 1, "production", "EUR")

    answers = await asyncio.gather(*(ask() for _ in range(20)))
    assert all(answer == answers[0] for answer in answers)
    assert set(answers[0]) == {"receivable", "sales", "deposits"}


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET amount_minor = 1",
        "DELETE FROM entries",
        "TRUNCATE entries",
        pytest.param(
            "UPDATE entries SET balance_minor = 0 WHERE false",
            marks=pytest.mark.skipif(IS_DISTRIBUTED, reason="a cluster asks no node for what is nowhere"),
        ),
    ],
)
async def test_entries_are_never_changed(database: Database, statement: str) -> None:
    before = await entries(database, 2)
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="append-only"):
        await database.execute(OPERATOR, statement)
    assert await entries(database, 2) == before


async def test_no_funding_account_is_overdrawn_by_any_statement(database: Database) -> None:
    with pytest.raises(asyncpg.CheckViolationError, match="accounts_not_overdrawn"):
        await database.execute(OPERATOR, "UPDATE accounts SET balance_minor = -1 WHERE id = 1")


async def test_a_top_up_goes_by_the_clock_of_the_orders(database: Database) -> None:
    await database.execute(OPERATOR, "UPDATE clock SET ahead_by = interval '1 day'")
    await credit(database, 1, 1050)
    ahead = await database.fetchval(
        OPERATOR, "SELECT created_at > now() + interval '23 hours' FROM entries WHERE account_id = 1"
    )
    assert ahead
