"""The lock queue: orders wait here while another transaction has locked their accounts, so that they do not delay other orders.

Orders of the same accounts wait in one queue, and the queues take turns. In its turn, a queue waits a short while for the locks in the
database, so that placers of several processes take turns too. When many queues wait, queues with free accounts come next. So an order
whose accounts are free waits only for the turns that are running.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import msgspec
from prometheus_client import Gauge

from largesse.base.errors import Unavailable
from largesse.db.pool import DATABASE_FAILED
from largesse.orders.order import AccountIds, Order, Outcome, Placed
from largesse.orders.rules import LockedAccount, ReferenceHeld

_TASKS = 2
_MAX_ORDERS = 250
_MAX_CODES = 1_000

_LOCKED = Gauge("largesse_orders_aside", "Orders that wait for accounts that another transaction has locked.")


class _Waiting(msgspec.Struct, eq=False):
    order: Order
    outcome: asyncio.Future[Placed]
    until: float  # when it is refused, by the event loop's clock
    is_taken: bool = False


class _Queue(msgspec.Struct, eq=False):
    """The waiting orders of the same accounts, the oldest first."""

    accounts: AccountIds
    waiting: dict[_Waiting, None] = {}
    is_taken: bool = False
    # The most orders of a turn. After a turn that met a reference in use by another transaction, it is one, so that other orders get through.
    at_once: int = _MAX_ORDERS
    reference_held: bool = False

    def take(self) -> list[_Waiting]:
        """Returns the orders of the next turn: at most `_MAX_CODES` codes, or a single larger order."""
        batch: list[_Waiting] = []
        codes = 0
        for one in self.waiting:
            if one.outcome.done():  # its caller went away, or it was refused at its timeout
                continue
            codes += one.order.code_count
            if len(batch) == self.at_once or (batch and codes > _MAX_CODES):
                break
            batch.append(one)
        for one in batch:
            del self.waiting[one]
            one.is_taken = True
        return batch


class LockQueue:
    """Places orders once their accounts are free. Refuses an order that waits longer than `timeout_s`.

    `place` gets orders of the same accounts, and returns an outcome for each: LockedAccount if it must wait longer. `find_free` returns
    which accounts of the given orders are not locked. One customer may fill half of the queue, two customers a third each, and so on.
    """

    def __init__(
        self,
        place: Callable[[list[Order]], Awaitable[Sequence[Outcome]]],
        find_free: Callable[[Sequence[Order]], Awaitable[set[int]]],
        *,
        timeout_s: float,
        max_waiting: int,
    ) -> None:
        self._place = place
        self._find_free = find_free
        self._timeout_s = timeout_s
        self._max_waiting = max_waiting
        self._queues: dict[AccountIds, _Queue] = {}  # in the order of their turns
        self._of_customer: Counter[int] = Counter()
        self._count = 0
        self._closing = False
        self._arrival = asyncio.Event()
        self._tasks = [asyncio.create_task(self._work()) for _ in range(_TASKS)]

    def holds(self, account_ids: AccountIds) -> bool:
        """Returns whether orders of these accounts wait here. Later orders must join them."""
        return account_ids in self._queues

    async def submit(self, order: Order) -> Placed:
        """Places `order` once it can be placed. Raises the problem that refuses it, or Unavailable."""
        customer_id = order.principal.customer_id
        if self._of_customer[customer_id] >= self._max_waiting - self._count:
            raise Unavailable("Too many orders wait for accounts that are in use elsewhere.", retry_after_s=5)
        loop = asyncio.get_running_loop()
        waiting = _Waiting(order, loop.create_future(), loop.time() + self._timeout_s)
        expiry = loop.call_at(waiting.until, self._expire, waiting)
        queue = self._queues.setdefault(order.account_ids, _Queue(order.account_ids))
        queue.waiting[waiting] = None
        self._count += 1
        _LOCKED.inc()
        self._of_customer[customer_id] += 1
        self._arrival.set()
        try:
            return await waiting.outcome
        finally:
            expiry.cancel()
            queue.waiting.pop(waiting, None)
            self._count -= 1
            _LOCKED.dec()
            self._of_customer[customer_id] -= 1
            if not self._of_customer[customer_id]:
                del self._of_customer[customer_id]

    async def close(self) -> None:
        """Places the orders that wait, or refuses them at their timeout, then ends."""
        self._closing = True
        self._arrival.set()
        await asyncio.gather(*self._tasks)

    def _expire(self, waiting: _Waiting) -> None:
        """Refuses an order at its timeout, unless it is being placed right now: then its turn decides."""
        if not waiting.is_taken and not waiting.outcome.done():
            waiting.outcome.set_exception(
                Unavailable("The account is in use elsewhere; nothing was placed.", retry_after_s=5)
            )

    async def _work(self) -> None:
        while True:
            queue = next((queue for queue in self._queues.values() if not queue.is_taken), None)
            if queue is not None:
                await self._turn(queue)
            elif self._closing and not self._queues:
                return
            else:
                self._arrival.clear()
                await self._arrival.wait()

    async def _turn(self, queue: _Queue) -> None:
        """Places as many of a queue's next orders as it can. If orders are left, the queue gets its next turn after the others."""
        queue.is_taken = True
        try:
            batch = queue.take()
            outcomes = await self._outcomes([one.order for one in batch]) if batch else []
            held = [one for one, outcome in zip(batch, outcomes, strict=True) if not self._deliver(one, outcome)]
            queue.waiting |= dict.fromkeys(held)
            queue.reference_held = any(isinstance(outcome, ReferenceHeld) for outcome in outcomes)
            queue.at_once = 1 if queue.reference_held else min(2 * queue.at_once, _MAX_ORDERS)
            if held and len(self._queues) > _TASKS:
                await self._put_free_ones_first(queue)
        finally:
            queue.is_taken = False
            del self._queues[queue.accounts]
            if queue.waiting:
                self._queues[queue.accounts] = queue
            self._arrival.set()

    async def _outcomes(self, orders: list[Order]) -> Sequence[Outcome]:
        """Returns an outcome for each order, also after an error: if the task ended, all orders would wait."""
        try:
            return await self._place(orders)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return [Unavailable("The request was broken off.")] * len(orders)
        except Exception as error:  # noqa: BLE001 - whatever went wrong belongs to the callers of this turn
            return [error] * len(orders)

    def _deliver(self, one: _Waiting, outcome: Outcome) -> bool:
        """Hands a caller the outcome of its order. Returns False if the order has to wait longer."""
        one.is_taken = False
        loop = asyncio.get_running_loop()
        if one.outcome.done():  # its caller went away
            return True
        if isinstance(outcome, LockedAccount):
            if loop.time() < one.until:
                return False
            self._expire(one)
        elif isinstance(outcome, Exception):
            one.outcome.set_exception(outcome)
        else:
            one.outcome.set_result(outcome)
        return True

    async def _put_free_ones_first(self, last: _Queue) -> None:
        """Puts the queues whose accounts are free first. Does not consider `last`, whose turn has just ended."""
        candidates = [
            (accounts, next(iter(queue.waiting)).order)
            for accounts, queue in self._queues.items()
            if queue is not last and queue.waiting and not queue.is_taken and not queue.reference_held
        ]
        if not candidates:
            return
        with suppress(*DATABASE_FAILED):  # then the order of the queues stays as it is
            free = await self._find_free([order for _, order in candidates])
            first = {
                accounts: self._queues[accounts]
                for accounts, _ in candidates
                if free.issuperset(accounts) and accounts in self._queues
            }
            self._queues = first | self._queues
