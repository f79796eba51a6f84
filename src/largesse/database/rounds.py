"""Rounds: work of all customers, done at one node after the other where customers are spread, so that a node that is away stops no other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import structlog

from largesse.base import clock
from largesse.database.distribution import neighbourhoods
from largesse.database.pool import DATABASE_AWAY, Connection, Database, Row, is_spread
from largesse.database.scope import WORKER

Result = TypeVar("Result")
Customers = Sequence[int] | None  # neighbours, by id; None: all there are, in one database

_KNOWN_S = 1.0  # a customer that is new, or has moved, is found after this
_REST_S = 2.0  # so long a node that was away is not asked again

log = structlog.get_logger(__name__)


async def places(connection: Connection, customers: Customers) -> Sequence[Customers]:
    """The customers for whom work is done one after the other: those given, else all; neighbours together where they are spread."""
    if customers is not None or not is_spread(connection):
        return [customers]
    return [neighbours.customers for neighbours in await neighbourhoods(connection)]


async def read_at_homes(
    connection: Connection, customer_ids: Iterable[int], read: Callable[[Customers], Awaitable[list[Row]]]
) -> tuple[list[Row], set[int]]:
    """What `read` finds of those customers, one after the other where they are spread, and those of them whose node is away.

    Call it inside a transaction, which goes on without them.
    """
    if not is_spread(connection):
        return await read(None), set()
    rows: list[Row] = []
    away: set[int] = set()
    for neighbours in await neighbourhoods(connection, sorted(set(customer_ids))):
        try:
            async with connection.transaction():
                rows += await read(neighbours.customers)
        except DATABASE_AWAY:
            if connection.is_closed():
                raise
            away.update(neighbours.customers)
    return rows, away


class Rounds:
    """Goes round the nodes of a database. What it leaves out, as a node is away, waits there for another round."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: Mapping[int, Sequence[Sequence[int]]] = {}
        self._known_until_s = 0.0
        self._away_until_s: dict[int, float] = {}

    async def go(
        self, waiting: str, step: Callable[[Customers], Awaitable[Result]], *more: object
    ) -> list[Result]:
        """What `step` returns for all customers; where they are spread, for the neighbours of whom any is among those that wait.

        `waiting` tells those, of the customers in `$1`, with `more` as its other arguments: the first few, in the order in which they wait. Raises what went wrong where no node could be asked.
        """
        if not self._database.is_spread:
            return [await step(None)]
        done: list[Result] = []
        trouble: BaseException | None = None
        are_all_away = True
        for node, streets in (await self._nodes()).items():
            if self._away_until_s.get(node, 0.0) > clock.passed_s():
                continue
            try:
                for customers in await self._waiting(streets, waiting, *more):
                    done.append(await step(customers))  # noqa: PERF401 - kept, whoever comes after it fails
                are_all_away = False
            except DATABASE_AWAY as error:
                trouble = error
                self._away_until_s[node] = clock.passed_s() + _REST_S
                log.warning("worker.node_away", node=node, error=type(error).__name__)
        if trouble is not None and are_all_away:
            raise trouble
        return done

    async def _nodes(self) -> Mapping[int, Sequence[Sequence[int]]]:
        """The customers of each node, neighbours together."""
        if clock.passed_s() >= self._known_until_s:
            nodes: dict[int, list[Sequence[int]]] = defaultdict(list)
            async with self._database.connection(WORKER) as connection:
                for neighbours in await neighbourhoods(connection):
                    nodes[neighbours.node].append(neighbours.customers)
            self._known, self._known_until_s = nodes, clock.passed_s() + _KNOWN_S
        return self._known

    async def _waiting(self, streets: Sequence[Sequence[int]], query: str, *more: object) -> list[list[int]]:
        """Those of each street who wait, where any does."""
        async with self._database.connection(WORKER) as connection:
            rows = await connection.fetch(query, [one for street in streets for one in street], *more)
        waiting = {row[0] for row in rows}
        return [found for street in streets if (found := [one for one in street if one in waiting])]
