"""Sessions on the node of a customer: the coordinator need not plan and pass on what is for that node alone.

Any node takes what a coordinator does about tables that are distributed. So the node of a customer only matters for
the cost, and may be known from some seconds ago: a node passes on what is not its own. What is the coordinator's alone (keys, sequences) a node does
not have: a session on one is lent with one on the coordinator.

ShardGroupRunner: work of all customers, done at one node after the other where customers are distributed, so that a node that is away stops no other.
"""

from __future__ import annotations

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
from largesse.db.pool import DATABASE_AWAY, Connection, Database, Row, is_distributed
from largesse.db.scope import LOOKUP, WORKER, Scope
from largesse.db.session import Session
from largesse.db.sharding import read_shard_groups

_KNOWN_S = 10.0  # the node of a customer is read again after this

_log = structlog.get_logger(__name__)


class Node(Database):
    """A pool of sessions on a node, each lent with one of the coordinator's."""

    coordinator: Database | None = None  # none while it is opened

    @asynccontextmanager
    async def session(self, scope: Scope) -> AsyncIterator[Connection]:
        """Does the same as `Database.session`. What is begun beside it ends after it and is rolled back: it holds what the node's transaction relies on, and writes nothing."""
        if self.coordinator is None:
            async with super().session(scope) as connection:
                yield connection
            return
        # The node's first: who waits for one that is away takes nothing of the coordinator's.
        async with super().session(scope) as connection, self.coordinator.session(scope) as coordinator:
            cast("Session", connection).coordinator = coordinator
            try:
                yield connection
            finally:
                if not coordinator.is_closed() and coordinator.is_in_transaction():
                    await coordinator.execute("ROLLBACK")


class Nodes:
    """The nodes of a database, and which customer is on which. Unused on one server."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._addresses: dict[int, tuple[str, int]] = {}
        self._known_until_s = 0.0
        self._opened: dict[tuple[str, int], Database] = {}
        self._opening: defaultdict[tuple[str, int], asyncio.Lock] = defaultdict(asyncio.Lock)

    async def node_of(self, customer_id: int) -> Database:
        """Returns the node with a customer's rows, or the database itself where the node cannot be reached directly.

        Raises one of DATABASE_AWAY where the node is away.
        """
        if self._database.dialer.is_pooled:  # nodes are behind the coordinator then
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
        """Closes what was opened."""
        for node in self._opened.values():
            if node is not self._database:
                await node.close()

    async def _read(self, customer_ids: list[int]) -> dict[int, tuple[str, int]]:
        async with self._database.connection(LOOKUP) as connection:
            return await sharding.node_addresses(connection, customer_ids)

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
            # It lets the coordinator in, which costs more.
            _log.warning(
                "node_not_entered", node=f"{host}:{port}", error=type(error).__name__, see="docs/scaling.md, Citus"
            )
            return self._database
        node.coordinator = self._database
        node.disk = self._database.disk
        return node


Result = TypeVar("Result")
Customers = Sequence[int] | None  # of one shard group, by id; None: all, on one server

_NODES_KNOWN_S = 1.0  # a customer that is new, or has moved, is found after this
_REST_S = 2.0  # a node that was away is left alone for this long

log = structlog.get_logger(__name__)


async def list_shard_groups(connection: Connection, customers: Customers) -> Sequence[Customers]:
    """Returns the given customers, else all: one shard group at a time where they are distributed."""
    if customers is not None or not is_distributed(connection):
        return [customers]
    return [shard_group.customers for shard_group in await read_shard_groups(connection)]


async def read_by_shard_group(
    connection: Connection, customer_ids: Iterable[int], read: Callable[[Customers], Awaitable[list[Row]]]
) -> tuple[list[Row], set[int]]:
    """Returns what `read` finds of customers, by shard group where they are distributed, and the customers whose node is away.

    Call it inside a transaction, which goes on without them.
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
    """Runs work on each node of a database. Work on a node that is away waits for the next run."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: Mapping[int, Sequence[Sequence[int]]] = {}
        self._known_until_s = 0.0
        self._away_until_s: dict[int, float] = {}

    async def run(self, waiting: str, step: Callable[[Customers], Awaitable[Result]], *more: object) -> list[Result]:
        """Returns what `step` returns for all customers; if they are distributed, for each shard group with a waiting customer.

        The statement `waiting` returns them, of the customers in `$1` and with `more` as its other arguments, the longest waiting first.
        Raises the error if every node is away.
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
                    done.append(await step(customers))  # noqa: PERF401 - stays if a later one fails
                are_all_away = False
            except DATABASE_AWAY as error:
                trouble = error
                self._away_until_s[node] = clock.passed_s() + _REST_S
                log.warning("worker.node_away", node=node, error=type(error).__name__)
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
        async with self._database.connection(WORKER) as connection:
            rows = await connection.fetch(query, [customer for group in shard_groups for customer in group], *more)
        waiting = {row[0] for row in rows}
        return [found for group in shard_groups if (found := [customer for customer in group if customer in waiting])]
