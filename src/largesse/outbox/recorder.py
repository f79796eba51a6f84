"""Outcomes written in batches: what gathers in a short while is one transaction."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import asyncpg
import structlog

from largesse.database import DATABASE_AWAY

Item = TypeVar("Item")

# Nobody waits for an outcome to be written, and a crash repeats no more than what was on its way in this time.
GATHER_S = 0.02
_MAX_WRITTEN = 500

# The database is away, or this batch met a deadlock or the like.
_NOT_WRITTEN: tuple[type[BaseException], ...] = (*DATABASE_AWAY, asyncpg.PostgresError)

# Certainly rolled back, and likely to pass when tried again at once; given up, its leases would hold work up till they end.
_REFUSED = (asyncpg.TransactionRollbackError, asyncpg.LockNotAvailableError)

log = structlog.get_logger(__name__)


class Recorder(Generic[Item]):
    """Hands what was added to `write`, in order and in batches; a batch that cannot be written is given up.

    One that met a deadlock or the like is written once more first.

    Whoever added learns by the future. Given-up outcomes are no loss: their leases run out, and the work is done again.
    """

    def __init__(self, write: Callable[[list[Item]], Awaitable[None]]) -> None:
        self._write = write
        self._waiting: deque[tuple[Item, asyncio.Future[bool]]] = deque()
        self._writing: asyncio.Task[None] | None = None

    def add(self, item: Item) -> asyncio.Future[bool]:
        """Has `item` written soon; the future tells whether it was."""
        written: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, written))
        if self._writing is None:
            self._writing = asyncio.create_task(self._work())
        return written

    async def close(self) -> None:
        """Waits until everything added is written or given up."""
        if self._writing is not None:
            await self._writing

    async def _work(self) -> None:
        while self._waiting:
            if len(self._waiting) < _MAX_WRITTEN:
                await asyncio.sleep(GATHER_S)
            batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), _MAX_WRITTEN))]
            done = await self._try([item for item, _ in batch])
            for _, written in batch:
                if not written.done():
                    written.set_result(done)
        self._writing = None

    async def _try(self, items: list[Item]) -> bool:
        try:
            try:
                await self._write(items)
            except _REFUSED as error:
                log.warning("outbox.written_again", items=len(items), error=type(error).__name__)
                await self._write(items)
        except _NOT_WRITTEN as error:
            log.warning("outbox.not_recorded", items=len(items), error=type(error).__name__)
            return False
        except Exception:
            log.exception("outbox.not_recorded", items=len(items))
            return False
        return True
