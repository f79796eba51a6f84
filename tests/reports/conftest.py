"""The service of the API's tests, and a worker's steps by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import asyncpg
import pytest
from tests.background import run_in_thread
from tests.chained import acting_on
from tests.reports.generator import generate
from tests.web.api.conftest import MASTER_KEY, problem, run_on_database, service, staging, start_service

from largesse.db.pool import Database
from largesse.db.scope import WORKER
from largesse.encryption.vault import Vault
from largesse.reports.updates import apply_changes
from largesse.verify.audit import audit
from largesse.webhooks.fan_out import fan_out

__all__ = ["problem", "run_on_database", "service", "staging", "start_service"]

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
def pooled(service: Any, run_on_database: Callable[..., Any]) -> Pooled[Any]:
    """`pooled(work)`: what the coroutine function `work` makes of a pool of its own."""

    def run(work: Callable[[Database], Awaitable[Any]]) -> Any:
        async def with_pool(_: Any) -> Any:
            database = await Database.connect(service.database_url)
            try:
                return await work(database)
            finally:
                await database.close()

        return run_on_database(service.database_url, with_pool)

    return run


@pytest.fixture
def follow(pooled: Pooled[Any]) -> Callable[[], None]:
    """Does what the worker does until the read models have followed."""
    return lambda: pooled(take_all)


@pytest.fixture
def findings(service: Any, pooled: Pooled[Any]) -> Callable[[], list[str]]:
    """What `verify` finds."""

    async def look(database: Database) -> list[str]:
        report = await audit(database, Vault(service.settings.master_keys))
        return [str(finding) for finding in report.findings]

    return lambda: pooled(look)


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
