"""Ids of orders, the watermark of listings, and references.

Ids are drawn inside transactions, which commit in another order: id 7 can be visible while 5 is not committed yet. So before
a transaction draws ids, it marks how far the sequence has come: its ids are above its mark. A reader reads the sequence, then the marks,
and stops at the lowest of these. Each order up to there is committed, or never will be. A mark is a shared advisory lock: nobody waits
for it, and it ends with its transaction.

Ids are int32 for callers, so they can run out. Operators are warned in good time.

A reference is the public key of an order. Its first four characters are the hour, so that new references land on the same pages of their
index. The other sixteen are 80 random bits, so that references cannot be guessed.
"""

import os
import re
from datetime import datetime
from functools import lru_cache

import structlog
from prometheus_client import Gauge

from largesse.base import clock
from largesse.base.errors import Unavailable
from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Database
from largesse.db.scope import LOOKUP

_MARKS = 0x6F726465  # "orde" in ASCII: the class of these advisory locks. The object is the mark.
_CAPACITY = """
    SELECT last_value, NOT (pg_is_in_recovery() OR current_setting('default_transaction_read_only')::boolean) AS takes_writes
    FROM orders_id_seq
"""
_WATERMARK = compose(
    """
    SELECT pg_is_in_recovery() AS is_standby, least(last_value, (
        SELECT min(objid::bigint) FROM pg_locks
        WHERE locktype = 'advisory' AND classid = {marks} AND objsubid = 2 AND objid::bigint <= last_value
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))) AS watermark
    FROM orders_id_seq
    """,
    marks=_MARKS,
)


def drawn_ids(count: Fragment) -> Fragment:
    """Returns SQL for an array of new order ids, as many as `count` says, above a mark of this transaction.

    The join makes sure that the mark is set before the first id is drawn.
    """
    return compose(
        """
        ARRAY(
            WITH mark AS MATERIALIZED (
                SELECT pg_advisory_xact_lock_shared({marks}, last_value::int) FROM orders_id_seq)
            SELECT nextval('orders_id_seq')::int FROM mark CROSS JOIN generate_series(1, {count}))
    """,
        marks=_MARKS,
        count=count,
    )


async def read_watermark(database: Database) -> int:
    """Returns the watermark: a statement that begins now sees every order that will ever have an id up to it.

    The marks are read after the sequence, as they are compared with it. Raises Unavailable on a standby, which lacks the marks of its
    primary.
    """
    row = await database.fetchrow(LOOKUP, _WATERMARK)
    assert row is not None
    if row["is_standby"]:
        raise Unavailable("A standby cannot tell which orders are still on their way: ask for `after` at the primary.")
    watermark: int = row["watermark"]
    return watermark


LAST_ID = 2**31 - 1
# With fewer ids left, the log, the metrics and GET /health warn. At a million orders a day, they last for more than half a year.
FEW_IDS = LAST_ID // 10

_WARN_EVERY_S = 3600.0
_LEFT = Gauge("largesse_order_ids_left", "Ids of orders that are left in the installation.")
_LEFT.set(float("nan"))  # not known until the process has read it

_log = structlog.get_logger(__name__)


async def read_capacity(database: Database) -> tuple[int, bool]:
    """Returns how many ids of orders are left, and whether the database accepts writes: a standby or a read-only database does not."""
    row = await database.fetchrow(LOOKUP, _CAPACITY)
    assert row is not None
    return LAST_ID - row["last_value"], row["takes_writes"]


class IdWatch:
    """Updates the metric of the ids left, and warns at most once an hour when they are few."""

    def __init__(self) -> None:
        self._warned_at: float | None = None

    def note(self, left: int) -> None:
        """Sets the metric to the number of ids left, and warns if they are few."""
        _LEFT.set(left)
        if left >= FEW_IDS:
            return
        now = clock.passed_s()
        if self._warned_at is None or now - self._warned_at >= _WARN_EVERY_S:
            self._warned_at = now
            _log.warning("order_ids_few", left=left)


_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
# The two characters for each value of ten bits.
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]
_RANDOM_BYTES = 10
_WELL_FORMED = re.compile(rf"[{_ALPHABET}]{{20}}")
_END = re.compile(rf"[{_ALPHABET}]{{6}}")


def new_reference(now: datetime) -> str:
    """Returns a new reference of 20 Crockford base32 characters."""
    random = int.from_bytes(os.urandom(_RANDOM_BYTES), "big")
    two = _PAIRS
    a, b, c, d = random >> 70, random >> 60 & 1023, random >> 50 & 1023, random >> 40 & 1023
    e, f, g, h = random >> 30 & 1023, random >> 20 & 1023, random >> 10 & 1023, random & 1023
    hour = _hour_text(int(now.timestamp()) // 3600)
    return f"{hour}{two[a]}{two[b]}{two[c]}{two[d]}{two[e]}{two[f]}{two[g]}{two[h]}"


@lru_cache(maxsize=2)
def _hour_text(hour: int) -> str:
    """Returns the hour as four characters. They repeat after some 120 years."""
    return "".join(_ALPHABET[hour >> shift & 31] for shift in (15, 10, 5, 0))


def is_reference(text: str) -> bool:
    """Returns whether `text` has the form of a reference."""
    return _WELL_FORMED.fullmatch(text) is not None


def is_end_of_reference(text: str) -> bool:
    """Returns whether `text` has the form of the last six characters of a reference, by which pages name orders."""
    return _END.fullmatch(text) is not None
