"""Ids of orders: an int32 for callers, so they come to an end, which operators are told of in good time."""

from __future__ import annotations

import structlog
from prometheus_client import Gauge

from largesse.base import clock
from largesse.database.pool import Database
from largesse.database.scope import LOOKUP

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
