"""A customer's own ledger accounts: created once, found in batches, and no id is spent without a row."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest
from tests.chained import loaded
from tests.closing import closing
from tests.distributed import IS_DISTRIBUTED

from largesse.db.pool import Connection, Database
from largesse.db.scope import OPERATOR, Scope
from largesse.ledger import own_accounts as statements
from largesse.ledger.own_accounts import OwnAccountCache, OwnAccounts, OwnKey, find_own_accounts, own_accounts

CUSTOMERS = 50
KEYS: list[OwnKey] = [(number, "production", "GBP") for number in range(1, CUSTOMERS + 1)]
RESTARTS = 10_000


def world() -> bytes:
    customers = (
        f"  - {{key: c{number}, name: C{number}, plan: pro, funding: invoiced}}\n" for number in range(1, CUSTOMERS + 1)
    )
    return ("customers:\n" + "".join(customers)).encode()


class CountingDatabase(Database):
    """The database, with the connections counted that it lent."""

    lent = 0

    @asynccontextmanager
    async def session(self, scope: Scope) -> AsyncIterator[Connection]:
        self.lent += 1
        async with super().session(scope) as connection:
            yield connection


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[CountingDatabase]:
    async with loaded(database_url, world(), kind=CountingDatabase) as database:
        database.lent = 0
        yield database


@asynccontextmanager
async def started(database: Database, *, max_cached: int = 100) -> AsyncIterator[OwnAccountCache]:
    """The cache of a process that has just started."""
    cache = OwnAccountCache(database, max_cached=max_cached)
    try:
        yield cache
    finally:
        await cache.close()


async def ids_spent(database: Database) -> int:
    spent: int = await database.fetchval(
        OPERATOR, "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM accounts_id_seq"
    )
    return spent


async def test_the_first_order_creates_three_accounts_and_spends_three_ids(database: Database) -> None:
    async with started(database) as cache:
        found = await cache.find(KEYS[0])
    async with database.connection(OPERATOR) as connection:
        own = await find_own_accounts(connection, *KEYS[0])
    assert (found.receivable, found.sales) == (own["receivable"], own["sales"])
    assert set(own) == {"receivable", "sales", "deposits"}
    assert await ids_spent(database) == 3


async def test_accounts_that_are_gone_are_created_again(database: Database) -> None:
    async with started(database) as cache:
        created = await cache.find(KEYS[0])
        async with database.transaction(OPERATOR) as connection:
            await connection.execute("SET LOCAL session_replication_role = replica")
            await connection.execute("DELETE FROM accounts WHERE kind <> 'funding'")
        assert await cache.find(KEYS[0]) == created
        renewed = await cache.renew(KEYS[0])
        assert renewed != created
        assert await cache.find(KEYS[0]) == renewed


async def test_processes_that_start_together_spend_no_id_without_a_row(database: Database) -> None:
    async def first_order(key: OwnKey) -> object:
        async with started(database) as cache:
            return await cache.find(key)

    answers = await asyncio.gather(*(first_order(key) for key in KEYS[:5] for _ in range(4)))
    assert len(set(map(repr, answers))) == 5
    assert await ids_spent(database) == await database.fetchval(OPERATOR, "SELECT count(*) FROM accounts") == 15


@pytest.mark.skipif(IS_DISTRIBUTED, reason="a coordinator is sent BEGIN as a message of its own")
async def test_a_look_up_takes_one_round_trip_whether_accounts_are_missing_or_not(
    database: Database, trips: list[int]
) -> None:
    async with started(database) as cache:
        created = await cache.find(KEYS[0])
    assert len(trips) == 1
    async with started(database) as cache:
        assert await cache.find(KEYS[0]) == created
    assert len(trips) == 2


async def test_who_has_accounts_waits_for_nobody_and_who_has_none_waits_for_who_creates_them(
    database: Database,
) -> None:
    async with started(database) as cache:
        complete = await cache.find(KEYS[0])
    async with started(database) as cache, started(database) as other:
        async with database.transaction(OPERATOR) as connection:
            await connection.execute("SELECT FROM customers WHERE id <= 2 FOR NO KEY UPDATE")
            async with asyncio.timeout(10):
                assert await cache.find(KEYS[0]) == complete
            waiting = asyncio.create_task(other.find(KEYS[1]))
            own = await own_accounts(connection, *KEYS[1])
            done, _ = await asyncio.wait([waiting], timeout=0.1)
            assert not done
        assert await waiting == OwnAccounts(own["receivable"], own["sales"])
    assert await ids_spent(database) == 6


@pytest.mark.slow
async def test_ten_thousand_restarts_spend_no_id(database: Database) -> None:
    async with started(database) as cache:
        await cache.find(KEYS[0])
    before = await ids_spent(database)
    async with database.transaction(OPERATOR) as connection:
        for _ in range(RESTARTS):
            await own_accounts(connection, *KEYS[0])
    for _ in range(10):
        async with started(database) as cache:
            await cache.find(KEYS[0])
    assert await ids_spent(database) == before


async def test_look_ups_that_wait_share_a_statement(database: CountingDatabase) -> None:
    # The first alone, and then all that waited meanwhile. On a cluster each customer's node is asked, but once.
    lent = CUSTOMERS if IS_DISTRIBUTED else 2
    async with started(database) as cache:
        found = await asyncio.gather(*(cache.find(key) for key in KEYS for _ in range(3)))
        assert database.lent <= lent
        assert len(set(map(repr, found))) == CUSTOMERS
        assert found == await asyncio.gather(*(cache.find(key) for key in KEYS for _ in range(3)))
        assert database.lent <= lent
    assert await ids_spent(database) == 3 * CUSTOMERS


async def test_a_full_cache_drops_the_longest_unused_alone(database: CountingDatabase) -> None:
    async with started(database, max_cached=3) as cache:
        for key in KEYS[:3]:
            await cache.find(key)
        await cache.find(KEYS[0])
        await cache.find(KEYS[3])  # in place of the second
        database.lent = 0
        for key in (KEYS[0], KEYS[2], KEYS[3]):
            await cache.find(key)
        assert database.lent == 0
        await cache.find(KEYS[1])
        assert database.lent == 1


async def test_more_look_ups_at_once_than_the_cache_holds(database: Database) -> None:
    async with started(database, max_cached=1) as cache:
        found = await asyncio.gather(*(cache.find(key) for key in KEYS))
    assert len(set(map(repr, found))) == CUSTOMERS


async def test_a_failed_look_up_is_cached_nowhere(database: Database) -> None:
    async with started(database) as cache:
        await database.execute(OPERATOR, "ALTER TABLE accounts RENAME TO mislaid")
        outcomes = await asyncio.gather(*(cache.find(key) for key in KEYS[:3]), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [asyncpg.UndefinedTableError] * 3
        await database.execute(OPERATOR, "ALTER TABLE mislaid RENAME TO accounts")
        assert await cache.find(KEYS[0])


async def test_a_session_that_sends_statements_one_by_one_creates_the_same(
    database: Database, database_url: str
) -> None:
    separator = "&" if "?" in database_url else "?"
    async with closing(Database.connect(f"{database_url}{separator}pgbouncer=true", max_connections=1)) as pooled:
        await database.execute(OPERATOR, "ALTER TABLE accounts RENAME TO mislaid")
        async with started(pooled) as cache:
            with pytest.raises(asyncpg.UndefinedTableError):
                await cache.find(KEYS[0])
            await database.execute(OPERATOR, "ALTER TABLE mislaid RENAME TO accounts")
            found = await cache.find(KEYS[0])
        async with started(database) as cache:
            assert await cache.find(KEYS[0]) == found
    assert await ids_spent(database) == 3


async def test_environments_and_currencies_have_accounts_of_their_own(database: Database) -> None:
    keys: list[OwnKey] = [(1, "production", "GBP"), (1, "staging", "GBP"), (1, "production", "EUR")]
    async with started(database) as cache:
        found = await asyncio.gather(*(cache.find(key) for key in keys))
    assert len({one.sales for one in found} | {one.receivable for one in found}) == 6


@pytest.mark.skipif(IS_DISTRIBUTED, reason="one customer at a time is looked up on a cluster, by its partition")
@pytest.mark.parametrize("sql", [statements._LOCK_INCOMPLETE, statements._CREATE_AS_JSON], ids=["lock", "create"])
async def test_a_plan_made_while_there_are_few_accounts_reads_no_table_whole(database: Database, sql: str) -> None:
    """A session keeps the plan until statistics change, while the table grows."""
    async with started(database) as cache:
        await cache.find(KEYS[0])
    async with database.session(OPERATOR) as connection:
        await connection.execute("ANALYZE accounts, customers")
        await connection.execute(f"{statements._BEGIN.sql} PREPARE few (int[], text[], text[], text[]) AS {sql}")
        plan = await connection.fetch(
            "EXPLAIN EXECUTE few('{1}', '{production}', '{GBP}', '{receivable,sales,deposits}')"
        )
        await connection.execute("ROLLBACK; DEALLOCATE few")
    assert [line for (line,) in plan if "Seq Scan" in line] == []
