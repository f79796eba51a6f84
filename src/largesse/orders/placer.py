"""The placer: many orders in one transaction, each placed whole or refused alone.

With one commit per order, a busy funding account is a queue behind its own row lock. Here all orders that wait are placed
together (largesse.base.batching): the accounts are locked in id order, plain rules decide each order (largesse.orders.rules), all rows
are written in a few statements, and one COMMIT makes them durable before any caller gets an answer.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter

import asyncpg
import msgspec
import structlog
from prometheus_client import Counter, Histogram

from largesse.base.batching import Batcher
from largesse.base.clock import passed_s
from largesse.base.errors import Problem, Unavailable
from largesse.db.kept_sessions import KeptSessions
from largesse.db.pipeline import Statement
from largesse.db.pool import DATABASE_AWAY, Connection, Database
from largesse.db.shard_groups import Nodes
from largesse.db.statements import CommitFailed, commit_with
from largesse.encryption.chain import Chain
from largesse.lines.store import insert_line_messages
from largesse.orders.ids import IdWatch
from largesse.orders.lock_queue import LockQueue
from largesse.orders.order import Order, Outcome, Placed, scope_of_orders
from largesse.orders.reading import (
    BudgetedAccounts,
    begin,
    begin_with_accounts,
    find_free,
    read_context,
    require_begun,
    wait_for_accounts,
)
from largesse.orders.rules import BatchContext, Decided, LockedAccount, ReferenceHeld, Refusal, decide
from largesse.orders.settling import Settler, Unsettled
from largesse.orders.store import ALONE, BESIDE_SMALL_ORDERS, Pace, draw_ids, write_lines, write_orders

_log = structlog.get_logger(__name__)

_PLACED = Counter("largesse_orders_placed", "Orders placed.")
_REFUSED = Counter(
    "largesse_orders_refused", "Orders that the transaction placing them refused, by the problem answered.", ["problem"]
)
_BATCHES = Histogram(
    "largesse_batch_orders", "Orders decided together in one transaction.", buckets=(1, 2, 5, 10, 25, 50, 100, 250)
)

# Orders with more codes have a lane of their own, so that they do not delay small ones.
SMALL_ORDER_CODES = 100
# How long after a small order large ones are written more slowly.
_SHARED_S = 1.0
# Orders of one transaction at most.
MAX_ORDERS = 250
# Tasks for small orders. Only one of them at a time places orders of the same customer.
_SMALL_TASKS = 2
# Tasks for small orders on a cluster, where a batch has one customer and a transaction has one node.
_DISTRIBUTED_TASKS = 6
# How often a small order with locked accounts is tried again in the next batch. Most locks of other processes are gone by then.
_ATTEMPTS = 4
_MAX_WAITING = 5_000
# Large orders are limited by their codes, which take memory and time.
_MAX_WAITING_CODES = 250_000
# How long an order waits for accounts that another transaction has locked.
TIMEOUT_S = 10.0
_ALONE_ATTEMPTS = 5
# How many accounts with budgets a process remembers.
_MAX_BUDGETED = 10_000


class Written(msgspec.Struct):
    """The orders of a batch that a transaction writes, and the refusals of the others, by their index in the batch."""

    placed: list[Placed]
    refusals: Mapping[int, Refusal]
    context: BatchContext
    last: Statement | None = None  # the last statement, which is sent together with COMMIT


Writer = Callable[[Connection, Sequence[Order]], Awaitable[Written]]

_code_count = attrgetter("row.code_count")
_customer_of = attrgetter("principal.customer_id")  # orders of one customer need the same accounts


def is_large(code_count: int) -> bool:
    """Returns whether an order of so many codes goes through the lane for large orders."""
    return code_count > SMALL_ORDER_CODES


class Placer:
    """Places orders, and marks their entries with `chain`. `max_orders` limits a batch; the benchmark sets 1 to measure one commit per order.

    With `has_siblings`, other processes place orders too. Then it pauses between batches, so that all together write few large batches.

    `on_placed` is called once for each transaction that placed orders, to wake the workers. An order whose accounts another
    transaction has locked waits in the lock queue for at most `timeout_s`.
    """

    def __init__(
        self,
        database: Database,
        chain: Chain,
        *,
        max_orders: int = MAX_ORDERS,
        has_siblings: bool = False,
        timeout_s: float = TIMEOUT_S,
        on_placed: Callable[[], None] = lambda: None,
        ids: IdWatch | None = None,
    ) -> None:
        self._database = database
        self._kept = KeptSessions(database.give_back)
        self._on_placed = on_placed
        self._ids = ids or IdWatch()
        self._nodes = Nodes(database)
        self._settler = Settler()
        self._under_way = 0
        self._shared_until = 0.0
        self._closing = False
        self._all_done = asyncio.Event()
        self._small: Batcher[Order, Placed] = Batcher(
            partial(self._place, partial(_place_small, chain, BudgetedAccounts(max_entries=_MAX_BUDGETED))),
            tasks=_DISTRIBUTED_TASKS if database.is_distributed else _SMALL_TASKS,
            max_items=max_orders,
            max_waiting=_MAX_WAITING,
            max_weight=1_000,
            weigh=_code_count,
            group=_customer_of,
            max_groups=1 if database.is_distributed else None,
            rests=has_siblings,
        )
        self._large: Batcher[Order, Placed] = Batcher(
            partial(self._place, partial(_place_large, chain, self._pace)),
            tasks=1,
            max_items=1,
            max_waiting=_MAX_WAITING_CODES,
            weigh=_code_count,
            room_by_weight=True,
            group=_customer_of,
        )
        self._lock_queue = LockQueue(
            partial(self._place, partial(_place_locked, chain)),
            self._find_free,
            timeout_s=timeout_s,
            max_waiting=_MAX_WAITING,
        )

    async def place(self, order: Order, *, on_locked: Callable[[], None] = lambda: None) -> Placed:
        """Places `order` durably. Calls `on_locked` when the order moves to the lock queue, where it delays no other order.

        Raises StaleCaller, Unauthorized, ReferenceUsed, InvalidRequest (the funding account), InsufficientBalance, or Unavailable if the database
        is unavailable, others lock the account, or the placer is closing. In all these cases nothing was placed.
        """
        if self._closing:
            raise Unavailable("The service is stopping.")
        self._under_way += 1
        try:
            placed = await self._submit(order, on_locked)
        except Unsettled as unsettled:
            placed = await unsettled.outcome()
            self._report_placed(1)
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._all_done.set()
        return placed

    async def close(self) -> None:
        """Finishes the current orders, then ends. All lanes stay open until then, as a locked order goes through several."""
        self._closing = True
        if self._under_way:
            self._all_done.clear()
            await self._all_done.wait()
        await asyncio.gather(self._small.close(), self._large.close())
        await self._lock_queue.close()
        await self._settler.close()
        await self._nodes.close()
        await self._kept.close()

    async def _submit(self, order: Order, on_locked: Callable[[], None]) -> Placed:
        if is_large(order.code_count):
            lane, attempts = self._large, 1
        else:
            lane, attempts = self._small, _ATTEMPTS
            self._shared_until = passed_s() + _SHARED_S
        for _ in range(attempts):
            if self._lock_queue.holds(order.account_ids):
                break
            try:
                return await lane.submit(order)
            except LockedAccount:
                continue
        on_locked()
        return await self._lock_queue.submit(order)

    def _pace(self) -> Pace:
        return BESIDE_SMALL_ORDERS if passed_s() < self._shared_until else ALONE

    async def _find_free(self, orders: Sequence[Order]) -> set[int]:
        async with self._database.transaction(scope_of_orders(orders)) as connection:
            return await find_free(connection, orders)

    async def _place(self, writer: Writer, batch: list[Order]) -> Sequence[Outcome]:
        try:
            return await self._transact(writer, batch)
        except LockedAccount as held:
            return [held] * len(batch)
        except asyncpg.LockNotAvailableError:
            # This transaction has the locks of the accounts, so it waited for another one that is using a reference of the batch.
            return [ReferenceHeld()] * len(batch)
        except Problem:
            raise
        except DATABASE_AWAY:
            raise
        except Exception as error:
            # One order cannot be written, for example because another process used its reference first. Placed alone, the others succeed.
            if len(batch) == 1 and not isinstance(error, asyncpg.UniqueViolationError | asyncpg.DeadlockDetectedError):
                raise
            _log.info("batch_retried_order_by_order", orders=len(batch), error=type(error).__name__)
            return [await self._place_alone(writer, order) for order in batch]

    async def _place_alone(self, writer: Writer, order: Order) -> Outcome:
        """Places one order alone, and returns its outcome. Tries again after a conflict with another process."""
        outcome: Outcome = Unavailable("The order could not be placed just now.")
        for _ in range(_ALONE_ATTEMPTS):
            try:
                return (await self._transact(writer, [order]))[0]
            except asyncpg.LockNotAvailableError:
                return ReferenceHeld()
            except (asyncpg.UniqueViolationError, asyncpg.DeadlockDetectedError) as error:
                outcome = error
            except Exception as error:  # noqa: BLE001 - it is this order's outcome
                return error
        return outcome

    async def _transact(self, writer: Writer, batch: Sequence[Order]) -> Sequence[Outcome]:
        """Places a batch in one transaction, and returns the outcomes, which are Unsettled if its COMMIT got no answer."""
        is_distributed, database = self._database.is_distributed, self._database
        if is_distributed:
            database = await self._nodes.node_of(batch[0].principal.customer_id)
        async with database.session(scope_of_orders(batch), self._kept) as connection:
            try:
                written = await writer(connection, batch)
                if is_distributed:
                    require_begun(connection)
                self._ids.note(written.context.ids_left)
                outcomes: dict[str, Outcome] = {placed.order.row.reference: placed for placed in written.placed}
                if outcomes:
                    await commit_with(connection, written.last)
                    self._report_placed(len(outcomes))
                else:
                    await _roll_back(connection)
            except CommitFailed as failed:
                # A single server that refuses a COMMIT has rolled back. Of several servers, one may refuse it after another has committed.
                if not (is_distributed or isinstance(failed.error, DATABASE_AWAY)):
                    raise failed.error from None
                orders = [placed.order for placed in written.placed]
                unsettled = self._settler.settle(database, orders, written.context.transaction_id)
                outcomes = dict(zip(outcomes, unsettled, strict=True))
            except asyncpg.SequenceGeneratorLimitExceededError as error:
                await _roll_back(connection)
                self._ids.note(0)
                raise _no_ids_left() from error
            except BaseException:
                await _roll_back(connection)
                raise
        _BATCHES.observe(len(batch))
        for refusal in written.refusals.values():
            if isinstance(refusal, Problem):
                _REFUSED.labels(refusal.slug).inc()
        return [written.refusals.get(at) or outcomes[order.row.reference] for at, order in enumerate(batch)]

    def _report_placed(self, orders: int) -> None:
        _PLACED.inc(orders)
        self._on_placed()


def _no_ids_left() -> Unavailable:
    return Unavailable(
        "The ids of orders are used up: no order can be placed until the operator of this service has solved this.",
        retry_after_s=3600,
    )


async def _roll_back(connection: Connection) -> None:
    with contextlib.suppress(*DATABASE_AWAY):  # a broken connection rolls back by itself
        await connection.execute("ROLLBACK")


async def _place_small(
    chain: Chain, budgeted: BudgetedAccounts, connection: Connection, batch: Sequence[Order]
) -> Written:
    """Begins a transaction and writes the orders of the batch that can be placed without waiting for locks."""
    context = await begin(connection, batch, known=budgeted)
    decided = decide(batch, context)
    has_messages = any(order.messages for order in decided.placed)
    ids = await _write_lines(connection, decided) if has_messages else None
    return await _write(chain, connection, decided, context, ids)


async def _place_large(
    chain: Chain, pace: Callable[[], Pace], connection: Connection, batch: Sequence[Order]
) -> Written:
    """Begins a transaction and writes an order of many codes. Writes its lines before it locks the accounts, so that no other order waits for them.

    Decides the order before the locks, and again after them.
    """
    context = await begin(connection, batch, lock=False)
    likely = decide(batch, context)
    if not likely.placed:
        return Written([], likely.refusals, context)
    ids = await _write_lines(connection, likely, pace)
    await wait_for_accounts(connection, batch)
    context = await read_context(connection, batch)
    return await _write(chain, connection, decide(batch, context), context, ids)


async def _place_locked(chain: Chain, connection: Connection, batch: Sequence[Order]) -> Written:
    """Waits a short while for the accounts that the orders share, then writes the orders: small ones or a large one."""
    await begin_with_accounts(connection, batch)
    context = await read_context(connection, batch)
    decided = decide(batch, context)
    by_copy = any(is_large(order.code_count) or order.messages for order in decided.placed)
    return await _write(
        chain, connection, decided, context, await _write_lines(connection, decided) if by_copy else None
    )


async def _write_lines(connection: Connection, decided: Decided, pace: Callable[[], Pace] = lambda: ALONE) -> list[int]:
    """Writes the lines of orders before the orders, with the messages of the lines. Returns the ids that the orders will get."""
    ids = await draw_ids(connection, len(decided.placed))
    await write_lines(connection, zip(ids, decided.placed, strict=True), pace)
    messages = [
        (order.row.customer_id, order_id, number, message)
        for order_id, order in zip(ids, decided.placed, strict=True)
        for number, message in enumerate(order.line_messages(), 1)
    ]
    if messages:
        await insert_line_messages(connection, messages)
    return ids


async def _write(
    chain: Chain, connection: Connection, decided: Decided, context: BatchContext, ids: Sequence[int] | None = None
) -> Written:
    """Writes the orders to place, except for the last statement. With `ids`, their lines were written before, with these order ids."""
    if not decided.placed:
        return Written([], decided.refusals, context)
    last = await write_orders(connection, chain, decided, context, ids=ids)
    return Written([Placed(order, context.now) for order in decided.placed], decided.refusals, context, last)
