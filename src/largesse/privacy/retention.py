"""Retention: recipients are erased by themselves, so many days after nothing more can happen to any code of their order.

An order of which something can still be claimed, chosen or shipped keeps its recipients, however old it is. The read models tell which
orders have come to their end, and since when; a worker erases them, the oldest first, a few at a time, and rests as long as it worked.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence

import structlog
from prometheus_client import Counter

from largesse.audit.service import Acting
from largesse.base import clock
from largesse.db.pool import Connection, Database, commit_as_one
from largesse.db.scope import WORKER
from largesse.db.shard_groups import Customers, ShardGroupRunner
from largesse.db.sharding import arguments
from largesse.db.statements import plan_by_index
from largesse.mail.tasks import erase_old_requeues
from largesse.orders.erasing import erase_texts
from largesse.orders.marks import changing_orders
from largesse.privacy.erasing import erase_lines, forget_written, keep_receipt

EVERY_S = 60.0
_ORDERS_AT_ONCE = 100
_CODES_AT_ONCE = 5_000  # of them, unless one order alone has more

ERASED = Counter("largesse_retention_erased", "Orders whose recipients were erased as they had been kept long enough.")

# An order that was erased stays in front until the read models have followed; looked up one by one, so that none is sorted.
_NOT_ERASED = "(SELECT erased_at FROM orders o WHERE o.customer_id = r.customer_id AND o.id = r.order_id) IS NULL"


def due(condition: str) -> str:
    """SQL for the first $2 orders at their end for $1 days."""
    return f"""
        SELECT customer_id, order_id, codes FROM report_orders r
        WHERE erasable_since <= (SELECT clock_now()) - $1 * interval '1 day'
          AND {condition}
        ORDER BY erasable_since LIMIT $2
    """  # noqa: S608 - constants


DUE = due(_NOT_ERASED)
# Where orders lie on nodes: whoever erases sees which are erased already. Not by the index of the customers, who may have many that are not due.
_DUE_OF = due("customer_id + 0 = ANY($3::int[])")
_CUSTOMERS_DUE = """
    SELECT customer_id FROM report_orders
    WHERE erasable_since <= (SELECT clock_now()) - $2 * interval '1 day' AND customer_id = ANY($1::int[])
    ORDER BY erasable_since LIMIT 500
"""

_log = structlog.get_logger(__name__)


class Retention:
    """What a worker does from time to time to keep recipients' data for no longer than `days`. `acting` keeps that it did."""

    def __init__(self, database: Database, acting: Acting, days: int) -> None:
        self._database = database
        self._acting = acting
        self._days = days
        self._shard_groups = ShardGroupRunner(database)

    async def step(self) -> bool:
        """Erases the recipients of a few orders, a customer's in a transaction of their own; True when there may be more."""
        began_s = clock.passed_s()
        async with self._database.transaction(WORKER) as connection:
            await erase_old_requeues(connection, self._days)
        erased = sum(await self._shard_groups.run(_CUSTOMERS_DUE, self._erase_due, self._days))
        if erased:
            ERASED.inc(erased)
            _log.info("recipients.erased", orders=erased)
            await asyncio.sleep(clock.passed_s() - began_s)
        return erased > 0

    async def _erase_due(self, shard_group: Customers) -> int:
        async with self._database.transaction(WORKER) as connection:
            orders_due = await self._due(connection, shard_group)
        erased = 0
        for customer_id, orders in orders_due.items():
            async with self._database.transaction(WORKER) as connection:
                await commit_as_one(connection)
                erased += await self._erase(connection, customer_id, orders)
        return erased

    async def _due(self, connection: Connection, shard_group: Customers) -> Mapping[int, Mapping[int, int]]:
        """The orders that have been at their end for longest, if long enough: their codes by id, by customer."""
        await plan_by_index(connection)
        statement = DUE if shard_group is None else _DUE_OF
        rows = await connection.fetch(statement, self._days, _ORDERS_AT_ONCE, *arguments(shard_group))
        due: dict[int, dict[int, int]] = defaultdict(dict)
        left = _CODES_AT_ONCE
        for row in rows:
            left -= row["codes"]
            if due and left < 0:
                break
            due[row["customer_id"]][row["order_id"]] = row["codes"]
        return due

    async def _erase(self, connection: Connection, customer_id: int, codes: Mapping[int, int]) -> int:
        """Erases the recipients of a customer's orders and keeps a receipt; returns of how many it was to be done yet."""
        chain = self._acting.chains.entries
        erased = []
        async with changing_orders(connection, chain, customer_id, sorted(codes)) as mine:
            gone = await erase_texts(connection, customer_id, mine)
            for texts in gone:
                order = (customer_id, texts.order_id)
                erased.append(await erase_lines(connection, order, _numbers(codes[texts.order_id])))
                await forget_written(connection, customer_id, texts)
        if not gone:  # another worker is at it
            return 0
        receipt = await keep_receipt(
            connection,
            erased,
            count=len(gone),
            texts=sum(any((texts.external_reference, *texts.written)) for texts in gone),
            customer_id=customer_id,
            retention_days=self._days,
        )
        told = {"orders": receipt.orders, "lines": receipt.lines, "days": self._days}
        await self._acting.record(
            connection, "privacy.erased", f"erasure {receipt.number}", customer_id=customer_id, after=told
        )
        return len(gone)


def _numbers(codes: int) -> Sequence[int]:
    return range(1, codes + 1)
