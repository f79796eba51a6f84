"""A service with a product that comes from suppliers, and lines of it that are claimed."""

import asyncio
import io
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from tests.suppliers.server import ENVIRON, SupplierServer, describe
from tests.web.api.conftest import Service, own_service, problem

from largesse.db.pool import Database
from largesse.db.scope import OPERATOR, WORKER
from largesse.encryption.vault import Vault
from largesse.fulfilment.gifts import read_product
from largesse.fulfilment.vouchers import InventoryProvider, settle_product
from largesse.lines.states import LineKey, record_claim
from largesse.lines.store import read_line
from largesse.suppliers.buyer import Buyer
from largesse.suppliers.description import Description, OpenSupplier, open_supplier
from largesse.suppliers.store import begin_buying
from largesse.verify.audit import audit
from largesse.verify.check import Report
from largesse.webhooks.resolver import Resolver

__all__ = ["own_service", "problem"]

WORLD = """
customers:
  - key: acme
    name: Acme
    plan: enterprise
    funding: balance
    service_accounts: [{key: hr-bot, name: HR bot}]
    api_keys: [{key: hr, service_account: hr-bot, environment: production}]
    funding_accounts: [{key: gbp, name: Float, master: true, currency: GBP, balance: 1000000.00}]
products:
  - {key: bought, name: Bought, digital: true, currency: GBP, countries: [GB], denominations: [10], suppliers: [cards, other]}
  - {key: stocked, name: Stocked, digital: true, currency: GBP, countries: [GB], denominations: [10]}
  - {key: mixed, name: Mixed, digital: true, currency: GBP, countries: [GB], denominations: [10], suppliers: [stock, cards]}
"""


@pytest.fixture
def service(own_service: Service) -> Service:
    """A service with a new database for each test: lines and costs are counted over all orders."""
    return own_service


async def claim(database: Database, service: Any, product: str, count: int) -> list[LineKey]:
    """Places an order of so many codes and claims all of them as recipients do; returns the lines."""
    answer = await asyncio.to_thread(service.send, "gift", product, codeQuantity=count, value=10, country="GB")
    assert answer.status_code == 200, answer.text
    (order,) = await database.fetch(OPERATOR, "SELECT customer_id, id FROM orders ORDER BY id DESC LIMIT 1")
    keys = [LineKey(order["customer_id"], order["id"], number) for number in range(1, count + 1)]
    for start in range(0, count, 100):
        async with database.transaction(OPERATOR) as connection:
            for key in keys[start : start + 100]:
                line = await read_line(connection, key, "production", lock=True)
                assert line is not None
                at = await connection.fetchval("SELECT clock_now()")
                await record_claim(connection, key, at, None, "en")
                assert line.product_id is not None
                gift = await read_product(connection, line.product_id)
                await settle_product(connection, InventoryProvider(begin_buying), line, gift, at)
    return keys


async def states(database: Database) -> dict[str, int]:
    """How many lines and how many supplier orders are in each state."""
    rows = await database.fetch(
        WORKER,
        "SELECT 'line ' || state AS state, count(*) FROM line_states GROUP BY 1 "
        "UNION ALL SELECT state, count(*) FROM supplier_orders GROUP BY 1",
    )
    return {row["state"]: row["count"] for row in rows}


async def verified(database: Database, vault: Vault) -> Report:
    return await audit(database, vault, progress_to=io.StringIO())


Opened = Callable[..., OpenSupplier]


@pytest.fixture
async def opened() -> AsyncIterator[Opened]:
    """`opened("cards", server, poll_s=…)`: a supplier of that description."""
    resolver = Resolver()
    all_opened: list[OpenSupplier] = []

    def open_(name: str, server: SupplierServer, **more: Any) -> OpenSupplier:
        description = msgspec.convert(describe(name, server, **more), Description)
        all_opened.append(open_supplier(description, resolver.look_up, ENVIRON))
        return all_opened[-1]

    yield open_
    for one in all_opened:
        await one.close()
    await resolver.close()


@asynccontextmanager
async def pool(service: Any) -> AsyncIterator[tuple[Database, Vault]]:
    database = await Database.connect(service.database_url, max_connections=12)
    try:
        yield database, Vault(service.settings.master_keys)
    finally:
        await database.close()


async def work(buyers: list[Buyer], database: Database, until: str, patience_s: float = 30.0) -> None:
    """Has the buyers work until a query says true."""
    async with asyncio.timeout(patience_s):
        while not await database.fetchval(WORKER, until):
            found = await asyncio.gather(*(buyer.step() for buyer in buyers))
            if not any(found):
                await asyncio.sleep(0.02)


SETTLED = """
    SELECT NOT EXISTS (SELECT FROM supplier_orders WHERE state IN ('new', 'asked', 'pending', 'cancelling', 'late'))
"""
