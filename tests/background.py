"""An event loop in a thread of its own, beside whatever loop a test has, and what stays open in it from test to test.

A loop, a thread and a connection for each statement that a test asks cost more than the statement.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Hashable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import cache
from typing import Any

import asyncpg

from largesse.db.pool import connect_once
from largesse.db.scope import OPERATOR

_MOST_AT_ONCE = 16  # statements that wait for each other's locks among them


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine, run beside whatever this thread does; raises what it raises."""
    return asyncio.run_coroutine_threadsafe(coroutine, _loop()).result()


def run_in_thread(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine run in a loop and a thread of its own, for one that may block its loop; raises what it raises."""
    result: Future[Any] = Future()

    def run_alone() -> None:
        try:
            result.set_result(asyncio.run(coroutine))
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            result.set_exception(error)

    thread = threading.Thread(target=run_alone)
    thread.start()
    thread.join()
    return result.result()


class Beside:
    """What work beside a test needs: opened for the first that asks for it, in a loop and a thread of its own, and left open until the end."""

    def __init__(self) -> None:
        self._opened: dict[Hashable, asyncio.Future[Any]] = {}
        self._stack = AsyncExitStack()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="beside")
        self._thread.start()

    def run(
        self,
        name: Hashable,
        opening: Callable[[], AbstractAsyncContextManager[Any]],
        work: Callable[[Any], Coroutine[Any, Any, Any]],
    ) -> Any:
        """The result of `work`, given what `opening` opened by that name; raises what it raises."""

        async def open_and_work() -> Any:
            if name not in self._opened:
                self._opened[name] = asyncio.ensure_future(self._stack.enter_async_context(opening()))
            return await work(await self._opened[name])

        return asyncio.run_coroutine_threadsafe(open_and_work(), self._loop).result()

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        await self._stack.aclose()
        await self._loop.shutdown_asyncgens()
        await self._loop.shutdown_default_executor()


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="background", daemon=True).start()
    return loop


def on_database(url: str, work: Callable[[asyncpg.Connection], Coroutine[Any, Any, Any]]) -> Any:
    """What `work` makes of a connection of its own, in a loop of its own."""

    async def work_on_one() -> Any:
        async with connect_once(url, OPERATOR) as connection:
            return await work(connection)

    return run_in_thread(work_on_one())


class Statements:
    """Single statements on one database, from any thread, on connections that stay open until it is closed."""

    def __init__(self, url: str) -> None:
        self._pool: asyncpg.Pool = run(_open_pool(url))

    def fetch(self, query: str, *arguments: Any) -> list[asyncpg.Record]:
        return run(self._fetch(query, *arguments))

    def execute(self, statements: str) -> None:
        """Runs one statement or several that return nothing anybody wants."""
        run(self._execute(statements))

    def close(self) -> None:
        run(self._pool.close())

    async def _fetch(self, query: str, *arguments: Any) -> list[asyncpg.Record]:
        async with self._pool.acquire() as connection:
            return await connection.fetch(query, *arguments)

    async def _execute(self, statements: str) -> None:
        async with self._pool.acquire() as connection:
            await connection.execute(statements)


async def _open_pool(url: str) -> asyncpg.Pool:
    # No statement is kept: what one was planned as may no longer be once a test has changed a table.
    # On a cluster a test may join by an order's id alone, as statements of the service may not: it moves rows between nodes.
    return await asyncpg.create_pool(
        url,
        min_size=0,
        max_size=_MOST_AT_ONCE,
        statement_cache_size=0,
        server_settings={"citus.enable_repartition_joins": "on"},
    )
