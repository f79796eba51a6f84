"""The connection pool, and the errors of the driver that mean that the database is unavailable."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, cast

import asyncpg
import structlog
from asyncpg.pool import PoolConnectionProxy

from largesse.base.database_address import DatabaseAddress
from largesse.base.errors import MayNotAct, OperatorError
from largesse.db import sharding
from largesse.db.kept_sessions import KeptSessions, is_lost
from largesse.db.metrics import POOLS, DiskWatch, PoolUsage
from largesse.db.roles import Role, why_not
from largesse.db.scope import OPERATOR, Scope
from largesse.db.session import COMMANDS, CONNECT_TIMEOUT_S, REQUESTS, Dialer, Limits, Session

Row = asyncpg.Record
Connection = asyncpg.Connection
_Errors = tuple[type[BaseException], ...]
_P = ParamSpec("_P")
_T = TypeVar("_T")
_Reads = Callable[Concatenate[Connection, _P], Awaitable[_T]]

# The server lacks disk space, memory or connections, or cannot read or write its files. It has rolled back the statement.
OUT_OF_RESOURCES: _Errors = (asyncpg.InsufficientResourcesError, asyncpg.PostgresIOError)

# Another transaction held what a statement needed, for too long or in a deadlock. The server has rolled back the statement.
LOCKED: _Errors = (asyncpg.LockNotAvailableError, asyncpg.TransactionRollbackError)

# The server refuses the login: its password was changed, or it may not log in, or the database was renamed. Only opening a session raises it.
_REFUSED: _Errors = (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError)

# OUT_OF_RESOURCES, _REFUSED, and: the server is stopping, starting, gone, silent or a standby, or a time limit has passed.
# The time limit is for a statement, a lock or an idle transaction. A server is a standby before its promotion, or after another's.
# The statement may be tried again on another connection. A COMMIT with such an error may or may not have happened.
# InternalClientError: a statement began on a connection that the server was about to close.
DATABASE_AWAY: _Errors = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    *OUT_OF_RESOURCES,
    *_REFUSED,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.LockNotAvailableError,
    asyncpg.IdleInTransactionSessionTimeoutError,
)

# DATABASE_AWAY, and all errors of the server itself.
DATABASE_FAILED: _Errors = (*DATABASE_AWAY, asyncpg.PostgresError)


class CommitLost(ConnectionError):
    """The connection broke during COMMIT, so that it is unknown whether the transaction took effect. One of DATABASE_AWAY."""


# How long callers wait for a free or new connection.
_ACQUIRE_TIMEOUT_S = CONNECT_TIMEOUT_S
# An idle connection is closed after this time, before the server closes it.
_IDLE_S = 20.0

_log = structlog.get_logger(__name__)
_IDLE_LIMIT = "SELECT current_setting('idle_in_transaction_session_timeout')"


class Database:
    """A pool of connections. `transaction`, `connection` and `session` provide one for the length of a block.

    Each takes the scope of its transactions (largesse.db.scope).
    """

    def __init__(self, pool: asyncpg.Pool, dialer: Dialer) -> None:
        self._pool = pool
        self.dialer = dialer
        self._waiting = 0
        self.disk = DiskWatch()
        self.is_distributed = False  # True if customers are distributed over nodes (largesse.db.sharding)
        self.credentials_key: bytes | None = None  # derived from the master key; None before that is verified

    @classmethod
    async def connect(
        cls, url: str, *, role: Role | None = None, max_connections: int = 10, limits: Limits = REQUESTS
    ) -> Self:
        """Opens the pool. Its sessions act as `role`. If that is None, they act as the login, for tests and benchmarks.

        Raises one of DATABASE_AWAY if the server cannot be reached, and OperatorError if the login may not act as the role.
        """
        return await cls.open(Dialer(DatabaseAddress.parse(url), limits, role), max_connections)

    @classmethod
    async def open(cls, dialer: Dialer, max_connections: int = 10) -> Self:
        """Opens the pool with sessions that `dialer` opens. Raises as `connect` does."""
        pool = await asyncpg.create_pool(
            min_size=0,
            max_size=max_connections,
            max_inactive_connection_lifetime=_IDLE_S,
            connection_class=Session,
            connect=dialer.dial,
        )
        database = cls(pool, dialer)
        try:
            async with database.connection(OPERATOR) as connection:
                if dialer.is_pooled:
                    await _check_limits(connection)
                elif dialer.role is not None:
                    await _check_role(connection, dialer.role, dialer.limits)
                database.is_distributed = await sharding.is_distributed(connection)
        except OperatorError:
            await pool.close()
            raise
        POOLS.pools.add(database)
        return database

    async def close(self) -> None:
        """Waits until all connections are returned, and closes them."""
        await self._pool.close()
        POOLS.pools.discard(self)

    @asynccontextmanager
    async def patient(self) -> AsyncIterator["Database"]:
        """Opens the same database for work that reads whole tables: one session, with the time limits of commands."""
        database = await Database.open(Dialer(self.dialer.address, COMMANDS, self.dialer.role), 1)
        database.credentials_key = self.credentials_key
        try:
            yield database
        finally:
            await database.close()

    def usage(self) -> PoolUsage:
        """Returns the usage of the pool now."""
        open_, idle = self._pool.get_size(), self._pool.get_idle_size()
        return PoolUsage(open_ - idle, idle, self._waiting, self._pool.get_max_size())

    @asynccontextmanager
    async def connection(self, scope: Scope) -> AsyncIterator[Connection]:
        """Opens a connection for statements that need no common transaction.

        In the scope of customers they still are one transaction: BEGIN sets the scope, and only what BEGIN sets reaches the nodes
        of a distributed database. In other scopes, each statement is a transaction of its own.
        """
        has_customers = getattr(scope, "customers", None)  # the calls below refuse other types
        async with (self.transaction if has_customers else self.session)(scope) as connection:
            yield connection

    @asynccontextmanager
    async def session(self, scope: Scope, kept: KeptSessions | None = None) -> AsyncIterator[Connection]:
        """Opens a connection outside any transaction, for callers that begin their own. With `kept`, uses one of these, and keeps it."""
        connection = (kept and kept.take()) or await self._acquire()
        session = cast("Session", connection)
        # Read now, as the pool's wrapper of a lost connection no longer has them.
        lend, take_back = session.lend, session.take_back
        try:
            lend(scope, is_distributed=self.is_distributed, credentials_key=self.credentials_key)
            yield cast("Connection", connection)
        except asyncpg.DiskFullError as error:
            self.disk.note_full(error)
            raise
        except sharding.LOST_NODE as error:
            if self.is_distributed and sharding.is_of_lost_node(error):
                raise asyncpg.ConnectionFailureError(str(error)) from error
            raise
        finally:
            take_back()
            if kept is None or self._waiting or not kept.keep(connection):
                await self.give_back(connection)

    async def _acquire(self) -> "PoolConnectionProxy[Row]":
        # The pool's own time-out would create a task for every acquisition.
        self._waiting += 1
        try:
            async with asyncio.timeout(_ACQUIRE_TIMEOUT_S):
                return await self._pool.acquire()
        finally:
            self._waiting -= 1

    async def give_back(self, connection: "PoolConnectionProxy[Row]") -> None:
        """Returns a session to the pool."""
        if is_lost(connection):
            # Idle connections may be lost too, and the next caller would wait for a silent server to find out.
            await self._pool.expire_connections()
        with contextlib.suppress(asyncpg.InternalClientError):  # the connection was lost while it was returned
            await self._pool.release(connection)

    @asynccontextmanager
    async def transaction(self, scope: Scope) -> AsyncIterator[Connection]:
        """Opens a connection in a READ COMMITTED transaction. Commits it if the block ends without an error.

        Raises CommitLost if the COMMIT got no answer.
        """
        async with self.session(scope) as connection:
            transaction = connection.transaction()
            await transaction.start()
            try:
                yield connection
            except BaseException:
                # Raise the first error, also if the connection is lost. The server then rolls back.
                with contextlib.suppress(*DATABASE_AWAY):
                    await transaction.rollback()
                raise
            try:
                await transaction.commit()
            except (*OUT_OF_RESOURCES, *LOCKED):
                raise  # the server has rolled back
            except DATABASE_AWAY as error:
                raise CommitLost(
                    "it is unknown whether anything was changed: the connection broke during COMMIT"
                ) from error

    @asynccontextmanager
    async def snapshot(self, scope: Scope) -> AsyncIterator[Connection]:
        """Opens a connection in a read-only transaction. All its statements see the database as the first one does."""
        async with (
            self.session(scope) as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            yield connection

    async def at_once(self, scope: Scope, *reads: Callable[[Connection], Awaitable[Any]]) -> list[Any]:
        """Runs the reads at the same time, each on its own connection, and returns their results. Raises the first error."""
        return await all_of(*(self.read(scope, read) for read in reads))

    async def read(self, scope: Scope, look_up: _Reads[_P, _T], *args: _P.args, **named: _P.kwargs) -> _T:
        """Returns what one function reads."""
        async with self.connection(scope) as connection:
            return await look_up(connection, *args, **named)

    async def fetch(self, scope: Scope, query: str, *arguments: Any) -> list[Row]:
        """Returns the rows of one statement."""
        async with self.connection(scope) as connection:
            return await connection.fetch(query, *arguments)

    async def fetchrow(self, scope: Scope, query: str, *arguments: Any) -> Row | None:
        """Returns the first row of one statement, or None."""
        async with self.connection(scope) as connection:
            return await connection.fetchrow(query, *arguments)

    async def fetchval(self, scope: Scope, query: str, *arguments: Any) -> Any:
        """Returns the first column of the first row of one statement, or None."""
        async with self.connection(scope) as connection:
            return await connection.fetchval(query, *arguments)

    async def execute(self, scope: Scope, query: str, *arguments: Any) -> str:
        """Runs one statement. Returns its command tag, such as `UPDATE 1`."""
        async with self.connection(scope) as connection:
            return await connection.execute(query, *arguments)


async def all_of(*coroutines: Coroutine[Any, Any, Any]) -> list[Any]:
    """Runs coroutines at the same time and returns their results. Raises the first error, and cancels the others."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


class ReadOnly(Database):
    """The same pool, but read-only: the database refuses writes."""

    def __init__(self, database: Database) -> None:
        super().__init__(database._pool, database.dialer)  # noqa: SLF001 - of the same class
        self.is_distributed = database.is_distributed
        self.session = database.session  # type: ignore[method-assign]  # counts the waiting callers of both

    @asynccontextmanager
    async def transaction(self, scope: Scope) -> AsyncIterator[Connection]:
        """Opens a connection in a READ COMMITTED transaction that is read-only."""
        async with self.session(scope) as connection, connection.transaction(readonly=True):
            yield connection

    @asynccontextmanager
    async def connection(self, scope: Scope) -> AsyncIterator[Connection]:
        """Does the same as `transaction`, in every scope."""
        async with self.transaction(scope) as connection:
            yield connection


async def _check_role(connection: Connection, role: Role, limits: Limits) -> None:
    """Raises OperatorError if the session may not continue without its role. Otherwise services log a warning."""
    if cast("Session", connection).acts_as is not None:
        return
    if trouble := await why_not(connection, role):
        raise MayNotAct(trouble)
    if limits is not COMMANDS:  # for commands, `check` reports it
        _log.warning("database_role_not_taken", role=role, see="docs/database.md, Database roles")


async def _check_limits(connection: Connection) -> None:
    """Logs a warning if the role lacks limits. Behind PgBouncer, only the role can have them."""
    if await connection.fetchval(_IDLE_LIMIT) == "0":
        _log.warning("database_role_without_limits", see="docs/scaling.md, PgBouncer")


def scope_of(connection: Connection) -> Scope:
    """Returns the scope of the connection's transactions. Raises LookupError if it was returned to the pool."""
    scope = cast("Session", connection).scope
    if scope is None:
        raise LookupError("this connection was returned to the pool")
    return scope


def is_distributed(connection: Connection) -> bool:
    """Returns whether customers are distributed over nodes, so that a statement should be about one customer."""
    # Tests use plain connections of the driver, without this attribute.
    return bool(getattr(connection, "is_distributed", False))


def coordinator_of(connection: Connection) -> Connection:
    """Returns the session for the coordinator's own tables and sequences: `connection` itself unless that is on a node."""
    return getattr(connection, "coordinator", None) or connection


async def commit_as_one(connection: Connection) -> None:
    """Makes the COMMIT atomic for writes on a node and on the coordinator, as on one server. Call it inside the transaction."""
    if is_distributed(connection):
        await connection.execute(sharding.WRITE_ON_COORDINATOR)


async def act_for(connection: Connection, scope: Scope) -> None:
    """Limits the scope of a look-up's transaction to the customer that it found, or changes the environments of acting customers.

    Raises RuntimeError in other transactions.
    """
    await cast("Session", connection).act_for(scope)


async def open_credentials(connection: Connection) -> None:
    """Allows the rest of the transaction to change credentials and memberships of people.

    Call it before writing `people`, `users`, `sessions`, `sign_in_links`, `passkeys` or `recovery_codes`. It proves to the database
    that the caller has the master key, by a key derived from it. Commands and the owner of the tables need none.
    """
    opens = getattr(connection, "open_credentials", None)  # tests use plain connections of the driver
    if opens is not None:
        await opens()


def credentials_key(connection: Connection) -> bytes | None:
    """Returns the key that SQL functions require to return credentials. Pass it as a parameter, never in a statement's text."""
    return getattr(connection, "credentials_key", None)


def in_one_line(error: BaseException) -> str:
    """Returns the driver's error as one line for an operator."""
    if isinstance(error, TimeoutError) and not error.errno:
        return "it does not answer"
    said = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, ConnectionRefusedError):
        return f"no server listens at its host and port ({error.strerror})"
    if isinstance(error, socket.gaierror):
        return f"the name of its host is not known ({error.strerror})"
    if isinstance(error, FileNotFoundError):
        return f"its socket, or a file that its address names, is not there ({said})"
    if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
        return f"it is a standby, or read-only: it takes no changes ({said})"
    if isinstance(error, asyncpg.TooManyConnectionsError):
        return f"all connections that it allows are in use: end some, or raise max_connections or the limit ({said})"
    if said.startswith("unsupported startup parameter"):
        return f"PgBouncer answers there: add ?pgbouncer=true to its address, or give PostgreSQL's own ({said})"
    return f"its disk is full ({said})" if isinstance(error, asyncpg.DiskFullError) else said


@asynccontextmanager
async def connect_once(
    url: str, scope: Scope, *, role: Role | None = None, limits: Limits = COMMANDS
) -> AsyncIterator[Connection]:
    """Opens one connection for a command that needs no pool. `role` and the errors are as for `Database.connect`."""
    address = DatabaseAddress.parse(url)
    connection = await Dialer(address, limits, role).dial()
    try:
        if role is not None and not address.is_pooled:
            await _check_role(connection, role, limits)
        connection.lend(scope, is_distributed=await sharding.is_distributed(connection))
        yield connection
    finally:
        await connection.close()


async def read_in_parts(
    connection: Connection, query: str, rows_at_once: int, *, timeout_s: float | None = None
) -> AsyncIterator[list[Row]]:
    """Yields the rows of a query in parts, read through a cursor on the server. Call it inside a transaction.

    It does not use `connection.cursor`, which names its statement. Behind PgBouncer, another process's statement may have that name.
    """
    statement = await connection.prepare(query, timeout=timeout_s)
    cursor = await statement.cursor(timeout=timeout_s)
    while rows := await cursor.fetch(rows_at_once, timeout=timeout_s):
        yield rows
