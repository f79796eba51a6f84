"""The placer against other writers of the same database: a reference is taken once, whoever comes first."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import asyncpg
import msgspec
import pytest
from tests.chained import CHAIN, loaded
from tests.distributed import IS_DISTRIBUTED, KEEPS_WAITING
from tests.orders.builder import build_order, open_placer
from tests.waiting import until

from largesse.base.errors import InsufficientBalance, ReferenceUsed, Unauthorized, Unavailable
from largesse.customers.access import KeyStatus
from largesse.customers.principal import Principal
from largesse.db.pool import Connection, Database
from largesse.db.scope import OPERATOR
from largesse.ledger.own_accounts import OwnAccounts, own_accounts
from largesse.ledger.payment_sources import OnInvoice
from largesse.lines.codes import draw_codes
from largesse.orders.order import Order, Placed
from largesse.orders.placer import Placer
from largesse.seed.load import load_seed
from largesse.seed.reading import parse_seed

WORLD = b"""
customers:
  - key: acme
    name: Acme Ltd
    plan: pro
    funding: balance
    service_accounts: [{key: bot, name: Bot}]
    api_keys: [{key: hr, service_account: bot, environment: production}]
    funding_accounts: [{key: gbp, name: Float, master: true, currency: GBP, balance: 100.00}]
  - key: globex
    name: Globex
    plan: pro
    funding: invoiced
    service_accounts: [{key: bot, name: Bot}]
    api_keys: [{key: hr2, service_account: bot, environment: production}]
"""


PRODUCTS = b"""
products:
  - {key: coffee, name: Coffee, digital: true, currency: GBP, countries: [GB], denominations: [1]}
  - {key: tea, name: Tea, digital: true, currency: GBP, countries: [GB], denominations: [1]}
"""


class Desk:
    """Makes orders for the first customer."""

    def __init__(self, database: Database, own: OwnAccounts) -> None:
        self.database = database
        self._own = own

    def order(
        self,
        external_reference: str | None = None,
        *,
        cost_minor: int = 100,
        codes: int = 1,
        key_id: int = 1,
        product_id: int = 1,
    ) -> Order:
        principal = Principal(key_id, "production", 1, "Acme Ltd", "pro", "balance", 1, "Bot", True)
        return build_order(
            principal,
            self._own,
            account_id=1,
            cost_minor=cost_minor,
            codes=codes,
            external_reference=external_reference,
            product_id=product_id,
        )

    async def references(self) -> set[str]:
        return {row[0] for row in await self.database.fetch(OPERATOR, "SELECT external_reference FROM orders")}

    async def balance_minor(self) -> int:
        return await self.database.fetchval(OPERATOR, "SELECT balance_minor FROM accounts WHERE id = 1")

    async def waited_for(self, connection: Connection) -> None:
        """Returns when another transaction waits for that of `connection`."""
        process = connection.get_server_pid()
        await until(lambda: self.database.fetchval(OPERATOR, KEEPS_WAITING, process))


@pytest.fixture
async def desk(database_url: str) -> AsyncIterator[Desk]:
    async with loaded(database_url, WORLD) as database:
        async with database.connection(OPERATOR) as connection:
            own = await own_accounts(connection, 1, "production", "GBP")
        yield Desk(database, OwnAccounts(own["receivable"], own["sales"]))


TAKE = """
    INSERT INTO orders (id, reference, customer_id, environment, service_account_id, source, external_reference,
        gift_selection, product_id, country, currency, value_minor, total_minor, code_count, recipient_count,
        delivery_mode, wrapping_key, created_at)
    VALUES (nextval('orders_id_seq'), $1, 1, 'production', 1, 'api', $1, 'gift', 1, 'GB', 'GBP', 1, 1, 1, 0,
        'manual', 'default', now())
"""


@pytest.mark.parametrize("codes", [1, 101])
async def test_a_reference_that_another_process_is_taking_is_waited_for(desk: Desk, codes: int) -> None:
    """`b` is still being taken when the order is tried for the second time."""
    async with open_placer(desk.database) as placer:
        async with desk.database.connection(OPERATOR) as first, desk.database.connection(OPERATOR) as second:
            taking_a, taking_b = first.transaction(), second.transaction()
            await taking_a.start()
            await taking_b.start()
            await first.execute(TAKE, "a")
            await second.execute(TAKE, "b")
            orders = [desk.order(name, codes=codes, cost_minor=10) for name in "abc"]
            placing = [asyncio.create_task(placer.place(order)) for order in orders]
            await desk.waited_for(first)
            await taking_a.commit()
            await desk.waited_for(second)
            await taking_b.commit()
        outcomes = await asyncio.gather(*placing, return_exceptions=True)
    assert [type(outcome).__name__ for outcome in outcomes] == ["ReferenceUsed", "ReferenceUsed", "Placed"]
    assert await desk.references() == {"a", "b", "c"}
    assert await desk.balance_minor() == 10_000 - 10 * codes


async def test_a_reference_that_another_process_gave_up_is_free(desk: Desk) -> None:
    async with open_placer(desk.database) as placer:
        async with desk.database.connection(OPERATOR) as other:
            taking = other.transaction()
            await taking.start()
            await other.execute(TAKE, "a")
            placing = asyncio.create_task(placer.place(desk.order("a")))
            await desk.waited_for(other)
            await taking.rollback()
        assert (await placing).order.reference_key == (1, "production", "a")
    assert await desk.balance_minor() == 9_900


async def test_an_order_refused_costs_its_neighbours_nothing(desk: Desk) -> None:
    """All of these go in one batch: the first of their customer is being placed while they gather."""
    orders = [
        desk.order("first"),
        desk.order("same"),
        desk.order("same"),
        desk.order("dear", cost_minor=10_001),
        desk.order("keyless", key_id=999),
        desk.order(None),
        desk.order("last", cost_minor=9_700),
        desk.order("broke"),
    ]
    async with open_placer(desk.database) as placer:
        outcomes = await asyncio.gather(*(placer.place(order) for order in orders), return_exceptions=True)
    wrong = {at: type(outcome) for at, outcome in enumerate(outcomes) if isinstance(outcome, BaseException)}
    assert wrong == {2: ReferenceUsed, 3: InsufficientBalance, 4: Unauthorized, 7: InsufficientBalance}
    assert await desk.references() == {"first", "same", None, "last"}
    assert await desk.balance_minor() == 0
    outcome = outcomes[2]
    assert isinstance(outcome, ReferenceUsed)
    assert outcome.holder == orders[1].reference


async def test_an_order_that_cannot_be_written_costs_its_neighbours_nothing(desk: Desk) -> None:
    """What was let through and overflows only as it is written fails alone, with each of the batch placed or refused as without it."""
    odd = desk.order("odd")
    odd = msgspec.structs.replace(odd, row=msgspec.structs.replace(odd.row, expiry_after_days=2**40))
    async with open_placer(desk.database) as placer:
        placing = [
            placer.place(order) for order in (desk.order("a"), odd, desk.order("b", cost_minor=10_001), desk.order("c"))
        ]
        outcomes = await asyncio.gather(*placing, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [
        Placed,
        # A cluster is sent rows as values, which the driver writes as what the columns are.
        asyncpg.DataError if IS_DISTRIBUTED else asyncpg.NumericValueOutOfRangeError,
        InsufficientBalance,
        Placed,
    ]
    assert await desk.references() == {"a", "c"}
    assert await desk.balance_minor() == 9_800


async def test_a_customer_waits_for_no_other(desk: Desk) -> None:
    """Somebody holds the account of one customer, and its orders wait; those of another do not, small as they are or nearly large."""
    other = msgspec.structs.replace(desk.order().principal, customer_id=2, funding="invoiced", key_id=2)
    async with desk.database.connection(OPERATOR) as connection:
        own = await own_accounts(connection, 2, "production", "GBP")
    accounts = (own["receivable"], own["sales"])
    async with open_placer(desk.database) as placer:
        async with desk.database.connection(OPERATOR) as holder:
            holding = holder.transaction()
            await holding.start()
            await holder.execute("SELECT FROM accounts WHERE customer_id = 1 AND id = 1 FOR UPDATE")
            waiting = asyncio.create_task(placer.place(desk.order("held")))
            await desk.waited_for(holder)
            for codes in (1, 100):
                order = desk.order(codes=codes)
                row = msgspec.structs.replace(order.row, customer_id=2, account_id=None)
                order = msgspec.structs.replace(
                    order, principal=other, row=row, source=OnInvoice(), account_ids=accounts
                )
                assert (await asyncio.wait_for(placer.place(order), 30)).order is order
            assert not waiting.done()
            await holding.rollback()
        await waiting


async def test_closing_places_what_waits(desk: Desk) -> None:
    placer = Placer(desk.database, CHAIN, max_orders=2)
    placing = [asyncio.create_task(placer.place(desk.order())) for _ in range(7)]
    placing.append(asyncio.create_task(placer.place(desk.order(codes=150, cost_minor=1))))
    await asyncio.sleep(0)
    await placer.close()
    assert all(task.done() for task in placing)
    assert await desk.balance_minor() == 10_000 - 700 - 150


async def test_closing_places_what_is_held_even_then(desk: Desk) -> None:
    """Refused the locks by its first batch, an order goes on to another while the placer closes."""
    placer = Placer(desk.database, CHAIN)
    async with desk.database.connection(OPERATOR) as other, other.transaction():
        await other.execute("SELECT FROM accounts WHERE customer_id = 1 AND id = 1 FOR NO KEY UPDATE")
        placing = [asyncio.create_task(placer.place(desk.order(codes=n, cost_minor=1))) for n in (1, 150)]
        await asyncio.sleep(0)
        closing = asyncio.create_task(placer.close())
        await desk.waited_for(other)
        with pytest.raises(Unavailable, match="stopping"):
            await placer.place(desk.order())
    await closing
    assert [task.result().order.code_count for task in placing] == [1, 150]


async def test_many_large_orders_of_one_customer_are_waited_for(desk: Desk) -> None:
    """Repeated all at once, each gets its 409: what is bounded is their codes, not how many they are."""
    async with open_placer(desk.database) as placer:
        orders = [desk.order("again", codes=101, cost_minor=1) for _ in range(80)]
        outcomes = await asyncio.gather(*map(placer.place, orders), return_exceptions=True)
    assert Counter(type(outcome) for outcome in outcomes) == {Placed: 1, ReferenceUsed: 79}


@pytest.mark.skipif(IS_DISTRIBUTED, reason="a coordinator does not tell which command wrote a row")
async def test_a_large_order_is_written_in_smaller_pieces_beside_small_ones(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("largesse.orders.placer._SHARED_S", 60)
    async with open_placer(desk.database) as placer:
        await placer.place(desk.order("alone", codes=750, cost_minor=1))
        await placer.place(desk.order())
        await placer.place(desk.order("beside", codes=750, cost_minor=1))
    rows = await desk.database.fetch(
        OPERATOR,
        """
        SELECT external_reference, array_agg(DISTINCT pieces.size) AS sizes, count(*) AS count
          FROM orders,
               LATERAL (SELECT count(*) AS size FROM lines
                         WHERE customer_id = 1 AND order_id = orders.id GROUP BY lines.cmin::text) AS pieces
         WHERE external_reference IS NOT NULL GROUP BY external_reference
        """,
    )
    assert {row[0]: (sorted(row["sizes"]), row["count"]) for row in rows} == {
        "alone": ([250, 500], 2),
        "beside": ([250], 3),
    }


def test_no_code_shows_in_an_orders_repr() -> None:
    drawn = draw_codes(1)[0]
    assert drawn.pin_text not in repr(drawn)
    assert repr(drawn.code) not in repr(drawn)


async def test_an_edit_sends_who_orders_another_product_no_longer_way(desk: Desk) -> None:
    """Of a batch that knows an older catalogue one order is looked up anew, and those of what was edited."""
    placer = Placer(desk.database, CHAIN)
    async with desk.database.connection(OPERATOR) as connection:
        await load_seed(connection, CHAIN, parse_seed(WORLD + PRODUCTS, "world.yaml"))
        ids = dict(await connection.fetch("SELECT key, id FROM products"))
        version = await connection.fetchval("SELECT version FROM catalogue_version")
        await connection.execute("UPDATE products SET name = 'Coffees' WHERE key = 'coffee'")

    async def outcomes(*keys: str) -> list[str]:
        orders = [desk.order(product_id=ids[key]) for key in keys]
        relying = [
            msgspec.structs.replace(order, remembered=(KeyStatus.of(order.principal), version)) for order in orders
        ]
        placed = await asyncio.gather(*map(placer.place, relying), return_exceptions=True)
        return [type(outcome).__name__ for outcome in placed]

    try:
        assert await outcomes("tea", "coffee", "tea", "coffee", "tea") == [
            "StaleCaller", "StaleCaller", "Placed", "StaleCaller", "Placed"
        ]  # fmt: skip
        await desk.database.execute(OPERATOR, "DELETE FROM catalogue_changes")
        assert await outcomes("tea", "tea") == ["StaleCaller", "StaleCaller"], "nobody knows what changed"
    finally:
        await placer.close()
    assert await desk.balance_minor() == 10_000 - 200
