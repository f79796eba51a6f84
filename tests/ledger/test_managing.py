"""Group accounts and transfers between accounts: what may be, what is refused, and that nothing is moved twice or beyond what is there."""

import asyncio
from typing import Any

import msgspec
import pytest
from tests.chained import actor_on, chain_of
from tests.distributed import SOMEBODY_WAITS, WAITING
from tests.ledger.worlds import ACME, ADA, DEPOSITS, FLOAT, INITECH, KEY, TEAM, TEST, THEIRS, VAULT, YEN, database
from tests.waiting import until

from largesse.base.errors import InsufficientBalance, InvalidRequest, NotFound, OperatorError
from largesse.customers.principal import Principal
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR, WORKER
from largesse.events.kinds import AccountLow
from largesse.ledger import accounts
from largesse.ledger.accounts import Transfer, transfer
from largesse.ledger.low_balance_store import MOST_MARKED, Watch, find_watch, list_watchers, mark_low_balances
from largesse.ledger.posting import top_up
from largesse.ledger.statements import month_of, read_statement, statement_page
from largesse.ledger.store import list_funding_accounts
from largesse.ledger.top_ups import cancel_top_up, request_top_up
from largesse.orders.reading import read_account

__all__ = ["database"]


async def do(database: Database, operation: Any, *, customer_id: int = ACME, **arguments: Any) -> Any:
    return await operation(await actor_on(database, VAULT, customer_id, "production", ADA), **arguments)


async def move(database: Database, amount_minor: int, from_id: int = FLOAT, to_id: int = TEAM) -> Transfer:
    made: Transfer = await do(database, transfer, from_id=from_id, to_id=to_id, amount_minor=amount_minor)
    return made


async def held(database: Database) -> list[int]:
    rows = await database.fetch(OPERATOR, "SELECT balance_minor FROM accounts WHERE id IN (1, 2) ORDER BY id")
    return [row[0] for row in rows]


async def acts(database: Database) -> list[str]:
    rows = await database.fetch(OPERATOR, "SELECT act FROM audit_events WHERE act ~ '^(account|transfer)' ORDER BY id")
    return [row[0] for row in rows]


async def test_a_transfer_is_balanced_and_both_statements_tell_it(database: Database) -> None:
    made = await move(database, 25_50)
    assert (made.from_name, made.from_minor, made.to_name, made.to_minor) == ("Float", 74_50, "Team", 25_50)
    assert await held(database) == [74_50, 25_50]
    seen = []
    async with database.connection(OPERATOR) as connection:
        since, until = month_of(await connection.fetchval("SELECT clock_now()"))
        for account in (FLOAT, TEAM):
            statement = await read_statement(connection, ACME, account, since, until)
            entry = (await statement_page(connection, statement, None, 10))[-1]
            seen.append((entry.kind, entry.amount_minor, entry.balance_minor, entry.counterpart))
    assert seen == [("transfer", -25_50, 74_50, "Team"), ("transfer", 25_50, 25_50, "Float")]
    assert await acts(database) == ["transfer.made"]


async def test_transfers_that_race_never_take_more_than_there_is(database: Database) -> None:
    outcomes = await asyncio.gather(
        *(move(database, 60_00) for _ in range(2)), *(move(database, 30_00) for _ in range(3)), return_exceptions=True
    )
    moved = [one.amount_minor for one in outcomes if isinstance(one, Transfer)]
    refused = [one for one in outcomes if not isinstance(one, Transfer)]
    assert moved
    assert refused
    assert {type(one) for one in refused} == {InsufficientBalance}
    assert await held(database) == [100_00 - sum(moved), sum(moved)]


@pytest.mark.slow
async def test_transfers_to_and_fro_at_once_do_not_wait_in_a_circle(database: Database) -> None:
    await move(database, 50_00)
    await asyncio.wait_for(
        asyncio.gather(*(move(database, 1, *way) for way in [(FLOAT, TEAM), (TEAM, FLOAT)] * 10)), 20
    )
    assert await held(database) == [50_00, 50_00]


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"amount_minor": 0}, InvalidRequest),
        ({"amount_minor": -1}, InvalidRequest),
        ({"amount_minor": 100_01}, InsufficientBalance),
        ({"to_id": FLOAT}, InvalidRequest),
        ({"to_id": YEN}, InvalidRequest),
        ({"to_id": TEST}, NotFound),
        ({"to_id": THEIRS}, NotFound),
        ({"from_id": THEIRS}, NotFound),
        ({"to_id": DEPOSITS}, NotFound),
    ],
)
async def test_what_is_not_moved(database: Database, changed: dict[str, int], error: type[Exception]) -> None:
    with pytest.raises(error):
        await do(database, transfer, **{"from_id": FLOAT, "to_id": TEAM, "amount_minor": 1, **changed})
    assert await held(database) == [100_00, 0]
    assert await acts(database) == []
    await move(database, 100_00)


async def test_an_account_is_made_renamed_closed_and_opened(database: Database) -> None:
    made, _ = await do(database, accounts.create_account, currency="EUR", name="Noël: Équipe")
    again, _ = await do(database, accounts.create_account, currency="EUR", name="Noel Equipe")
    row = await database.fetchrow(
        OPERATOR, "SELECT key, name, currency, balance_minor, is_master, open_to_all FROM accounts WHERE id = $1", made
    )
    assert row is not None
    assert tuple(row) == ("noel-equipe", "Noël: Équipe", "EUR", 0, False, False)
    key = await database.fetchval(OPERATOR, "SELECT key FROM accounts WHERE id = $1", again)
    assert key == "noel-equipe-2"
    await do(database, accounts.rename_account, account_id=made, name="Winter")
    for _ in range(2):
        await do(database, accounts.close_account, account_id=made)
    await do(database, accounts.rename_account, account_id=again, name="Winter")
    with pytest.raises(accounts.AccountRefused) as refused:
        await do(database, accounts.open_account, account_id=made)
    assert refused.value.why is accounts.Why.NAME_TAKEN
    await do(database, accounts.rename_account, account_id=made, name="Spring")
    await do(database, accounts.open_account, account_id=made)
    assert await acts(database) == [
        "account.created",
        "account.created",
        "account.renamed",
        "account.closed",
        "account.renamed",
        "account.renamed",
        "account.opened",
    ]


async def refused_why(database: Database, what: Any, **wanted: Any) -> accounts.Why:
    with pytest.raises(accounts.AccountRefused) as refused:
        await do(database, what, **wanted)
    return refused.value.why


async def test_what_is_refused_of_accounts(database: Database) -> None:
    assert await refused_why(database, accounts.create_account, currency="GBP", name="fLOAT") is accounts.Why.NAME_TAKEN
    assert await refused_why(database, accounts.create_account, currency="XXX", name="New") is accounts.Why.NO_CURRENCY
    assert (
        await refused_why(database, accounts.create_account, customer_id=INITECH, currency="GBP", name="New")
        is accounts.Why.INVOICED
    )
    assert (
        await refused_why(database, accounts.rename_account, account_id=TEAM, name="Float") is accounts.Why.NAME_TAKEN
    )
    assert await refused_why(database, accounts.close_account, account_id=FLOAT) is accounts.Why.MASTER
    await move(database, 1)
    assert await refused_why(database, accounts.close_account, account_id=TEAM) is accounts.Why.HOLDS
    await move(database, 1, TEAM, FLOAT)
    asked = await do(database, request_top_up, account_id=TEAM, amount_minor=1)
    assert await refused_why(database, accounts.close_account, account_id=TEAM) is accounts.Why.AWAITS
    await do(database, cancel_top_up, reference=asked.reference)
    for account in (THEIRS, TEST, DEPOSITS, 999):
        with pytest.raises(NotFound):
            await do(database, accounts.close_account, account_id=account)
    there = await database.fetchval(
        OPERATOR, "SELECT count(*) FROM accounts WHERE customer_id = 1 AND kind = 'funding'"
    )
    await database.execute(
        OPERATOR,
        """
        INSERT INTO accounts (customer_id, environment, kind, key, name, currency)
        SELECT 1, 'production', 'funding', 'more-' || n, 'More ' || n, 'GBP' FROM generate_series(2, $1) AS n
        """,
        accounts.MOST_ACCOUNTS - there,
    )
    await do(database, accounts.create_account, currency="GBP", name="The last")
    assert await refused_why(database, accounts.create_account, currency="GBP", name="Beyond") is accounts.Why.TOO_MANY


@pytest.mark.parametrize(
    ("watch", "error"),
    [
        (Watch(0, (ADA,)), InvalidRequest),
        (Watch(1, ()), InvalidRequest),
        (Watch(1, tuple(range(1, accounts.MOST_WATCHERS + 2))), InvalidRequest),
        (Watch(1, (999,)), InvalidRequest),
    ],
)
async def test_who_is_not_told(database: Database, watch: Watch, error: type[Exception]) -> None:
    with pytest.raises(error):
        await do(database, accounts.watch_balance, account_id=FLOAT, watch=watch)
    for account in (THEIRS, TEST, DEPOSITS):
        with pytest.raises(NotFound):
            await do(database, accounts.watch_balance, account_id=account, watch=Watch(1, (ADA,)))
    async with database.connection(OPERATOR) as connection:
        assert await find_watch(connection, ACME, FLOAT) is None
        assert [one.name for one in await list_watchers(connection, ACME)] == ["Ada"]


async def test_a_balance_that_is_low_already_is_no_news(database: Database) -> None:
    await do(database, accounts.watch_balance, account_id=FLOAT, watch=Watch(200_00, (ADA,)))
    async with database.transaction(WORKER) as connection:
        assert await mark_low_balances(connection) == []
    await do(database, accounts.watch_balance, account_id=FLOAT, watch=Watch(50_00, (ADA,)))
    await move(database, 50_01)
    async with database.transaction(WORKER) as connection:
        assert await mark_low_balances(connection) == [(ACME, FLOAT, [ADA])]
        assert await mark_low_balances(connection) == []
    [row] = await database.fetch(OPERATOR, "SELECT event, order_id, environment, body FROM events")
    assert (row["event"], row["order_id"], row["environment"]) == ("account.low", None, "production")
    low = msgspec.json.decode(row["body"], type=AccountLow)
    assert (low.customer_id, low.account_id, low.currency, low.balance, low.below) == (ACME, FLOAT, "GBP", 49.99, 50)
    await do(database, accounts.watch_balance, account_id=FLOAT, watch=None)
    assert await acts(database) == ["account.watched", "account.watched", "transfer.made", "account.watched"]


@pytest.mark.slow
async def test_many_balances_that_fall_at_once_take_several_transactions(database: Database) -> None:
    """All in one transaction: with 100,000 it held the watches and the next events for minutes."""
    await database.execute(
        OPERATOR,
        """
        WITH fallen AS (
            INSERT INTO accounts (customer_id, environment, kind, key, name, currency, balance_minor)
            SELECT $1, 'production', 'funding', 'f' || n, 'F', 'GBP', 1 FROM generate_series(1, $2::int) AS n RETURNING id)
        INSERT INTO account_watches SELECT $1, id, 5000, false FROM fallen
        """,
        ACME,
        MOST_MARKED + 1,
    )
    marked = []
    for _ in range(3):
        async with database.transaction(WORKER) as connection:
            marked.append(len(await mark_low_balances(connection)))
    assert marked == [MOST_MARKED, 1, 0]


async def test_of_two_changes_of_a_watch_at_once_the_second_replaces_the_first(database: Database) -> None:
    first, second, third = (Watch(below_minor, (ADA,)) for below_minor in (5_00, 10_00, 20_00))
    await do(database, accounts.watch_balance, account_id=FLOAT, watch=first)
    changes = []
    async with database.transaction(OPERATOR) as connection:
        # Each change gets as far as it can before it writes the watch.
        await connection.execute("SELECT FROM account_watches WHERE customer_id = $1 FOR UPDATE", ACME)
        for count, watch in enumerate((second, third), 1):
            changes.append(asyncio.create_task(do(database, accounts.watch_balance, account_id=FLOAT, watch=watch)))
            await until(lambda count=count: database.fetch(OPERATOR, f"SELECT WHERE ({WAITING}) = {count}"))
    await asyncio.gather(*changes)
    async with database.connection(OPERATOR) as connection:
        assert await find_watch(connection, ACME, FLOAT) == third


async def test_nothing_is_paid_into_a_closed_account_but_what_is_there_can_leave(database: Database) -> None:
    await do(database, accounts.close_account, account_id=TEAM)
    with pytest.raises(InvalidRequest, match="closed"):
        await move(database, 1)
    with pytest.raises(NotFound):
        await do(database, request_top_up, account_id=TEAM, amount_minor=1)
    async with database.transaction(OPERATOR) as connection:
        with pytest.raises(OperatorError, match="accounts open 2"):
            await top_up(connection, await chain_of(connection, KEY), TEAM, 1, None)
    principal = Principal(
        key_id=None,
        environment="production",
        customer_id=ACME,
        customer_name="Acme Ltd",
        plan="pro",
        funding="balance",
        service_account_id=None,
        service_account_name="",
        service_account_active=True,
        user_id=ADA,
        role="admin",
    )
    async with database.connection(OPERATOR) as connection:
        for account, kind in ((FLOAT, "funding"), (TEAM, "closed")):
            read = await read_account(connection, ACME, account)
            assert read is not None
            assert read.kind == kind
        assert [one.id for one in await list_funding_accounts(connection, principal)] == [FLOAT, YEN]
    # As what an order returns does.
    await do(database, accounts.open_account, account_id=TEAM)
    await move(database, 5)
    await database.execute(OPERATOR, "UPDATE accounts SET closed_at = clock_now() WHERE id = $1", TEAM)
    assert (await move(database, 5, TEAM, FLOAT)).from_minor == 0


async def test_an_account_that_is_closed_while_a_top_up_waits_for_it_takes_none(database: Database) -> None:
    async def credit() -> None:
        async with database.transaction(OPERATOR) as connection:
            await top_up(connection, await chain_of(connection, KEY), TEAM, 1, None)

    async with database.transaction(OPERATOR) as closing:
        await closing.execute("UPDATE accounts SET closed_at = clock_now() WHERE id = $1", TEAM)
        crediting = asyncio.create_task(credit())
        await until(lambda: database.fetchval(OPERATOR, SOMEBODY_WAITS))
    with pytest.raises(OperatorError, match="accounts open 2"):
        await crediting
    assert await held(database) == [100_00, 0]


async def test_an_account_is_closed_or_gets_a_top_up_that_waits(database: Database) -> None:
    for turn in range(10):
        account_id, _ = await do(database, accounts.create_account, currency="GBP", name=f"Spare {turn}")
        asked, closed = await asyncio.gather(
            do(database, request_top_up, account_id=account_id, amount_minor=5_00),
            do(database, accounts.close_account, account_id=account_id),
            return_exceptions=True,
        )
        assert isinstance(asked, NotFound) != isinstance(closed, accounts.AccountRefused), (asked, closed)
        if not isinstance(asked, NotFound):
            await do(database, cancel_top_up, reference=asked.reference)
