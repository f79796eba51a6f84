"""Mail of production that no mail server can take yet: held where none is set, and let go where one is."""

from __future__ import annotations

from largesse.database.pool import Connection

REASON = "no mail server is set"

# Held mail goes out in bites, each when the last has left: new mail passes between.
_BITE = 1_000


async def release(connection: Connection) -> int:
    """Makes held messages due again, the oldest first, up to a bite waiting in all; returns how many.

    Any number of workers may do so at once: each takes others. Their three days begin anew.
    """
    status = await connection.execute(
        """
        WITH waiting AS (
            SELECT count(*) FROM (
                SELECT FROM messages WHERE state = 'pending' AND rank_at <= (SELECT clock_now()) LIMIT $1) AS due)
        UPDATE messages SET state = 'pending', reason = NULL, trying_since = (SELECT clock_now())
        WHERE (customer_id, id) IN (
            SELECT customer_id, id FROM messages WHERE state = 'held'
            ORDER BY rank_at LIMIT $1 - (SELECT count FROM waiting) FOR UPDATE SKIP LOCKED)
        """,
        _BITE,
    )
    return int(status.split()[-1])
