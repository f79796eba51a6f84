"""Making the read models anew, beside orders that go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from largesse.audit.acting import Acting
from largesse.database.pool import Connection, Database
from largesse.database.scope import OPERATOR, WORKER
from largesse.events.changes import change_all_orders, count_changes
from largesse.reports.keeping import lock_keeping, take_in

_LOOK_AGAIN_S = 0.2


async def rebuild(database: Database, acting: Acting, progress: Callable[[int, int], None]) -> int:
    """Empties the read models and takes every order in again, the newest first; returns how many orders that were.

    Workers that run help. When it is broken off they go on by themselves, and begun again it begins anew. `progress` is told
    now and then how many orders are taken in, of how many.
    """
    async with database.transaction(OPERATOR) as connection:
        await connection.execute("SET LOCAL statement_timeout = 0")
        await lock_keeping(connection)
        total, last_id = await change_all_orders(connection)
        await _empty(connection)  # late, as nobody may look at them from here to the end of the transaction
        await acting.record(connection, "reports.rebuilt", "reports", after={"orders": total})
    left = total
    while left:
        async with database.transaction(WORKER) as connection:
            taken = await take_in(connection, acting)
        if not taken:  # a worker is at it, or all is done
            await asyncio.sleep(_LOOK_AGAIN_S)
        async with database.connection(WORKER) as connection:
            left = await count_changes(connection, up_to=last_id)
        progress(max(total - left, 0), total)
    return total


async def _empty(connection: Connection) -> None:
    await connection.execute("TRUNCATE TABLE report_orders")
    await connection.execute("TRUNCATE TABLE report_words")
    await connection.execute("TRUNCATE TABLE report_sums")
    await connection.execute("TRUNCATE TABLE report_groups")
