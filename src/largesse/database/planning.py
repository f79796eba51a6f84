"""How statements are planned where the planner knows less than we do.

Its figures are of the last ANALYZE, and a table may have grown from nothing to a million rows since. Of how many rows a policy
lets through it knows nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from largesse.database.pool import Connection

# What is looked up for a batch is planned once a connection, and read in the order of an index.
OF_BATCH = "SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_sort = off;"
OF_BATCH_SPREAD = OF_BATCH.replace("force_generic_plan", "force_custom_plan")


async def plan_by_index(connection: Connection) -> None:
    """Has the rest of the transaction planned by indexes, in their order, and by keys, a few among millions; call it inside one.

    The planner takes a queue that has grown for a few rows, to be read whole and sorted, where the index has the first hundred at hand. A
    queue is never to be read whole, whatever the figures say: that much we know better.

    Nor is one table joined with another by reading all of either: what is taken is a few hundred rows, of which a plan made for any
    limit knows nothing, and takes a tenth of the queue for it.
    """
    await connection.execute(
        "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; "
        "SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off"
    )


@asynccontextmanager
async def planned_at_once(connection: Connection) -> AsyncIterator[None]:
    """Has sums of many rows planned so that each table is read once, and added up as it comes; call it inside a transaction.

    The planner takes what a policy lets through for few rows: it would look for those of one row after another, and sort them.
    """
    await connection.execute("SET LOCAL enable_nestloop = off; SET LOCAL enable_sort = off")
    yield
    await connection.execute("SET LOCAL enable_nestloop = on; SET LOCAL enable_sort = on")
