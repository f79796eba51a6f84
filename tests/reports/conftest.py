"""The service of the API's tests, and a worker's steps by hand."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import asyncpg
import pytest
from tests.background import run_in_thread
from tests.chained import acting_on
from tests.reports.generator import generate
from tests.web.api.conftest import MASTER_KEY, problem, service, staging, start_service

from largesse.db.pool import Database
from largesse.db.scope import WORKER
from largesse.encryption.vault import Vault
from largesse.reports.updates import apply_changes
from largesse.webhooks.queues import fan_out

__all__ = ["problem", "service", "staging", "start_service"]

ORDERS = 6_000
T = TypeVar("T")
Pooled = Callable[[Callable[[Database], Awaitable[T]]], T]


@pytest.fixture(scope="module")
def filled_url(module_database_url: str) -> str:
    async def fill() -> None:
        connection = await asyncpg.connect(module_database_url)
        await generate(connection, ORDERS)
        await connection.close()

    run_in_thread(fill())
    return module_database_url


@pytest.fixture
async def connection(filled_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(filled_url)
    yield connection
    await connection.close()


@pytest.fixture
def pooled(service: Any) -> Pooled[Any]:
    """`pooled(work)`: what the coroutine function `work` makes of a pool of its own."""
    return lambda work: service.on_pool(lambda database, _: work(database))


@pytest.fixture
def follow(pooled: Pooled[Any]) -> Callable[[], None]:
    """Does what the worker does until the read models have followed."""
    return lambda: pooled(take_all)


async def take_all(database: Database) -> None:
    """Hears of all events, and takes all changes in."""
    acting = await acting_on(database, Vault((MASTER_KEY,)))
    while True:
        async with database.connection(WORKER) as connection:
            events, _ = await fan_out(connection, 100)
        async with database.transaction(WORKER) as connection:
            taken = await apply_changes(connection, acting, 100)
        if not events and not taken:
            if not await database.fetchval(WORKER, "SELECT EXISTS (SELECT FROM order_changes)"):
                return
            await asyncio.sleep(0.02)  # another is at it
