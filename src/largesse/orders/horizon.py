"""Up to which id no order can appear any more, so that whoever reads on from the last id they know misses none.

Ids are drawn inside transactions, which commit in another order: while 7 is there to be read, 5 may still be on its way.
Whoever draws ids first marks, until its transaction ends, how far the sequence had come: what it draws is above its mark. A
reader asks how far the sequence has come, then for the marks, and reads no further than the lowest of all these: every order
up to there is committed or will never be. A mark is an advisory lock, shared, which nobody ever waits for and which ends
with its transaction, however that ends.
"""

from __future__ import annotations

from largesse.base.errors import Unavailable
from largesse.database.pool import Database
from largesse.database.scope import LOOKUP

_MARKS = 0x6F726465  # "orde"; the class of these advisory locks, the object is the mark


def drawn_ids(count: str) -> str:
    """SQL for an array of new ids of orders, as many as the placeholder `count` says, above a mark of this transaction's.

    The join is there so that the mark is set before the first id is drawn.
    """
    return f"""
        ARRAY(
            WITH mark AS MATERIALIZED (
                SELECT pg_advisory_xact_lock_shared({_MARKS}, last_value::int) FROM orders_id_seq)
            SELECT nextval('orders_id_seq')::int FROM mark CROSS JOIN generate_series(1, {count}))
    """  # noqa: S608 - a placeholder


async def read_horizon(database: Database) -> int:
    """The id up to which a statement that begins now sees every order there will ever be.

    The marks are asked for once the sequence has been read: they are compared with it. Raises Unavailable on a standby:
    it has not the marks of its primary.
    """
    row = await database.fetchrow(
        LOOKUP,
        f"""
        SELECT pg_is_in_recovery() AS is_standby, least(last_value, (
            SELECT min(objid::bigint) FROM pg_locks
            WHERE locktype = 'advisory' AND classid = {_MARKS} AND objsubid = 2 AND objid::bigint <= last_value
              AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))) AS horizon
        FROM orders_id_seq
        """,  # noqa: S608 - a constant
    )
    assert row is not None
    if row["is_standby"]:
        raise Unavailable(
            "A standby cannot tell which orders are still on their way: ask for `after` at the primary."
        )
    horizon: int = row["horizon"]
    return horizon
