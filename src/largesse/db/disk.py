"""Watches whether the disk of the database is full: by failed writes, and by a check every few seconds.

The check writes a temporary file of the server, on the disk of the tables. It needs no table, no right and no vacuum. On a cluster it
checks the coordinator's disk. Only failed writes show that a node's disk is full.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import asyncpg
import structlog
from prometheus_client import Gauge

from largesse.db.scope import OPERATOR, Scope

LOOK_EVERY_S = 5.0
# More rows than the least memory holds, so that the server writes them to a file: about half a megabyte.
_WRITE_FILE = "SELECT count(*) FROM generate_series(1, 20000)"

_FULL = Gauge("largesse_database_full", "1 while the disk of the database is full, else 0.")
_log = structlog.get_logger(__name__)

Transaction = Callable[[Scope], AbstractAsyncContextManager[asyncpg.Connection]]


class DiskWatch:
    """Remembers whether the last write or check found the disk full."""

    def __init__(self) -> None:
        self.is_full = False

    def note_full(self, error: asyncpg.DiskFullError) -> None:
        """Records that a write failed because the disk is full."""
        if not self.is_full:
            _log.error("database_full", error=" ".join(str(error).split()))
        self._set(is_full=True)

    async def look(self, transaction: Transaction) -> None:
        """Checks in a transaction whether the disk has room. Changes nothing while the database is away."""
        try:
            async with transaction(OPERATOR) as connection:
                await connection.execute("SET LOCAL work_mem = '64kB'")
                await connection.execute(_WRITE_FILE)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError):
            return  # the session has already recorded that the disk is full
        if self.is_full:
            _log.info("database_has_room")
        self._set(is_full=False)

    async def look_for_ever(self, transaction: Transaction) -> None:
        """Repeats the check until cancelled."""
        while True:
            await self.look(transaction)
            await asyncio.sleep(LOOK_EVERY_S)

    def _set(self, *, is_full: bool) -> None:
        self.is_full = is_full
        _FULL.set(is_full)
