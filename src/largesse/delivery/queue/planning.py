"""How statements about queues are planned."""

from __future__ import annotations

from largesse.database import Connection


async def plan_by_index(connection: Connection) -> None:
    """Has the rest of the transaction planned by indexes, in their order; call it inside one.

    The planner's figures are of the last ANALYZE, and a queue may have grown from nothing to a million rows since. Then it
    takes the queue for a few rows, to be read whole and sorted, where the index has the first hundred at hand. A queue is
    never to be read whole, whatever the figures say: that much we know better.
    """
    await connection.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
