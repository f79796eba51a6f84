"""Sessions on the node of a customer. So the coordinator need not plan statements for that node and pass them on.

Any node accepts statements on distributed tables, and passes on those that are for another node. So an outdated node of a customer
only costs time, and the list may be some seconds old. A node does not have the coordinator's own tables (keys) and sequences, so a
session on a node comes with one on the coordinator.

ShardGroupRunner runs work for all customers. If customers are distributed, it runs for one node after another, so that a node that is down does
not stop the others.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar, cast

import asyncpg
import structlog

from largesse.base import clock
from largesse.base.errors import OperatorError
from largesse.db import sharding
from largesse.db.kept_sessions import KeptSessions
from largesse.db.pool import DATABASE_AWAY, Connection, Database, Row, is_distributed
from largesse.db.scope import LOOKUP, WORKER, Scope
from largesse.db.session import Session
from largesse.db.sharding import read_shard_groups

_KNOWN_S = 10.0  # seconds until the node of a customer is read again

_log = structlog.get_logger(__name__)


class Node(Database):
    """A pool of sessions on a node. Each comes with a session on the coordinator."""

    coordinator: Database | None = None  # None while the pool is being opened

    @asynccontextmanager
    async def session(self, scope: Scope, _: KeptSessions | None = None) -> AsyncIterator[Connection]:
        """Does the same as `Database.session`, but keeps no session. A transaction on the coordinator only takes locks, and is rolled back after the node's transaction."""
        if self.coordinator is None:
            async with super().session(scope) as connection:
                yield connection
            return
        # The node's session first, so that callers that wait for a lost node use no session of the coordinator.
        async with super().session(scope) as connection, self.coordinator.session(scope) as coordinator:
            cast("Session", connection).set_coordinator(coordinator)
            try:
                yield connection
            finally:
                if not coordinator.is_closed() and coordinator.is_in_transaction():
                    await coordinator.execute("ROLLBACK")


class Nodes:
    """The nodes of a database, and the node of each customer. Unused on one server."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._addresses: dict[int, tuple[str, int]] = {}
        self._known_until_s = 0.0
        self._opened: dict[tuple[str, int], Database] = {}
        self._opening: defaultdict[tuple[str, int], asyncio.Lock] = defaultdict(asyncio.Lock)

    async def node_of(self, customer_id: int) -> Database:
        """Returns the node with a customer's rows, or the database itself if the node cannot be reached directly.

        Raises one of DATABASE_AWAY if the node is down.
        """
        if self._database.dialer.is_pooled:  # PgBouncer leads only to the coordinator
            return self._database
        now_s = clock.passed_s()
        if now_s >= self._known_until_s:
            self._known_until_s = now_s + _KNOWN_S
            self._addresses = await self._read([*self._addresses, customer_id])
        elif customer_id not in self._addresses:
            self._addresses |= await self._read([customer_id])
        address = self._addresses.get(customer_id)
        return self._database if address is None else await self._at(*address)

    async def close(self) -> None:
        """Closes the pools of all nodes."""
        for node in self._opened.values():
            if node is not self._database:
                await node.close()

    async def _read(self, customer_ids: list[int]) -> dict[int, tuple[str, int]]:
        return await self._database.read(LOOKUP, sharding.node_addresses, customer_ids)

    async def _at(self, host: str, port: int) -> Database:
        address = host, port
        async with self._opening[address]:
            if address not in self._opened:
                self._opened[address] = await self._open(host, port)
        return self._opened[address]

    async def _open(self, host: str, port: int) -> Database:
        try:
            node = await Node.open(self._database.dialer.at(host, port))
        except (OperatorError, asyncpg.InvalidAuthorizationSpecificationError) as error:
            # Only the coordinator may sign in there, so statements go through it, which costs more.
            _log.warning(
                "node_not_entered", node=f"{host}:{port}", error=type(error).__name__, see="docs/scaling.md, Citus"
            )
            return self._database
        node.coordinator = self._database
        node.disk = self._database.disk
        return node


Result = TypeVar("Result")
Customers = Sequence[int] | None  # the ids of the customers of one shard group; None: all customers, on one server

_NODES_KNOWN_S = 1.0  # a new or moved customer is found after this time
_REST_S = 2.0  # a node that was down is not tried for this long


async def list_shard_groups(connection: Connection, customers: Customers) -> Sequence[Customers]:
    """Returns the given customers as one group. If none are given, returns all: by shard group if they are distributed."""
    if customers is not None or not is_distributed(connection):
        return [customers]
    return [shard_group.customers for shard_group in await read_shard_groups(connection)]


async def read_by_shard_group(
    connection: Connection, customer_ids: Iterable[int], read: Callable[[Customers], Awaitable[list[Row]]]
) -> tuple[list[Row], set[int]]:
    """Returns the rows that `read` returns, called for each shard group if customers are distributed, and the customers whose node is down.

    Call it inside a transaction, which continues without those customers.
    """
    if not is_distributed(connection):
        return await read(None), set()
    rows: list[Row] = []
    away: set[int] = set()
    for shard_group in await read_shard_groups(connection, sorted(set(customer_ids))):
        try:
            async with connection.transaction():
                rows += await read(shard_group.customers)
        except DATABASE_AWAY:
            if connection.is_closed():
                raise
            away.update(shard_group.customers)
    return rows, away


class ShardGroupRunner:
    """Runs work on each node of a database. Work on a node that is down waits for the next run."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: Mapping[int, Sequence[Sequence[int]]] = {}
        self._known_until_s = 0.0
        self._away_until_s: dict[int, float] = {}

    async def run(self, waiting: str, step: Callable[[Customers], Awaitable[Result]], *more: object) -> list[Result]:
        """Calls `step` for all customers, or if they are distributed, for each shard group with a waiting customer. Returns the results.

        The statement `waiting` returns the waiting customers among `$1`, the longest waiting first. `more` are its other arguments.
        Raises the error if every node is down.
        """
        if not self._database.is_distributed:
            return [await step(None)]
        done: list[Result] = []
        trouble: BaseException | None = None
        are_all_away = True
        for node, shard_groups in (await self._nodes()).items():
            if self._away_until_s.get(node, 0.0) > clock.passed_s():
                continue
            try:
                for customers in await self._waiting(shard_groups, waiting, *more):
                    done.append(await step(customers))  # noqa: PERF401 - not lost if a later one fails
                are_all_away = False
            except DATABASE_AWAY as error:
                trouble = error
                self._away_until_s[node] = clock.passed_s() + _REST_S
                _log.warning("worker.node_away", node=node, error=type(error).__name__)
        if trouble is not None and are_all_away:
            raise trouble
        return done

    async def _nodes(self) -> Mapping[int, Sequence[Sequence[int]]]:
        """Returns the customers of each node, by shard group."""
        if clock.passed_s() >= self._known_until_s:
            nodes: dict[int, list[Sequence[int]]] = defaultdict(list)
            async with self._database.connection(WORKER) as connection:
                for shard_group in await read_shard_groups(connection):
                    nodes[shard_group.node].append(shard_group.customers)
            self._known, self._known_until_s = nodes, clock.passed_s() + _NODES_KNOWN_S
        return self._known

    async def _waiting(self, shard_groups: Sequence[Sequence[int]], query: str, *more: object) -> list[list[int]]:
        """Returns the waiting customers of each shard group that has any."""
        rows = await self._database.fetch(
            WORKER, query, [customer for group in shard_groups for customer in group], *more
        )
        waiting = {row[0] for row in rows}
        return [found for group in shard_groups if (found := [customer for customer in group if customer in waiting])]
