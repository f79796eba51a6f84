"""Accounts that somebody else has locked keep nobody waiting but those who need them, and those not for ever."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import pytest
from tests.chained import CHAIN
from tests.closing import closing
from tests.distributed import IS_DISTRIBUTED
from tests.orders.builder import NOW, build_order, open_placer

from largesse.base.errors import Unavailable
from largesse.customers.principal import Principal
from largesse.db.pool import Connection, Database
from largesse.db.scope import OPERATOR
from largesse.ledger.own_accounts import OwnAccounts, own_accounts
from largesse.ledger.posting import lock_accounts
from largesse.orders.lock_queue import LockQueue
from largesse.orders.order import Order, Placed
from largesse.orders.placer import Placer
from largesse.orders.reading import BEGIN, wait_for_accounts
from largesse.seed.load import load_seed
from largesse.seed.reading import parse_seed

CUSTOMERS = 12
WORLD = "customers:\n" + "".join(
    f"""
  - key: c{n}
    name: Customer {n}
    plan: pro
    funding: invoiced
    service_accounts: [{{key: bot, name: Bot}}]
    api_keys: [{{key: k{n}, service_account: bot, environment: production}}]
"""
    for n in range(1, CUSTOMERS + 1)
)
MANY = 101  # codes: a large order


class Town:
    """Invoiced customers, numbered from 1."""

    def __init__(self, database: Database, own: dict[int, OwnAccounts]) -> None:
        self.database = database
        self.own = own

    def order(self, customer: int, external_reference: str | None = None, *, codes: int = 1) -> Order:
        principal = Principal(customer, "production", customer, "Customer", "pro", "invoiced", customer, "Bot", True)
        return build_order(principal, self.own[customer], codes=codes, external_reference=external_reference)

    @asynccontextmanager
    async def locked(self, *customers: int) -> AsyncIterator[Connection]:
        """Somebody else holds the accounts of these customers for as long as the block lasts."""
        async with self.database.connection(OPERATOR) as holder:
            transaction = holder.transaction()
            await transaction.start()
            for customer in sorted(customers):
                await holder.execute("SELECT FROM accounts WHERE customer_id = $1 ORDER BY id FOR UPDATE", customer)
            try:
                yield holder
            finally:
                await transaction.rollback()

    async def placed(self) -> int:
        return await self.database.fetchval(OPERATOR, "SELECT count(*) FROM orders")


@pytest.fixture
async def town(database_url: str) -> AsyncIterator[Town]:
    async with closing(Database.connect(database_url, max_connections=20)) as database:
        own = {}
        async with database.connection(OPERATOR) as connection:
            await load_seed(connection, CHAIN, parse_seed(WORLD.encode(), "world.yaml"))
            for customer in range(1, CUSTOMERS + 1):
                accounts = await own_accounts(connection, customer, "production", "GBP")
                own[customer] = OwnAccounts(accounts["receivable"], accounts["sales"])
        yield Town(database, own)


@pytest.mark.long
@pytest.mark.parametrize("codes", [1, MANY])
async def test_any_number_of_locked_customers_keep_no_other_waiting(town: Town, codes: int) -> None:
    """Before, two locked customers held both tasks for small orders, and one the task for large ones."""
    held: list[asyncio.Task[Placed]] = []
    async with open_placer(town.database) as placer:
        async with town.locked(*range(1, CUSTOMERS)):
            for _ in range(3):
                held += [asyncio.create_task(placer.place(town.order(n, codes=codes))) for n in range(1, CUSTOMERS)]
                await asyncio.sleep(0.05)
                async with asyncio.timeout(20):
                    await placer.place(town.order(CUSTOMERS))
                    await placer.place(town.order(CUSTOMERS, codes=MANY))
            assert not any(task.done() for task in held)
        async with asyncio.timeout(30):
            await asyncio.gather(*held)
    assert await town.placed() == len(held) + 6


async def test_who_becomes_free_does_not_wait_for_those_who_do_not(town: Town) -> None:
    """Eleven are locked, and the one freed is placed while the ten others stay so: whoever's turn it was."""
    async with open_placer(town.database, timeout_s=60) as placer:
        async with town.locked(*range(2, CUSTOMERS)):
            async with town.locked(1):
                held = [asyncio.create_task(placer.place(town.order(n))) for n in range(1, CUSTOMERS)]
                await asyncio.sleep(0.5)
            async with asyncio.timeout(30):
                await held[0]
            assert not any(task.done() for task in held[1:])
        async with asyncio.timeout(30):
            await asyncio.gather(*held)


async def test_an_order_does_not_wait_for_ever(town: Town) -> None:
    async with open_placer(town.database, timeout_s=0.3) as placer:
        async with town.locked(1, 2, 3, 4):
            waiting = [placer.place(town.order(n, codes=codes)) for n in (1, 2, 3, 4) for codes in (1, MANY)]
            async with asyncio.timeout(30):
                outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [Unavailable] * 8
        assert all(isinstance(o, Unavailable) and o.retry_after_s == 5 for o in outcomes)
        await placer.place(town.order(1))
    assert await town.placed() == 1


async def test_orders_that_waited_are_placed_together(town: Town) -> None:
    async with open_placer(town.database) as placer:
        async with town.locked(1):
            held = [asyncio.create_task(placer.place(town.order(1))) for _ in range(100)]
            await asyncio.sleep(0.4)
        async with asyncio.timeout(30):
            await asyncio.gather(*held)
    transactions = await town.database.fetchval(OPERATOR, "SELECT count(DISTINCT xmin::text) FROM orders")
    assert transactions <= 3


async def test_a_customer_fills_half_the_room_at_most(town: Town) -> None:
    """Twelve may wait. One customer's six leave six; of those another one gets three, and a third one finds a place."""
    gate = asyncio.Event()
    taken: list[Order] = []

    async def place(orders: list[Order]) -> list[Placed]:
        taken.extend(orders)
        await gate.wait()
        return [Placed(order, NOW) for order in orders]

    async def find_free(orders: Sequence[Order]) -> set[int]:
        return {account_id for order in orders for account_id in order.account_ids}

    room = LockQueue(place, find_free, timeout_s=60, max_waiting=12)
    waiting = [asyncio.create_task(room.submit(town.order(n))) for n in (1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3)]
    await asyncio.wait(waiting, timeout=0.1)
    refused = [at for at, task in enumerate(waiting) if task.done()]
    assert refused == [6, 10]
    assert [isinstance(waiting[at].exception(), Unavailable) for at in refused] == [True, True]
    gate.set()
    assert len(await asyncio.gather(*waiting, return_exceptions=True)) == 12
    assert len(taken) == 10
    await asyncio.gather(*(room.submit(town.order(1)) for _ in range(6)))
    await room.close()


async def test_a_reference_that_somebody_is_taking_keeps_only_its_own_order_waiting(town: Town) -> None:
    """The other transaction holds no account: only writing the order finds it, and the other orders of its batch must not pay for that."""
    async with open_placer(town.database, timeout_s=60) as placer:
        async with town.database.connection(OPERATOR) as other:
            taking = other.transaction()
            await taking.start()
            await other.execute(
                """
                INSERT INTO orders (id, reference, customer_id, environment, service_account_id, source,
                    external_reference, gift_selection, country, currency, value_minor, total_minor, code_count,
                    recipient_count, delivery_mode, wrapping_key, created_at)
                VALUES (1000000, 'R', 1, 'production', 1, 'api', 'taken', 'gift', 'GB', 'GBP', 1, 1, 1, 0, 'manual',
                    'default', now())
                """
            )
            held = asyncio.create_task(placer.place(town.order(1, "taken")))
            orders = [town.order(n, f"{n}-{m}") for n in (1, 2, 3) for m in range(40)]
            async with asyncio.timeout(30):
                await asyncio.gather(*(placer.place(order) for order in orders))
            assert not held.done()
            await taking.rollback()
        async with asyncio.timeout(30):
            await held
    assert await town.placed() == 121


@pytest.mark.slow
async def test_two_placers_have_a_shared_account_in_turn(town: Town) -> None:
    """Both keep it busy without a pause, and neither keeps the other from it."""
    placers = [Placer(town.database, CHAIN) for _ in range(2)]
    count = 40

    async def keep_placing(placer: Placer) -> None:
        for _ in range(count):
            await placer.place(town.order(1))

    try:
        async with asyncio.timeout(60):
            await asyncio.gather(*(keep_placing(placer) for placer in placers for _ in range(8)))
    finally:
        for placer in placers:
            await placer.close()
    assert await town.placed() == 2 * 8 * count


@pytest.mark.skipif(IS_DISTRIBUTED, reason="how rows lie in a table is a matter of its node")
@pytest.mark.parametrize(
    ("numbers", "lock"),
    [
        ((1, 2, 3), wait_for_accounts),
        ((1,), lambda connection, orders: lock_accounts(connection, 1, _account_ids(orders)[::-1])),
    ],
    ids=["orders", "balances"],
)
async def test_accounts_are_locked_in_the_order_of_their_ids_whatever_the_plan(
    town: Town,
    database_url: str,
    numbers: tuple[int, ...],
    lock: Callable[[Connection, list[Order]], Awaitable[object]],
) -> None:
    """Who waits for an account holds those with lower ids and none with higher ones, so that no two wait for each other.

    The plan here reads the table from its beginning, and the row of the lowest id stands last in it.
    """
    orders = [town.order(n) for n in numbers]
    ids = _account_ids(orders)
    await town.database.execute(OPERATOR, "UPDATE accounts SET key = key WHERE id = $1", ids[0])
    name = await town.database.fetchval(OPERATOR, "SELECT current_database()")
    for plan in ("indexscan", "indexonlyscan", "bitmapscan"):
        await town.database.execute(OPERATOR, f'ALTER DATABASE "{name}" SET enable_{plan} = off')
    async with closing(Database.connect(database_url)) as fresh:
        last = "SELECT id FROM accounts WHERE id = ANY($1::int[]) ORDER BY ctid DESC LIMIT 1"
        assert await fresh.fetchval(OPERATOR, last, ids) == ids[0]
        for at, number in enumerate(ids):
            async with fresh.connection(OPERATOR) as holder, fresh.connection(OPERATOR) as locker:
                holding = holder.transaction()
                await holding.start()
                await holder.execute("SELECT FROM accounts WHERE id = $1 FOR UPDATE", number)
                await locker.execute(BEGIN)
                await locker.execute("SET LOCAL lock_timeout = 0")
                locking = asyncio.ensure_future(lock(locker, orders))
                await _waits(fresh, locker)
                free = await fresh.fetch(OPERATOR, "SELECT id FROM accounts FOR UPDATE SKIP LOCKED")
                await holding.rollback()
                await locking
                await locker.execute("ROLLBACK")
            held = set(ids) - {row["id"] for row in free}
            assert sorted(held) == ids[: at + 1]


def _account_ids(orders: list[Order]) -> list[int]:
    return sorted(number for order in orders for number in order.account_ids)


async def _waits(database: Database, connection: Connection) -> None:
    """Returns when `connection` waits for a lock."""
    query = "SELECT cardinality(pg_blocking_pids($1)) > 0, pg_sleep(0.005)"
    async with asyncio.timeout(30):
        while not await database.fetchval(OPERATOR, query, connection.get_server_pid()):
            pass


async def test_a_turn_that_is_broken_off_refuses_its_orders_and_the_room_goes_on(town: Town) -> None:
    """A statement that was cancelled ends its turn alone; a task that is cancelled itself ends."""
    turns, stuck = 0, asyncio.Event()

    async def place(orders: Sequence[Order]) -> list[Placed | Exception]:
        nonlocal turns
        turns += 1
        if turns == 1:
            raise asyncio.CancelledError
        if turns == 3:
            stuck.set()
            await asyncio.Event().wait()
        return [Unavailable("Nothing was placed.")] * len(orders)

    async def free(orders: Sequence[Order]) -> set[int]:
        return set()

    room = LockQueue(place, free, timeout_s=60.0, max_waiting=100)
    for said in ("The request was broken off.", "Nothing was placed."):
        with pytest.raises(Unavailable, match=said):
            await asyncio.wait_for(room.submit(town.order(1)), 20)
    unplaced = asyncio.create_task(room.submit(town.order(1)))
    await asyncio.wait_for(stuck.wait(), 20)
    for task in room._tasks:
        task.cancel()
    done, _ = await asyncio.wait(room._tasks, timeout=20)
    assert len(done) == len(room._tasks)
    assert all(task.cancelled() for task in done)
    unplaced.cancel()
