"""Pollers of GET /orders?after= miss no order, though orders commit in another order than that of their ids.

Several serving processes place orders of one customer in several currencies, so that nothing but the database holds them
together; a trigger delays the COMMIT of some. In the long form FAULT_ROUNDS times as many orders are placed.
"""

import asyncio
import os
import random
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import asyncpg
import pytest
from tests.waiting import until

ORDERS = 50 * int(os.environ.get("FAULT_ROUNDS", "3"))
PROCESSES = 2
CURRENCIES = {"GBP": "coffee", "EUR": "books", "USD": "cinema"}
WORLD = """
customers:
  - key: acme
    name: Acme Ltd
    plan: pro
    funding: balance
    service_accounts: [{key: bot, name: Bot}]
    api_keys: [{key: acme, service_account: bot, environment: production}]
    funding_accounts:
      - {key: GBP, name: Pounds, currency: GBP, balance: 1000000}
      - {key: EUR, name: Euro, currency: EUR, balance: 1000000}
      - {key: USD, name: Dollars, currency: USD, balance: 1000000}
products:
  - {key: coffee, name: Coffee, digital: true, currency: GBP, countries: [GB], denominations: [5]}
  - {key: books, name: Books, digital: true, currency: EUR, countries: [GB], denominations: [5]}
  - {key: cinema, name: Cinema, digital: true, currency: USD, countries: [GB], denominations: [5]}
"""
DAWDLES = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'"
# Within the transaction, at its COMMIT.
DELAYS = """
CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    {wait}
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER dawdle AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION dawdle();
"""
SOME_TIME = "IF random() < 0.3 THEN PERFORM pg_sleep(random() * 0.2); END IF;"
UNTIL_LET_GO = """
    WHILE NEW.source = 'slow' AND NOT pg_try_advisory_xact_lock(1) LOOP
        PERFORM pg_sleep(0.01);
    END LOOP;
"""


@asynccontextmanager
async def client(installation: Any) -> AsyncIterator[aiohttp.ClientSession]:
    headers = {"Authorization": f"Bearer {installation.world['api_keys']['acme']}"}
    async with aiohttp.ClientSession(headers=headers, timeout=aiohttp.ClientTimeout(45)) as session:
        yield session


def body(installation: Any, currency: str, **members: Any) -> dict[str, Any]:
    return {
        "productId": installation.id("products", CURRENCIES[currency]),
        "accountId": installation.id("funding_accounts", currency),
        "codeQuantity": 1,
        **members,
    }


async def send(session: aiohttp.ClientSession, url: str, order: dict[str, Any]) -> str:
    async with session.post(f"{url}/send/gift", json=order) as answer:
        placed = await answer.json()
        assert answer.status == 200, placed
        return str(placed["reference"])


async def listed(session: aiohttp.ClientSession, url: str, **query: int) -> list[dict[str, Any]]:
    async with session.get(f"{url}/orders", params=query) as answer:
        orders: list[dict[str, Any]] = await answer.json()
        assert answer.status == 200, orders
        return orders


@pytest.fixture
async def database(clone_database: Callable[[], str]) -> AsyncIterator[tuple[str, asyncpg.Connection]]:
    """A database of the test's own, by its address and by a connection."""
    url = clone_database()
    connection = await asyncpg.connect(url)
    yield url, connection
    await connection.close()


@pytest.mark.long
async def test_an_order_is_held_back_while_an_earlier_one_is_on_its_way(
    start_installation: Any, database: tuple[str, asyncpg.Connection]
) -> None:
    address, connection = database
    installation = start_installation(embedded=False, url=address, world=WORLD)
    await connection.execute(DELAYS.format(wait=UNTIL_LET_GO))
    one, other = [(await asyncio.to_thread(installation.serve)).url for _ in range(2)]
    async with client(installation) as session:
        known = [await send(session, one, body(installation, "GBP"))]
        for code_count in (1, 150):  # 150: in the lane of large orders
            (last,) = await listed(session, other, limit=1)
            await connection.execute("SELECT pg_advisory_lock(1)")
            slow = body(installation, "EUR", codeQuantity=code_count, source="slow")
            sending = asyncio.create_task(send(session, one, slow))
            await until(lambda: connection.fetchval(DAWDLES), 45)
            quick = await send(session, other, body(installation, "GBP"))
            for url in (one, other):
                assert (await listed(session, url))[0]["reference"] == quick
                assert await listed(session, url, after=last["id"]) == []
                assert references(await listed(session, url, after=0)) == known
            await connection.execute("SELECT pg_advisory_unlock(1)")
            known += [await sending, quick]
            for url in (one, other):
                assert references(await listed(session, url, after=last["id"])) == known[-2:]
                assert await listed(session, url, after=0) == (await listed(session, url))[::-1]


def references(orders: list[dict[str, Any]]) -> list[str]:
    return [order["reference"] for order in orders]


@pytest.mark.slow
async def test_pollers_miss_no_order_in_a_burst(
    start_installation: Any, database: tuple[str, asyncpg.Connection], moments: random.Random, capsys: Any
) -> None:
    address, connection = database
    installation = start_installation(embedded=False, url=address, world=WORLD)
    await connection.execute(DELAYS.format(wait=SOME_TIME))
    urls = [(await asyncio.to_thread(installation.serve)).url for _ in range(PROCESSES)]
    numbers = iter(range(ORDERS))
    placed: set[str] = set()

    async def place(session: aiohttp.ClientSession, url: str, currency: str) -> None:
        for _ in numbers:
            count = 120 if moments.random() < 0.05 else 1
            placed.add(await send(session, url, body(installation, currency, codeQuantity=count)))

    async def poll(session: aiohttp.ClientSession) -> list[dict[str, Any]]:
        """All that a poller hears, which asks another process each time and ends when all is placed and nothing follows."""
        heard: list[dict[str, Any]] = []
        while True:
            is_last = placing.done()
            last = heard[-1]["id"] if heard else 0
            more = await listed(session, moments.choice(urls), after=last, limit=moments.randint(1, 50))
            heard += more
            if is_last and not more:
                return heard
            await asyncio.sleep(0.01)

    async def read_naively() -> list[int]:
        """The same without a horizon: what is there to be read above the last id."""
        heard = [0]
        while not placing.done():
            query = "SELECT id FROM orders WHERE id > $1 ORDER BY id"
            heard += [row["id"] for row in await connection.fetch(query, heard[-1])]
            await asyncio.sleep(0.005)
        return heard[1:]

    async with client(installation) as session:
        placing = asyncio.gather(
            *(place(session, url, currency) for url in urls for currency in CURRENCIES for _ in range(2))
        )
        naive, *polled = await asyncio.gather(read_naively(), *(poll(session) for _ in range(4)))
        await placing
    orders = await connection.fetch("SELECT id, reference FROM orders ORDER BY id")
    assert {row["reference"] for row in orders} == placed
    assert len(placed) == ORDERS
    for heard in polled:
        assert [(order["id"], order["reference"]) for order in heard] == [tuple(row) for row in orders]
    missed = {row["id"] for row in orders if row["id"] <= naive[-1]} - set(naive)
    assert missed, "the orders were to commit in another order than that of their ids"
    with capsys.disabled():
        sys.stdout.write(f"\npolling: {len(placed)} orders, none missed; {len(missed)} without the horizon\n")
