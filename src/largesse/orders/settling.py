"""Settling: finds out whether a COMMIT whose answer was lost took effect. Places nothing again."""

import asyncio
from collections.abc import Sequence

import asyncpg
import structlog

from largesse.base.errors import Unavailable
from largesse.db.fragments import Fragment, compose
from largesse.db.pool import DATABASE_AWAY, Connection, Database, Row
from largesse.db.scope import LOOKUP
from largesse.db.sharding import at_node
from largesse.orders.order import Order, Outcome, Placed, scope_of_orders

_log = structlog.get_logger(__name__)

# Batches that are settled at the same time. Each needs a connection now and then.
_AT_ONCE = 3
_TIMEOUT_S = 10.0
_EVERY_S = 0.25
_HAS_ENDED = "SELECT pg_is_in_recovery(), pg_xact_status($1::text::xid8) = 'in progress'"


class Unsettled(Exception):
    """The connection broke during COMMIT, so it is not known yet whether the order was placed. `outcome` finds out."""

    def __init__(self, settling: asyncio.Task[dict[str, Outcome]], order: Order) -> None:
        super().__init__()
        self._settling = settling
        self._reference = order.reference

    async def outcome(self) -> Placed:
        """Returns the order if it was placed. Raises Unavailable if it was not, or if that cannot be found out in time."""
        outcome = (await asyncio.shield(self._settling))[self._reference]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


class Settler:
    """Settles batches in the background, so that later batches need not wait."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._tasks: set[asyncio.Task[dict[str, Outcome]]] = set()

    def settle(self, database: Database, orders: Sequence[Order], transaction_id: str) -> list[Unsettled]:
        """Begins to settle the orders of one transaction, whose id in the database is `transaction_id`."""
        task = asyncio.create_task(self._settle(database, orders, transaction_id))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return [Unsettled(task, order) for order in orders]

    async def close(self) -> None:
        """Waits until everything is settled."""
        await asyncio.gather(*self._tasks)

    async def _settle(self, database: Database, orders: Sequence[Order], transaction_id: str) -> dict[str, Outcome]:
        try:
            async with asyncio.timeout(_TIMEOUT_S), self._slots:
                placed = await _find(database, orders, transaction_id)
        except TimeoutError:
            _log.error("commit_unsettled", references=[order.reference for order in orders])
            unknown = Unavailable(
                "The database became unavailable before it confirmed the order, which may have been placed. Repeat with the same "
                "`external_reference`, or look in GET /orders.",
                retry_after_s=5,
                is_uncertain=True,
            )
            return {order.reference: unknown for order in orders}
        _log.warning("commit_settled", orders=len(orders), placed=len(placed))
        gone = Unavailable("The database became unavailable; nothing was placed.")
        return {order.reference: placed.get(order.reference, gone) for order in orders}


async def _find(database: Database, orders: Sequence[Order], transaction_id: str) -> dict[str, Placed]:
    """Waits until the transaction has ended, then returns the orders that exist, by reference."""
    while True:
        try:
            async with database.connection(LOOKUP) as connection:
                has_ended = await _has_ended(connection, transaction_id)
            if has_ended:
                rows = await _read(database, orders)
                break
        except DATABASE_AWAY:
            pass
        await asyncio.sleep(_EVERY_S)
    by_reference = {order.reference: order for order in orders}
    return {row["reference"]: Placed(by_reference[row["reference"]], row["created_at"]) for row in rows}


def _placed(pin: str) -> Fragment:
    """Returns SQL that finds which orders were placed, from arrays of their customers and references."""
    return compose(
        """
        SELECT reference, created_at FROM unnest($1::int[], $2::text[]) AS placed (customer_id, reference)
        JOIN orders USING (customer_id, reference) WHERE true {node}
    """,
        node=at_node("orders.customer_id", pin),
    )


# The key says whether customers are distributed over nodes.
_PLACED = {False: _placed(""), True: _placed("$3")}


async def _read(database: Database, orders: Sequence[Order]) -> list[Row]:
    customers = [order.row.customer_id for order in orders]
    references = [order.reference for order in orders]
    pin = customers[:1] if database.is_distributed else []  # on a cluster, a batch has one customer
    return await database.fetch(scope_of_orders(orders), _PLACED[bool(pin)], customers, references, *pin)


async def _has_ended(connection: Connection, transaction_id: str) -> bool:
    """Returns whether a transaction has ended, so that its outcome is final.

    Always False on a standby, which may not have replayed the last transactions of its primary.
    """
    try:
        row = await connection.fetchrow(_HAS_ENDED, transaction_id)
    except asyncpg.InvalidParameterValueError:
        return True  # this was a standby, promoted before it received the transaction
    assert row is not None
    is_standby, in_progress = row
    return not is_standby and not in_progress
