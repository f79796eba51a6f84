"""The placer: many orders in one transaction, each placed whole or refused alone.

One commit an order makes a busy funding account a queue behind its own row lock. Here whatever waits is placed
together (largesse.batching): the accounts are locked in id order, each order is decided by plain rules
(largesse.orders.rules), all rows are written set by set, and one COMMIT makes them durable before anyone hears.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

import asyncpg
import structlog

from largesse.batching import Batcher
from largesse.database import DATABASE_AWAY, Connection, Database
from largesse.errors import Problem, Unavailable
from largesse.orders.order import Order, Placed
from largesse.orders.reading import lock_accounts, read_ground
from largesse.orders.rules import decide
from largesse.orders.writing import write_lines, write_orders

_log = structlog.get_logger(__name__)

Outcome = Placed | Exception
# What was written of a batch, and the refusals by place in it.
Written = tuple[list[Placed], Mapping[int, Problem]]
Writer = Callable[[Connection, Sequence[Order]], Awaitable[Written]]

# Orders of more codes than this go through a lane of their own, so that they do not delay small ones.
SMALL_ORDER_CODES = 100
# Orders of one transaction at most.
MAX_ORDERS = 250
# Of small orders; those of one customer are placed by one of them at a time.
_SMALL_TASKS = 2
_ALONE_ATTEMPTS = 5
_SETTLE_ATTEMPTS = 40
_SETTLE_EVERY_S = 0.25


def is_large(code_count: int) -> bool:
    """Whether an order of so many codes goes through the lane for large ones."""
    return code_count > SMALL_ORDER_CODES


class CommitUncertain(Exception):
    """The connection broke during COMMIT: the batch may or may not have been placed."""


class Placer:
    """Places orders. `max_orders` bounds a batch; the benchmark sets 1 to see what one commit an order costs.

    `on_placed` is called after each order: it wakes whoever delivers.
    """

    def __init__(
        self,
        database: Database,
        *,
        max_orders: int = MAX_ORDERS,
        on_placed: Callable[[], None] = lambda: None,
    ) -> None:
        self._database = database
        self._on_placed = on_placed
        self._small: Batcher[Order, Placed] = Batcher(
            partial(self._place, _place_small),
            tasks=_SMALL_TASKS,
            max_items=max_orders,
            max_waiting=5_000,
            max_weight=1_000,
            weigh=lambda order: order.code_count,
            group=_customer_of,
        )
        self._large: Batcher[Order, Placed] = Batcher(
            partial(self._place, _place_large), tasks=1, max_items=1, max_waiting=50, group=_customer_of
        )

    async def place(self, order: Order) -> Placed:
        """Places `order` durably.

        Raises Unauthorized, ReferenceUsed, InvalidRequest (the funding account), InsufficientBalance, or
        Unavailable when the database is away; in each case nothing of the order exists.
        """
        lane = self._large if is_large(order.code_count) else self._small
        placed = await lane.submit(order)
        self._on_placed()
        return placed

    async def close(self) -> None:
        """Places what waits, then ends."""
        await asyncio.gather(self._small.close(), self._large.close())

    async def _place(self, writer: Writer, batch: list[Order]) -> Sequence[Outcome]:
        try:
            return await self._transact(writer, batch)
        except CommitUncertain:
            return await self._settle(batch)
        except DATABASE_AWAY:
            raise
        except asyncpg.PostgresError as error:
            # Something in this batch cannot be written (another process took a reference first, say).
            # Alone, each order meets its own fate, and none fails for its neighbour.
            if len(batch) == 1 and not isinstance(
                error, asyncpg.UniqueViolationError | asyncpg.DeadlockDetectedError
            ):
                raise
            _log.info("batch_retried_order_by_order", orders=len(batch), error=type(error).__name__)
            return [await self._place_alone(writer, order) for order in batch]

    async def _place_alone(self, writer: Writer, order: Order) -> Outcome:
        """The outcome of one order. Another process may be taking its reference even now: then it is tried again."""
        outcome: Outcome = Unavailable("The order could not be placed just now.")
        for _ in range(_ALONE_ATTEMPTS):
            try:
                return (await self._transact(writer, [order]))[0]
            except CommitUncertain:
                return await self._settle_alone(order)
            except (asyncpg.UniqueViolationError, asyncpg.DeadlockDetectedError) as error:
                outcome = error
            except Exception as error:  # noqa: BLE001 - it is this order's outcome
                return error
        return outcome

    async def _settle_alone(self, order: Order) -> Outcome:
        try:
            return (await self._settle([order]))[0]
        except Unavailable as error:
            return error

    async def _transact(self, writer: Writer, batch: Sequence[Order]) -> Sequence[Outcome]:
        async with self._database.connection() as connection:
            try:
                placed, refusals = await writer(connection, batch)
            except BaseException:
                await _roll_back(connection)
                raise
            if not placed:
                await _roll_back(connection)
            else:
                try:
                    await connection.execute("COMMIT")
                except DATABASE_AWAY as error:
                    raise CommitUncertain from error
        by_reference = {p.order.reference: p for p in placed}
        return [refusals.get(at) or by_reference[order.reference] for at, order in enumerate(batch)]

    async def _settle(self, batch: Sequence[Order]) -> Sequence[Outcome]:
        """Finds out after a broken COMMIT which orders exist; never places again.

        Locking the accounts first waits for the old transaction to end, should the server still be at it.
        """
        for _ in range(_SETTLE_ATTEMPTS):
            try:
                async with self._database.transaction() as connection:
                    await lock_accounts(connection, batch)
                    rows = await connection.fetch(
                        "SELECT reference, id, created_at FROM orders WHERE reference = ANY($1::text[])",
                        [order.reference for order in batch],
                    )
            except DATABASE_AWAY:
                await asyncio.sleep(_SETTLE_EVERY_S)
                continue
            found = {row["reference"]: row for row in rows}
            _log.warning("commit_settled", orders=len(batch), placed=len(found))
            return [
                Placed(found[order.reference]["id"], order, found[order.reference]["created_at"])
                if order.reference in found
                else Unavailable("The database went away; nothing was placed.")
                for order in batch
            ]
        _log.error("commit_unsettled", references=[order.reference for order in batch])
        raise Unavailable(
            "The database went away before it said whether the order was placed. Repeat with the same "
            "`externalReference`, or look in GET /orders.",
            retry_after_s=5,
        )


def _customer_of(order: Order) -> int:
    """Orders of one customer meet at its accounts."""
    return order.principal.customer_id


async def _roll_back(connection: Connection) -> None:
    with contextlib.suppress(*DATABASE_AWAY):  # a broken connection rolls back by itself
        await connection.execute("ROLLBACK")


async def _place_small(connection: Connection, batch: Sequence[Order]) -> Written:
    """Writes what of the batch can be placed, in a transaction that it begins."""
    await lock_accounts(connection, batch, begin=True)
    ground = await read_ground(connection, batch)
    decided = decide(batch, ground)
    if not decided.placed:
        return [], decided.refusals
    return await write_orders(connection, decided, ground.now, with_lines=True), decided.refusals


async def _place_large(connection: Connection, batch: Sequence[Order]) -> Written:
    """Writes an order of many codes, its lines before its accounts are locked: nobody waits for them.

    Whether it can be placed at all is asked first without a lock, and again under it, in a transaction that it begins.
    """
    await connection.execute("BEGIN")
    likely = decide(batch, await read_ground(connection, batch))
    if not likely.placed:
        return [], likely.refusals
    await write_lines(connection, likely.placed)
    await lock_accounts(connection, batch)
    ground = await read_ground(connection, batch, ids=[order_id for order_id, _ in likely.placed])
    decided = decide(batch, ground)
    if not decided.placed:
        return [], decided.refusals
    return await write_orders(connection, decided, ground.now, with_lines=False), decided.refusals
