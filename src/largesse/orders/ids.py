"""Up to which id no order can appear any more, so that whoever reads on from the last id they know misses none.

Ids are drawn inside transactions, which commit in another order: while 7 is there to be read, 5 may still be on its way.
Whoever draws ids first marks, until its transaction ends, how far the sequence had come: what it draws is above its mark. A
reader asks how far the sequence has come, then for the marks, and reads no further than the lowest of all these: every order
up to there is committed or will never be. A mark is an advisory lock, shared, which nobody ever waits for and which ends
with its transaction, however that ends.

Ids of orders: an int32 for callers, so they come to an end, which operators are told of in good time.

The public key of an order: opaque, and near the ids of the same time.

The first four characters are the hour, so that new references land on the same pages of their index however
many orders there are; the other sixteen are 80 random bits, which is what keeps them from being guessed.
"""

from __future__ import annotations

import os
import re
from datetime import datetime
from functools import lru_cache

import structlog
from prometheus_client import Gauge

from largesse.base import clock
from largesse.base.errors import Unavailable
from largesse.db.pool import Database
from largesse.db.scope import LOOKUP

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


async def read_watermark(database: Database) -> int:
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
        raise Unavailable("A standby cannot tell which orders are still on their way: ask for `after` at the primary.")
    horizon: int = row["horizon"]
    return horizon


LAST_ID = 2**31 - 1
# When this few are left, it is said in the log, in metrics and by GET /health: at a million orders a day, more than half a year.
FEW_IDS = LAST_ID // 10

_WARN_EVERY_S = 3600.0
_LEFT = Gauge("largesse_order_ids_left", "Ids of orders that are left in the installation.")
_LEFT.set(float("nan"))  # a process that has not asked does not know

_log = structlog.get_logger(__name__)


async def read_ids_left(database: Database) -> int:
    """How many more orders can be placed in the installation."""
    return LAST_ID - int(await database.fetchval(LOOKUP, "SELECT last_value FROM orders_id_seq"))


class IdWatch:
    """Keeps the metric of the ids that are left, and warns when they are few: at most once an hour."""

    def __init__(self) -> None:
        self._warned_at: float | None = None

    def note(self, left: int) -> None:
        """Notes that so many are left."""
        _LEFT.set(left)
        if left >= FEW_IDS:
            return
        now = clock.passed_s()
        if self._warned_at is None or now - self._warned_at >= _WARN_EVERY_S:
            self._warned_at = now
            _log.warning("order_ids_few", left=left)


_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]  # by ten bits, the text of two characters
_RANDOM_BYTES = 10
_SHIFTS = range(70, -10, -10)
_WELL_FORMED = re.compile(rf"[{_ALPHABET}]{{20}}")


def new_reference(now: datetime) -> str:
    """A new reference of 20 Crockford base32 characters."""
    random = int.from_bytes(os.urandom(_RANDOM_BYTES), "big")
    return _hour_text(int(now.timestamp()) // 3600) + "".join([_PAIRS[random >> shift & 1023] for shift in _SHIFTS])


@lru_cache(maxsize=2)
def _hour_text(hour: int) -> str:
    """The hour as four characters, which come round after some 120 years."""
    return "".join(_ALPHABET[hour >> shift & 31] for shift in (15, 10, 5, 0))


def is_reference(text: str) -> bool:
    """Whether `text` could be a reference at all."""
    return _WELL_FORMED.fullmatch(text) is not None
