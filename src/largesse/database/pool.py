"""The pool, and which of the driver's errors mean that the database is away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast
from urllib.parse import parse_qsl, urlencode, urlsplit

import asyncpg

Row = asyncpg.Record
Connection = asyncpg.Connection

# What the driver raises when the server is stopping, starting, gone, out of connections, or a standby (before its promotion,
# or after that of another). A statement that fails so may be tried again on another connection; a COMMIT that fails so may
# or may not have happened.
# InternalClientError: a statement was begun on a connection whose server has said its last words and not yet closed it.
DATABASE_AWAY: tuple[type[BaseException], ...] = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.TooManyConnectionsError,
    asyncpg.ReadOnlySQLTransactionError,
)

# Those, and whatever the server itself refuses.
DATABASE_FAILED: tuple[type[BaseException], ...] = (*DATABASE_AWAY, asyncpg.PostgresError)

_CONNECT_TIMEOUT_S = 5.0
_STATEMENT_TIMEOUT_S = 30.0
_ACQUIRE_TIMEOUT_S = 5.0


# What tells that an address is PgBouncer's: `postgresql://…/largesse?pgbouncer=true`.
_PGBOUNCER = ("pgbouncer", "true")


def without_pgbouncer(url: str) -> tuple[str, bool]:
    """The address as the driver understands it, and whether it is PgBouncer's in transaction mode."""
    parts = urlsplit(url)
    query = parse_qsl(parts.query, keep_blank_values=True)
    if _PGBOUNCER not in query:
        return url, False
    kept = urlencode([parameter for parameter in query if parameter != _PGBOUNCER])
    return parts._replace(query=kept).geturl(), True


def _prepared_statements(*, pooled: bool) -> int:
    """How many statements a connection keeps prepared: what the driver would, and none behind PgBouncer."""
    return 0 if pooled else 100


class _PooledConnection(asyncpg.Connection):
    """A connection that goes back to the pool without a round trip: nothing here leaves session state behind."""

    def get_reset_query(self) -> str:
        return ""


class Database:
    """A pool of connections; `transaction()` and `connection()` lend one for as long as the block lasts."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    @classmethod
    async def connect(cls, url: str, *, max_connections: int = 10) -> Database:
        """Opens the pool. Raises one of DATABASE_AWAY when the server cannot be reached.

        Behind PgBouncer each transaction may meet another session of the server: no statement is prepared for later,
        and the one parameter that PgBouncer does not keep per client is left to the server (docs/scaling.md).
        """
        address, pooled = without_pgbouncer(url)
        session = {"application_name": "largesse", "timezone": "UTC"}
        pool = await asyncpg.create_pool(
            address,
            min_size=1,
            max_size=max_connections,
            max_inactive_connection_lifetime=300.0,
            timeout=_CONNECT_TIMEOUT_S,
            command_timeout=_STATEMENT_TIMEOUT_S,
            connection_class=_PooledConnection,
            server_settings=session if pooled else {**session, "jit": "off"},
            statement_cache_size=_prepared_statements(pooled=pooled),
        )
        return cls(pool)

    async def close(self) -> None:
        await self._pool.close()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection outside any transaction, for single statements."""
        # Not by the pool's own time-out, which makes a task of every acquisition.
        async with asyncio.timeout(_ACQUIRE_TIMEOUT_S):
            connection = await self._pool.acquire()
        try:
            yield cast("Connection", connection)
        finally:
            await self._pool.release(connection)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """A connection inside a READ COMMITTED transaction, committed when the block ends well."""
        async with self.connection() as connection, connection.transaction():
            yield connection

    async def fetch(self, query: str, *arguments: Any) -> list[Row]:
        async with self.connection() as connection:
            return await connection.fetch(query, *arguments)

    async def fetchrow(self, query: str, *arguments: Any) -> Row | None:
        async with self.connection() as connection:
            return await connection.fetchrow(query, *arguments)

    async def fetchval(self, query: str, *arguments: Any) -> Any:
        async with self.connection() as connection:
            return await connection.fetchval(query, *arguments)

    async def execute(self, query: str, *arguments: Any) -> str:
        async with self.connection() as connection:
            return await connection.execute(query, *arguments)


@asynccontextmanager
async def connect_once(url: str) -> AsyncIterator[Connection]:
    """One connection for a command that needs no pool."""
    address, pooled = without_pgbouncer(url)
    connection = await asyncpg.connect(
        address, timeout=_CONNECT_TIMEOUT_S, statement_cache_size=_prepared_statements(pooled=pooled)
    )
    try:
        yield connection
    finally:
        await connection.close()
