"""How statements about queues are planned."""

from __future__ import annotations

from largesse.database import Connection


async def plan_by_index(connection: Connection) -> None:
    """Has the rest of the transaction planned by indexes, in their order; call it inside one.

    The planner's figures are of the last ANALYZE, and a queue may have grown from nothing to a million rows since. Then it
    takes the queue for a few rows, to be read whole and sorted, where the index has the first hundred at hand. A queue is
    never to be read whole, whatever the figures say: that much we know better.

    Nor is one table joined with another by reading all of either: what is taken is a few hundred rows, of which a plan made for any
    limit knows nothing, and takes a tenth of the queue for it.
    """
    await connection.execute(
        "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; "
        "SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off"
    )
