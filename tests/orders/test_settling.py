"""After a COMMIT whose answer was lost: an order is said to be placed, or not, once its transaction has ended and not before."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from tests.chained import CHAIN
from tests.orders.builder import insert_order
from tests.orders.test_lock_queue import Town, town

from largesse.base.errors import Unavailable
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.orders.order import Outcome
from largesse.orders.placer import Placer
from largesse.orders.settling import Settler, Unsettled

__all__ = ["town"]


async def _outcome(unsettled: Unsettled) -> Outcome:
    try:
        return await unsettled.outcome()
    except Unavailable as error:
        return error


@pytest.mark.parametrize("ending", ["COMMIT", "ROLLBACK"])
async def test_nothing_is_said_before_the_old_transaction_has_ended(town: Town, ending: str) -> None:
    """The server is still at it when settling begins; no other transaction's locks matter."""
    settler = Settler()
    orders = [town.order(1), town.order(2)]
    async with town.database.connection(OPERATOR) as old, town.locked(3):
        await old.execute("BEGIN")
        number = await old.fetchval("SELECT pg_current_xact_id()::text")
        await insert_order(old, 7, orders[0].reference)
        unsettled = settler.settle(town.database, orders, number)
        outcomes = asyncio.gather(*(_outcome(one) for one in unsettled))
        await asyncio.wait([outcomes], timeout=1)
        assert not outcomes.done()
        await old.execute(ending)
        first, second = await asyncio.wait_for(outcomes, 30)
    assert isinstance(second, Unavailable)
    if ending == "COMMIT":
        assert not isinstance(first, Exception)
        assert first.order == orders[0]
    else:
        assert isinstance(first, Unavailable)
    await settler.close()


async def test_a_transaction_that_a_promoted_standby_never_saw_has_ended(town: Town) -> None:
    (unsettled,) = Settler().settle(town.database, [town.order(1)], str(2**40))
    assert isinstance(await asyncio.wait_for(_outcome(unsettled), 30), Unavailable)


async def test_who_settles_keeps_nobody_waiting(town: Town, database_url: str) -> None:
    """More transactions hang than are settled at once, and other orders are placed beside them."""
    hanging = await Database.connect(database_url)
    placer, settler = Placer(town.database, CHAIN), Settler()
    try:
        settling = []
        async with AsyncExitStack() as stack:
            for customer in range(1, 8):
                old = await stack.enter_async_context(hanging.connection(OPERATOR))
                await stack.enter_async_context(old.transaction())
                number = await old.fetchval("SELECT pg_current_xact_id()::text")
                settling += settler.settle(town.database, [town.order(customer)], number)
            async with asyncio.timeout(30):
                await asyncio.gather(*(placer.place(town.order(customer)) for customer in range(1, 8)))
            assert await town.placed() == 7
        await asyncio.gather(*(_outcome(one) for one in settling))
    finally:
        await placer.close()
        await hanging.close()
