"""Lists of orders that are asked for at once."""

import asyncio
from itertools import product

import asyncpg
import msgspec
import pytest
from tests.closing import closing
from tests.distributed import IS_DISTRIBUTED

from largesse.customers.principal import Principal
from largesse.db.pool import Database
from largesse.db.roles import Role
from largesse.db.scope import OPERATOR
from largesse.orders.ids import drawn_ids
from largesse.orders.listing import _OF_REFERENCE, OrderLists
from largesse.orders.reading import BEGIN, read_references

ORDERS = """
INSERT INTO orders (id, reference, customer_id, environment, service_account_id, source, gift_selection, country,
    currency, value_minor, total_minor, code_count, recipient_count, delivery_mode, wrapping_key, created_at)
SELECT n, lpad(n::text, 20, '0'), n % 3, CASE WHEN n % 2 = 0 THEN 'production' ELSE 'staging' END, 1, 'api', 'gift',
    'GB', 'GBP', 1000, 1000, 1, 0, 'manual', 'default', now()
FROM generate_series(1, 120) AS n
"""


ONE_ORDER = ORDERS.replace("generate_series(1, 120)", "generate_series($1::int, $1::int)").replace(
    "n % 3, CASE WHEN n % 2 = 0 THEN 'production' ELSE 'staging' END", "5, 'production'"
)


def principal(customer_id: int, environment: str) -> Principal:
    return Principal(1, environment, customer_id, "Acme", "pro", "balance", 1, "bot", True)


@pytest.fixture
async def database(database: Database) -> Database:
    await database.execute(OPERATOR, ORDERS)
    await database.execute(OPERATOR, "SELECT setval('orders_id_seq', 120)")
    return database


async def test_each_gets_its_own_orders(database: Database) -> None:
    """The newest ones, or those after one."""
    lists = OrderLists(database, msgspec.json.encode)
    afters = (None, 0, 1, 59, 60, 113, 120, 2**31 - 1)
    asked = list(product((0, 1, 2, 7), ("production", "staging"), afters, (1, 10, 10, 50)))

    async def ask(customer_id: int, environment: str, after: int | None, limit: int) -> bytes:
        caller = principal(customer_id, environment)
        if after is None:
            return await lists.newest(caller, limit=limit)
        return await lists.after(caller, after, limit=limit)

    answers = await asyncio.gather(*(ask(*one) for one in asked))
    for (customer_id, environment, after, limit), answer in zip(asked, answers, strict=True):
        order_ids = range(120, 0, -1) if after is None else range(after + 1, 121)
        own = [n for n in order_ids if n % 3 == customer_id and n % 2 == (environment == "staging")]
        assert [order["id"] for order in msgspec.json.decode(answer)] == own[:limit]
    await lists.close()


async def test_what_lies_above_the_mark_of_a_transaction_under_way_is_held_back(database: Database) -> None:
    lists = OrderLists(database, msgspec.json.encode)
    drawn = f"SELECT {drawn_ids('$1')}"

    async def heard(after: int) -> list[int]:
        answer = await lists.after(principal(5, "production"), after, limit=50)
        return [order["id"] for order in msgspec.json.decode(answer)]

    async with database.connection(OPERATOR) as slow, database.connection(OPERATOR) as quick:
        async with quick.transaction():
            assert await quick.fetchval(drawn, 2) == [121, 122]
            await quick.execute(ONE_ORDER, 121)
        assert await heard(120) == [121]
        async with slow.transaction():
            assert await slow.fetchval(drawn, 2) == [123, 124]
            async with quick.transaction():
                assert await quick.fetchval(drawn, 1) == [125]
                await quick.execute(ONE_ORDER, 125)
            assert await heard(120) == [121]
            await slow.execute(ONE_ORDER, 124)
        assert await heard(121) == [124, 125]
        undone = slow.transaction()
        await undone.start()
        assert await slow.fetchval(drawn, 1) == [126]
        async with quick.transaction():
            await quick.execute(ONE_ORDER, (await quick.fetchval(drawn, 1))[0])
        assert await heard(125) == []
        await undone.rollback()
        assert await heard(125) == [127]
    await lists.close()


async def test_a_list_is_never_older_than_the_question(database: Database) -> None:
    lists = OrderLists(database, msgspec.json.encode)
    for order_id in range(1001, 1021):
        earlier = [asyncio.create_task(lists.newest(principal(5, "production"), limit=1)) for _ in range(5)]
        await asyncio.sleep(0)
        await database.execute(
            OPERATOR,
            ORDERS.replace("n % 3", "5").replace("generate_series(1, 120)", "generate_series($1::int, $1::int)"),
            order_id,
        )
        wanted = principal(5, "production" if order_id % 2 == 0 else "staging")
        (newest,) = msgspec.json.decode(await lists.newest(wanted, limit=1))
        assert newest["id"] == order_id
        await asyncio.gather(*earlier)
    await lists.close()


async def test_a_customer_with_few_orders_does_not_wait_for_those_of_others(database: Database) -> None:
    many = ORDERS.replace("n % 3", "1").replace("generate_series(1, 120)", "generate_series(1001, 9000)")
    await database.execute(OPERATOR, many)
    await database.execute(OPERATOR, "SELECT setval('orders_id_seq', 9000)")
    await database.execute(OPERATOR, "ANALYZE orders")
    lists = OrderLists(database, msgspec.json.encode)
    rows_read = "SELECT idx_tup_fetch + seq_tup_read FROM pg_stat_user_tables WHERE relname = 'orders'"
    async with database.connection(OPERATOR) as connection:
        await connection.execute("SELECT pg_stat_force_next_flush()")
        before = await connection.fetchval(rows_read)
    few = msgspec.json.decode(await lists.newest(principal(0, "production"), limit=50))
    assert len(few) == 20
    assert len(msgspec.json.decode(await lists.after(principal(0, "production"), 0, limit=5))) == 5
    assert msgspec.json.decode(await lists.after(principal(0, "production"), 120, limit=50)) == []
    await lists.close()
    async with database.connection(OPERATOR) as connection:
        await connection.execute("SELECT pg_stat_force_next_flush()")
        assert await connection.fetchval(rows_read) - before <= 25


@pytest.mark.skipif(IS_DISTRIBUTED, reason="the rows are read on nodes")
async def test_the_newest_orders_of_a_large_customer_among_many_small_ones_are_read_alone(
    database: Database, database_url: str
) -> None:
    """With 200,000 orders among 100,000 customers, ten orders took a read and a sort of all of them: 26,000 blocks."""
    many = ORDERS.replace("n % 3", "CASE WHEN n % 5 = 0 THEN 1 ELSE 1000 + n * 7919 % 2400 END").replace(
        "1, 120", "1001, 31000"
    )
    await database.execute(OPERATOR, many)
    await database.execute(OPERATOR, "SELECT setval('orders_id_seq', 31000)")
    await database.execute(OPERATOR, "ANALYZE orders")
    rows_read = "SELECT idx_tup_fetch + seq_tup_read FROM pg_stat_user_tables WHERE relname = 'orders'"
    serving = await Database.connect(database_url, role=Role.APP, max_connections=1)
    lists = OrderLists(serving, msgspec.json.encode)
    await serving.execute(OPERATOR, "SELECT pg_stat_force_next_flush()")
    before = await serving.fetchval(OPERATOR, rows_read)
    for _ in range(7):
        assert len(msgspec.json.decode(await lists.newest(principal(1, "production"), limit=10))) == 10
    assert len(msgspec.json.decode(await lists.after(principal(1, "production"), 2000, limit=10))) == 10
    await serving.execute(OPERATOR, "SELECT pg_stat_force_next_flush()")
    assert await serving.fetchval(OPERATOR, rows_read) - before == 8 * 10
    await lists.close()
    await serving.close()


@pytest.mark.parametrize("analyzed", [False, True])
async def test_a_reference_is_looked_up_in_its_index(database: Database, database_url: str, analyzed: bool) -> None:
    many = (
        ORDERS.replace("1, 120", "200, 20000")
        .replace("n % 3", "1")
        .replace("id, reference,", "id, external_reference, reference,")
    )
    await database.execute(OPERATOR, many.replace("SELECT n, lpad", "SELECT n, 'r' || n, lpad"))
    if analyzed:
        await database.execute(OPERATOR, "ANALYZE orders")
    whose = principal(1, "staging")
    explained = f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) {_OF_REFERENCE}"
    serving = await Database.connect(database_url, role=Role.APP)  # which policies hold, too
    rows = await serving.fetch(whose.scope, explained, 1, "staging", "r201", 0)
    plan = "\n".join(row[0] for row in rows)
    assert "orders_external_reference" in plan, plan
    assert "rows=1.00" in plan or "rows=1 " in plan, plan
    lists = OrderLists(serving, msgspec.json.encode)
    found = await lists.of_reference(whose, " r201 ", after=None)
    await lists.close()
    await serving.close()
    assert [order["id"] for order in msgspec.json.decode(found)] == [201]


REFERENCED = """
INSERT INTO orders (id, reference, customer_id, environment, service_account_id, source, external_reference,
    gift_selection, country, currency, value_minor, total_minor, code_count, recipient_count, delivery_mode,
    wrapping_key, created_at)
SELECT n, lpad(n::text, 20, '0'), 1, 'production', 1, 'api', 'order-' || lpad(n::text, 24, '0'), 'gift', 'GB', 'GBP', 1000, 1000, 1, 0,
    'manual', 'default', now()
FROM generate_series($1::int, $2::int) AS n
"""


def reference(number: int) -> str:
    return f"order-{number:024}"


@pytest.mark.skipif(IS_DISTRIBUTED, reason="what a node reads its coordinator does not count")
# Between some and others of these the indexes grow a level, one before the other.
@pytest.mark.parametrize("orders", [0, 20, 100, 150, 200, 250, 300, 350, 400, 500, 1_000])
async def test_a_look_up_reads_no_other_orders_before_the_first_analyze(database_url: str, orders: int) -> None:
    async with closing(asyncpg.connect(database_url)) as connection:
        await connection.execute("ALTER TABLE orders SET (autovacuum_enabled = off)")
        await connection.execute(REFERENCED, 1, orders)
        wanted = [(1, "production", reference(7)), (2, "production", reference(7)), (1, "staging", reference(7))]
        await connection.execute(BEGIN)
        await read_references(connection, wanted)  # planned once
        await connection.execute("COMMIT")
        await connection.execute(REFERENCED, orders + 1, 5_000)
        rows_read = "SELECT idx_tup_fetch + seq_tup_read FROM pg_stat_xact_user_tables WHERE relname = 'orders'"
        await connection.execute(BEGIN)
        free = [(1, "production", f"free-{n}") for n in range(50)]
        assert await read_references(connection, [*wanted, *free]) == {wanted[0]: "00000000000000000007"}
        assert await connection.fetchval(rows_read) <= 2 * len(wanted)
