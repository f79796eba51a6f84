"""Retention: a worker erases recipients some days after their order is finished.

An order is finished when none of its codes can be claimed, chosen or shipped any more. The read models say which orders are finished, and
since when. A worker erases the oldest first, a few at a time, and then pauses for as long as that took.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping

import structlog
from prometheus_client import Counter

from largesse.audit.service import Acting
from largesse.base import clock
from largesse.customers.actor import Transaction, worker_actor
from largesse.db.pool import DATABASE_AWAY, Connection, Database, commit_as_one
from largesse.db.scope import WORKER
from largesse.db.shard_groups import Customers, ShardGroupRunner
from largesse.db.sharding import arguments
from largesse.db.statements import plan_by_index
from largesse.mail.tasks import erase_old_requeues
from largesse.orders.erasing import erase_texts
from largesse.orders.marks import changing_orders
from largesse.privacy.service import count_erased, erase_lines, forget_written
from largesse.privacy.store import CUSTOMERS_DUE, DUE, DUE_OF, add_receipt

EVERY_S = 60.0
_ORDERS_AT_ONCE = 100
_CODES_AT_ONCE = 5_000  # codes of these orders, unless one order alone has more
_MOST_FAILED = 10_000  # orders that are passed over before the oldest are tried again

ERASED = Counter("largesse_retention_erased", "Orders whose recipients were erased as they had been kept long enough.")

_log = structlog.get_logger(__name__)


class Retention:
    """Erases recipients' data after `days`, a few orders at a time. `acting` names the worker in the audit log."""

    def __init__(self, database: Database, acting: Acting, days: int) -> None:
        self._database = database
        self._actor = worker_actor(database, acting)
        self._days = days
        self._shard_groups = ShardGroupRunner(database)
        self._failed: set[int] = set()  # orders that are passed over, so that they block no later ones

    async def step(self) -> bool:
        """Erases the recipients of a few orders, each customer's in its own transaction; returns whether there may be more.

        Orders that fail are tried again once all others are done.
        """
        failed = len(self._failed)
        began_s = clock.passed_s()
        async with self._database.transaction(WORKER) as connection:
            await erase_old_requeues(connection, self._days)
        passed_over = sorted(self._failed)
        erased = sum(await self._shard_groups.run(CUSTOMERS_DUE, self._erase_due, self._days, passed_over))
        if erased:
            ERASED.inc(erased)
            _log.info("recipients.erased", orders=erased)
        if len(self._failed) > _MOST_FAILED or not (erased or len(self._failed) > failed):
            self._failed.clear()
            return False
        await asyncio.sleep(clock.passed_s() - began_s)
        return True

    async def _erase_due(self, shard_group: Customers) -> int:
        async with self._database.transaction(WORKER) as connection:
            orders_due = await self._due(connection, shard_group)
        return sum([await self._erase_of(customer_id, codes) for customer_id, codes in orders_due.items()])

    async def _erase_of(self, customer_id: int, codes: Mapping[int, int]) -> int:
        """Erases the recipients of a customer's orders in one transaction. If that fails, each order gets its own, so that one stops no other."""
        try:
            async with self._actor.on_behalf_of(customer_id).transaction() as transaction:
                await commit_as_one(transaction.connection)
                return await self._erase(transaction, codes)
        except DATABASE_AWAY:
            raise
        except Exception:  # noqa: BLE001 - logged, once it is known which order it is
            if len(codes) == 1:
                _log.exception("recipients.not_erased", customer=customer_id, order=next(iter(codes)))
                self._failed.update(codes)
                return 0
        return sum([await self._erase_of(customer_id, {order_id: count}) for order_id, count in codes.items()])

    async def _due(self, connection: Connection, shard_group: Customers) -> Mapping[int, Mapping[int, int]]:
        """Returns the orders whose retention period ended first: the number of codes by order, by customer."""
        await plan_by_index(connection)
        statement = DUE if shard_group is None else DUE_OF
        passed_over = sorted(self._failed)
        rows = await connection.fetch(statement, self._days, _ORDERS_AT_ONCE, passed_over, *arguments(shard_group))
        due: dict[int, dict[int, int]] = defaultdict(dict)
        left = _CODES_AT_ONCE
        for row in rows:
            left -= row["codes"]
            if due and left < 0:
                break
            due[row["customer_id"]][row["order_id"]] = row["codes"]
        return due

    async def _erase(self, transaction: Transaction, codes: Mapping[int, int]) -> int:
        """Erases the recipients of a customer's orders. Returns how many orders it erased; another worker may have erased some."""
        connection, customer_id = transaction.connection, transaction.actor.customer_id
        erased = []
        async with changing_orders(connection, transaction.entries, customer_id, sorted(codes)) as mine:
            gone = await erase_texts(connection, customer_id, mine)
            for texts in gone:
                order = (customer_id, texts.order_id)
                erased.append(await erase_lines(connection, order, range(1, codes[texts.order_id] + 1)))
                await forget_written(connection, customer_id, texts)
        if not gone:
            return 0
        texts_erased = sum(any((texts.external_reference, *texts.written)) for texts in gone)
        counts = count_erased(erased, count=len(gone), texts=texts_erased)
        receipt = await add_receipt(connection, counts, customer_id=customer_id, retention_days=self._days)
        after = {"orders": receipt.orders, "lines": receipt.lines, "days": self._days}
        await transaction.record("privacy.erased", f"erasure {receipt.number}", after=after)
        return len(gone)
