"""Sessions on the node where a customer lives: what is for that node alone need not be planned and passed on by the coordinator.

Any node takes what a coordinator does about tables that are spread. So where a customer lives is a matter of what it costs, and what is
known of it may be some seconds old: a node passes on what is not its own. What is the coordinator's alone (keys, sequences) a node does
not have: a session on one is lent with one of the coordinator's beside it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import asyncpg
import structlog

from largesse.base import clock
from largesse.base.errors import StartError
from largesse.database import distribution
from largesse.database.pool import Connection, Database
from largesse.database.scope import LOOKUP, Scope
from largesse.database.session import Session

_KNOWN_S = 10.0  # who has moved is looked for anew after this

_log = structlog.get_logger(__name__)


class Node(Database):
    """A pool of sessions on a node, each lent with one of the coordinator's."""

    coordinator: Database | None = None  # none while it is opened

    @asynccontextmanager
    async def session(self, scope: Scope) -> AsyncIterator[Connection]:
        """As `Database.session`. What is begun beside it ends after it, undone: it holds what the node's transaction relies on, and writes nothing."""
        if self.coordinator is None:
            async with super().session(scope) as connection:
                yield connection
            return
        # The node's first: who waits for one that is away takes nothing of the coordinator's.
        async with super().session(scope) as connection, self.coordinator.session(scope) as beside:
            cast("Session", connection).go_with(beside)
            try:
                yield connection
            finally:
                if not beside.is_closed() and beside.is_in_transaction():
                    await beside.execute("ROLLBACK")


class Nodes:
    """The nodes of a database, and which of them is whose. On a database that is one server nobody asks for them."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._homes: dict[int, tuple[str, int]] = {}
        self._known_until_s = 0.0
        self._opened: dict[tuple[str, int], Database] = {}
        self._opening: defaultdict[tuple[str, int], asyncio.Lock] = defaultdict(asyncio.Lock)

    async def home_of(self, customer_id: int) -> Database:
        """Where a customer's rows are read and written: the node it lives on, or the database itself where there is no way straight to it.

        Raises one of DATABASE_AWAY where the node is away.
        """
        if self._database.dialer.is_pooled:  # nodes are behind the coordinator then
            return self._database
        now_s = clock.passed_s()
        if now_s >= self._known_until_s:
            self._known_until_s = now_s + _KNOWN_S
            self._homes = await self._read([*self._homes, customer_id])
        elif customer_id not in self._homes:
            self._homes |= await self._read([customer_id])
        address = self._homes.get(customer_id)
        return self._database if address is None else await self._at(*address)

    async def close(self) -> None:
        """Closes what was opened."""
        for node in self._opened.values():
            if node is not self._database:
                await node.close()

    async def _read(self, customer_ids: list[int]) -> dict[int, tuple[str, int]]:
        async with self._database.connection(LOOKUP) as connection:
            return await distribution.entries(connection, customer_ids)

    async def _at(self, host: str, port: int) -> Database:
        address = host, port
        async with self._opening[address]:
            if address not in self._opened:
                self._opened[address] = await self._open(host, port)
        return self._opened[address]

    async def _open(self, host: str, port: int) -> Database:
        try:
            node = await Node.open(self._database.dialer.at(host, port))
        except (StartError, asyncpg.InvalidAuthorizationSpecificationError) as error:
            # It lets the coordinator in, which costs more.
            _log.warning(
                "node_not_entered",
                node=f"{host}:{port}",
                error=type(error).__name__,
                see="docs/scaling.md, Citus",
            )
            return self._database
        node.coordinator = self._database
        node.disk = self._database.disk
        return node
