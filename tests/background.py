"""An event loop in a thread of its own, beside whatever loop a test has, and what stays open in it from test to test.

A loop, a thread and a connection for each statement that a test asks cost more than the statement.
"""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from functools import cache
from typing import Any

import asyncpg

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


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="background", daemon=True).start()
    return loop


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
