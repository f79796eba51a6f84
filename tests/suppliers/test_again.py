"""Gifts that no supplier could serve are ordered again, once each time, and get their voucher when one is back."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from tests.distributed import IS_DISTRIBUTED
from tests.plans import rows_read
from tests.suppliers.conftest import SETTLED, Opened, claim, pool, verified, work
from tests.suppliers.conftest import WORLD as WORLD  # noqa: PLC0414 - the service's
from tests.suppliers.server import SupplierServer, serving

from largesse.db.pool import Database
from largesse.db.roles import Role
from largesse.db.scope import OPERATOR, WORKER
from largesse.db.statements import plan_by_index
from largesse.fulfilment.vouchers import wait_for_stock
from largesse.lines.states import LineKey
from largesse.suppliers.buyer import Buyer, ask_again
from largesse.suppliers.store import DUE_AGAIN, PRODUCTS_WAITING

BOTH = ("cards", "other")


async def later(database: Database, minutes: int) -> None:
    await database.execute(OPERATOR, "UPDATE clock SET ahead_by = ahead_by + make_interval(mins => $1)", minutes)


async def waiting(database: Database) -> int:
    count: int = await database.fetchval(WORKER, "SELECT count(*) FROM voucher_waits")
    return count


async def test_a_supplier_that_ran_dry_is_asked_again_until_it_delivers(service: Any, opened: Opened) -> None:
    first, second = SupplierServer({"refuse": 1}), SupplierServer({"refuse": 1}, prefix="SECOND")
    with serving(first), serving(second):
        async with pool(service) as (database, vault):
            buyers = [
                Buyer(database, vault, opened("cards", first)), Buyer(database, vault, opened("other", second)),
            ]  # fmt: skip
            await claim(database, service, "bought", 3)
            await work(buyers, database, SETTLED)
            await ask_again(database, BOTH)
            assert (await waiting(database), first.behaved["refuse"]) == (3, 3), "not before its time"
            await later(database, 61)
            await asyncio.gather(*(ask_again(database, BOTH) for _ in range(3)))
            assert await waiting(database) == 0
            await work(buyers, database, SETTLED)
            assert (await waiting(database), first.behaved["refuse"], second.behaved["refuse"]) == (3, 6, 6)
            await ask_again(database, BOTH)
            assert await waiting(database) == 3, "later each time"
            second.behaviours = {"well": 1}
            await later(database, 4 * 60 + 1)
            await ask_again(database, ("other",))
            await work(buyers, database, SETTLED)
            assert (await waiting(database), len(second.orders), first.behaved["refuse"]) == (0, 3, 6)
            assert set(second.order_calls.values()) == {1}
            assert (await verified(database, vault)).findings == []


async def test_lines_that_no_worker_can_buy_for_keep_waiting_for_stock(service: Any, opened: Opened) -> None:
    server = SupplierServer({"refuse": 1})
    with serving(server):
        async with pool(service) as (database, vault):
            await claim(database, service, "stocked", 1)
            await claim(database, service, "mixed", 1)
            await work([Buyer(database, vault, opened("cards", server))], database, SETTLED)
            await later(database, 61)
            await ask_again(database, ("other",))
            assert (await waiting(database), server.behaved["refuse"]) == (2, 1)


@pytest.mark.skipif(IS_DISTRIBUTED, reason="what a node reads is not among what its coordinator explains")
async def test_lines_that_wait_are_read_when_they_are_due(connection: asyncpg.Connection) -> None:
    await connection.execute(
        """
        SET session_replication_role = replica;
        INSERT INTO products (id, key, name, is_digital, currency, countries, denominations_minor, suppliers) OVERRIDING SYSTEM VALUE
        SELECT n, n, n, true, 'GBP', '{GB}', '{500}', '{cards}' FROM generate_series(1, 2) AS n;
        INSERT INTO voucher_waits (product_id, value_minor, customer_id, order_id, number, since, ask_at)
        SELECT 1 + n % 2, 500, 1, n, 1, clock_now(), clock_now() + interval '1 hour'
        FROM generate_series(1, 5000) AS n;
        UPDATE voucher_waits SET ask_at = '-infinity' WHERE order_id IN (2, 3)
        """
    )
    for due, lines in (("false", 1), ("true", 100)):
        await connection.execute(f"UPDATE voucher_waits SET ask_at = clock_now() WHERE {due}; ANALYZE voucher_waits")
        async with connection.transaction():
            await plan_by_index(connection)  # as `ask_again`
            assert await rows_read(connection, Role.WORKER, "voucher_waits", PRODUCTS_WAITING) == 2
            assert await rows_read(connection, Role.WORKER, "voucher_waits", DUE_AGAIN, 1, 100) == lines


async def test_suppliers_are_asked_later_after_each_order_and_not_after_sixty(connection: asyncpg.Connection) -> None:
    await connection.execute("SET session_replication_role = replica")
    at = datetime(2042, 3, 4, 5, tzinfo=UTC)
    for number, (orders, minutes) in enumerate(((0, 15), (1, 30), (6, 960), (7, 1440), (59, 1440), (60, None)), 1):
        await wait_for_stock(connection, LineKey(1, 1, number), 1, 500, at, orders=orders)
        ask_at = await connection.fetchval("SELECT ask_at FROM voucher_waits WHERE number = $1", number)
        assert ask_at == (minutes and at + timedelta(minutes=minutes)), orders
