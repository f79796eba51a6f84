"""Top-ups that customers ask for: who may, what ends them, and what is credited, once."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from tests.chained import actor_on
from tests.distributed import IS_DISTRIBUTED
from tests.ledger.worlds import ACME, ADA, FLOAT, GLOBEX, TEST, THEIRS, VAULT, YEN, database

from largesse.base.errors import InvalidRequest, NotFound, OperatorError
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.ledger import top_ups
from largesse.ledger.low_balance_store import Watch, save_watch
from largesse.ledger.store import find_funding_account, list_all_accounts
from largesse.ledger.top_ups import new_transfer_reference

__all__ = ["database"]


async def ask(
    database: Database,
    amount_minor: int = 100_00,
    *,
    customer_id: int = ACME,
    account_id: int = FLOAT,
    environment: str = "production",
) -> top_ups.TopUp:
    actor = await actor_on(database, VAULT, customer_id, environment, ADA if customer_id == ACME else None)
    return await top_ups.request_top_up(actor, account_id, amount_minor)


async def confirm(database: Database, reference: str, amount_minor: int | None = None) -> top_ups.TopUp:
    return await top_ups.confirm_top_up(await actor_on(database, VAULT), reference, amount_minor)


async def cancel(database: Database, reference: str, customer_id: int = ACME) -> top_ups.TopUp:
    return await top_ups.cancel_top_up(await actor_on(database, VAULT, customer_id, "production"), reference)


async def entries(database: Database) -> list[tuple[Any, ...]]:
    """What was credited: account, amount and reference."""
    rows = await database.fetch(
        OPERATOR, "SELECT account_id, amount_minor, reference FROM entries WHERE reference IS NOT NULL ORDER BY id"
    )
    return [tuple(row) for row in rows]


async def test_one_that_is_asked_for_waits_and_is_credited_once(database: Database) -> None:
    asked = await ask(database)
    assert (asked.state, asked.account, asked.currency, asked.requested_by) == ("waiting", "Float", "GBP", "Ada")
    assert asked.expires_at - asked.requested_at == top_ups.WAITS_FOR
    async with database.connection(OPERATOR) as connection:
        assert await top_ups.list_top_ups(connection, (ACME, "production"), waiting=True) == [asked]
        assert await top_ups.list_top_ups(connection, (ACME, "staging")) == []
        assert await top_ups.list_top_ups(connection, (GLOBEX, "production")) == []
        assert await top_ups.list_all_top_ups(connection) == [asked]
        assert await top_ups.list_all_top_ups(connection, customer="globex") == []
    done = await confirm(database, asked.reference)
    assert (done.state, done.credited_minor) == ("confirmed", 100_00)
    assert done.ended_at is not None
    for again in (None, 100_00):
        assert await confirm(database, asked.reference, again) == done
    with pytest.raises(OperatorError, match=r"confirmed with £100\.00 already"):
        await confirm(database, asked.reference, 1)
    assert await entries(database) == [(FLOAT, 100_00, asked.reference)]
    async with database.connection(OPERATOR) as connection:
        assert await top_ups.list_top_ups(connection, (ACME, "production"), waiting=True) == []
        assert await top_ups.list_top_ups(connection, (ACME, "production")) == [done]
        assert (await top_ups.list_all_top_ups(connection), await top_ups.list_all_top_ups(connection, ended=True)) == (
            [],
            [done],
        )


async def test_another_amount_may_come(database: Database) -> None:
    asked = await ask(database, 5_000, account_id=YEN)
    done = await confirm(database, asked.reference, 4_990)
    assert (done.amount_minor, done.credited_minor) == (5_000, 4_990)
    assert await entries(database) == [(YEN, 4_990, asked.reference)]


async def test_many_confirm_at_once_and_one_credit_is_made(database: Database) -> None:
    asked = await ask(database)
    done = await asyncio.gather(*(confirm(database, asked.reference) for _ in range(8)))
    assert {one.state for one in done} == {"confirmed"}
    assert len(await entries(database)) == 1


async def test_of_two_lines_of_a_bank_that_pay_one_top_up_only_one_confirms_it(database: Database) -> None:
    asked = await ask(database)
    actor = await actor_on(database, VAULT)
    for _ in range(2):  # pressed twice
        await top_ups.confirm_top_up(actor, asked.reference, 100_00, bank_line=b"first")
    with pytest.raises(OperatorError, match="paid twice"):
        await top_ups.confirm_top_up(actor, asked.reference, 100_00, bank_line=b"second")
    assert await entries(database) == [(FLOAT, 100_00, asked.reference)]
    by_hand = await ask(database)
    await confirm(database, by_hand.reference)
    with pytest.raises(OperatorError, match="paid twice"):
        await top_ups.confirm_top_up(actor, by_hand.reference, 100_00, bank_line=b"third")


async def test_confirming_and_cancelling_at_once_ends_it_one_way(database: Database) -> None:
    for _ in range(5):
        asked = await ask(database)
        both = await asyncio.gather(
            confirm(database, asked.reference), cancel(database, asked.reference), return_exceptions=True
        )
        async with database.connection(OPERATOR) as connection:
            found = await top_ups.find_top_up(connection, (ACME, "production"), asked.reference)
        failed = [one for one in both if isinstance(one, BaseException)]
        assert [type(one) for one in failed] == [InvalidRequest if found.state == "confirmed" else OperatorError]
        credited = [entry for entry in await entries(database) if entry[2] == asked.reference]
        assert len(credited) == (found.state == "confirmed")


async def test_one_that_is_cancelled_is_not_credited(database: Database) -> None:
    asked = await ask(database)
    with pytest.raises(NotFound):
        await cancel(database, asked.reference, GLOBEX)
    done = await cancel(database, asked.reference)
    assert done.state == "cancelled"
    assert await cancel(database, asked.reference) == done
    with pytest.raises(OperatorError, match="was cancelled"):
        await confirm(database, asked.reference)
    assert await entries(database) == []


async def test_one_whose_time_is_over_is_told_so_and_its_money_taken_all_the_same(database: Database) -> None:
    asked = await ask(database)
    await database.execute(
        OPERATOR, "UPDATE clock SET ahead_by = ahead_by + $1::interval", top_ups.WAITS_FOR - timedelta(seconds=60)
    )
    async with database.connection(OPERATOR) as connection:
        assert (await top_ups.find_top_up(connection, (ACME, "production"), asked.reference)).state == "waiting"
    await database.execute(OPERATOR, "UPDATE clock SET ahead_by = ahead_by + $1::interval", timedelta(seconds=61))
    async with database.connection(OPERATOR) as connection:
        [found] = await top_ups.list_all_top_ups(connection)
        assert found.state == "expired"
        assert await top_ups.list_top_ups(connection, (ACME, "production"), waiting=True) == []
    assert (await confirm(database, asked.reference)).state == "confirmed"


@pytest.mark.parametrize("account_id", [TEST, THEIRS, 99])
async def test_an_account_of_elsewhere_is_not_found(database: Database, account_id: int) -> None:
    with pytest.raises(NotFound):
        await ask(database, account_id=account_id)


async def test_limits(database: Database) -> None:
    for amount_minor in (0, -1):
        with pytest.raises(InvalidRequest, match="greater than zero"):
            await ask(database, amount_minor)
    # All at once: the limit holds between them.
    made = await asyncio.gather(*(ask(database, 1) for _ in range(top_ups.MAX_WAITING + 3)), return_exceptions=True)
    refused = [one for one in made if isinstance(one, InvalidRequest)]
    assert len(refused) == 3
    assert f"{top_ups.MAX_WAITING} top-ups wait already" in refused[0].detail
    waiting = [one for one in made if isinstance(one, top_ups.TopUp)]
    assert len({one.reference for one in waiting}) == top_ups.MAX_WAITING
    await ask(database, 1, customer_id=GLOBEX, account_id=THEIRS)
    await ask(database, 1, environment="staging", account_id=TEST)
    await cancel(database, waiting[0].reference)
    await ask(database, 1)


async def test_an_unknown_one_is_not_confirmed(database: Database) -> None:
    with pytest.raises(OperatorError, match="there is no top-up RF"):
        await confirm(database, new_transfer_reference())


async def mailed(database: Database) -> list[tuple[Any, ...]]:
    """Who is mailed that money arrived: user, account and amount."""
    rows = await database.fetch(
        OPERATOR,
        "SELECT user_id, account_id, credited_minor FROM people_mails WHERE kind = 'credited' ORDER BY id, user_id",
    )
    return [tuple(row) for row in rows]


async def test_who_asked_for_it_and_who_watches_the_account_are_mailed_once(database: Database) -> None:
    async with database.transaction(OPERATOR) as connection:
        finn = await connection.fetchval(
            "INSERT INTO users (customer_id, email, name, role) VALUES ($1, 'f@x.example', 'Finn', 'finance') RETURNING id",
            ACME,
        )
        await save_watch(connection, ACME, FLOAT, Watch(50_00, (ADA, finn)), 0)
    asked = await ask(database)
    assert await mailed(database) == []
    await asyncio.gather(*(confirm(database, asked.reference, 90_00) for _ in range(3)))
    assert await mailed(database) == [(ADA, FLOAT, 90_00), (finn, FLOAT, 90_00)]


async def test_money_without_a_request_is_mailed_to_those_who_watch(database: Database) -> None:
    actor = await actor_on(database, VAULT)
    async with database.transaction(OPERATOR) as connection:
        await save_watch(connection, ACME, FLOAT, Watch(50_00, (ADA,)), 0)
        account = await find_funding_account(connection, str(FLOAT))
    for _ in range(2):
        await top_ups.credit_account(actor, account, 10_00, "INVOICE-7")
    assert await mailed(database) == [(ADA, FLOAT, 10_00)]


async def test_an_account_that_nobody_watches_mails_nobody(database: Database) -> None:
    asked = await ask(database, customer_id=GLOBEX, account_id=THEIRS)
    await confirm(database, asked.reference)
    assert await mailed(database) == []


@pytest.mark.skipif(IS_DISTRIBUTED, reason="rows of nodes are not counted here")
async def test_a_search_among_many_customers_looks_none_up_for_each_row(database: Database) -> None:
    """Each top-up that waits, and each account, looked its customer up: a page read 150,000 blocks at 100,000 customers."""
    await database.execute(
        OPERATOR,
        """
        WITH c AS (INSERT INTO customers (key, name, plan, funding)
                   SELECT 'many-' || n, 'Customer ' || n, 'starter', 'balance' FROM generate_series(1, 5000) AS n RETURNING id),
        a AS (INSERT INTO accounts (customer_id, environment, kind, key, name, is_master, open_to_all, currency)
              SELECT id, 'production', 'funding', 'm', 'Float', true, true, 'GBP' FROM c RETURNING customer_id, id)
        INSERT INTO top_ups (customer_id, environment, account_id, reference, amount_minor, requested_at, expires_at)
        SELECT customer_id, 'production', id, 'RF' || lpad(id::text, 14, '0'), 100, now(), now() FROM a
        """,
    )
    await database.execute(OPERATOR, "ANALYZE customers, accounts, top_ups")
    read = "SELECT sum(idx_tup_fetch) FROM pg_stat_xact_user_tables WHERE relname = 'customers'"
    async with database.transaction(OPERATOR) as connection:
        before = await connection.fetchval(read)  # reads of earlier transactions that are not flushed yet
        assert [one.customer for one in await top_ups.list_waiting_top_ups(connection, "mer 4999", None, 51)] == [
            "many-4999"
        ]
        between = await connection.fetchval(read)
        assert [one.customer for one in await list_all_accounts(connection, "mer 4999", 0, 51)] == ["many-4999"]
        assert between - before < 50
        assert await connection.fetchval(read) - between < 50
