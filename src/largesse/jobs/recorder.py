"""Writes outcomes in batches. Outcomes that arrive while a batch is written make up the next one. None is lost while the process runs."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import asyncpg
import structlog

from largesse.db.pool import DATABASE_AWAY
from largesse.jobs import metrics
from largesse.jobs.job_loop import Schedule

Item = TypeVar("Item")
_Kept = tuple[Item, "asyncio.Future[bool]"]

_GATHER_S = 0.02
LAST_TRIES_S = 10.0  # how long an ending process repeats a batch
_MAX_WRITTEN = 500
_AGAIN = Schedule(first_s=0.05, factor=2.0, cap_s=2.0)

# Temporary errors: the database is unavailable or lacks a resource, or there was a deadlock. The outcomes have no fault.
_FOR_NOW: tuple[type[BaseException], ...] = (
    *DATABASE_AWAY,
    asyncpg.InsufficientResourcesError,
    asyncpg.TransactionRollbackError,
)

log = structlog.get_logger(__name__)


class Recorder(Generic[Item]):
    """Passes added items to `write`, in order and in batches, and repeats a batch until it is written.

    `write` may get items that it wrote before, if the answer to its COMMIT was lost. If the database refuses a batch, its items are
    written one by one, and those that are refused are given up. Callers bound the number of items: they start nothing new while
    `is_stuck`. A batch gathers items for a moment, or until `hasten` is called.
    """

    def __init__(self, kind: str, write: Callable[[list[Item]], Awaitable[None]]) -> None:
        # Both are exported from the start, as 0.
        self._count_waiting = metrics.OUTCOMES_WAITING.labels(kind)
        self._count_given_up = metrics.OUTCOMES_GIVEN_UP.labels(kind)
        self.is_stuck = False  # the last try failed, and will be repeated
        self._write = write
        self._waiting: deque[_Kept[Item]] = deque()
        self._writing: asyncio.Task[None] | None = None
        self._tried = asyncio.Event()
        self._awaited = asyncio.Event()
        self._ends: float | None = None  # batches that fail after this time of the event loop's clock are given up

    def add(self, item: Item) -> asyncio.Future[bool]:
        """Adds `item` to the next batch. The future's result is True once it is written, False if it was given up."""
        written: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, written))
        self._count_waiting.inc()
        if self._writing is None:
            self._writing = asyncio.create_task(self._work())
        return written

    def hasten(self) -> None:
        """Writes the waiting items now."""
        self._awaited.set()

    async def settle(self) -> None:
        """Waits until everything is written, or a try has failed."""
        self.hasten()
        while self._writing is not None and not self.is_stuck:
            await self._tried.wait()

    def hurry(self, longest_s: float = LAST_TRIES_S) -> None:
        """Gives up, from that time on, each batch whose first try fails. For a process that ends."""
        if self._ends is None:
            self._ends = asyncio.get_running_loop().time() + longest_s

    async def close(self, longest_s: float = LAST_TRIES_S) -> None:
        """Waits until everything is written, or is given up after that time."""
        self.hurry(longest_s)
        self.hasten()
        if self._writing is not None:
            await self._writing

    async def _work(self) -> None:
        try:
            while self._waiting:
                if len(self._waiting) < _MAX_WRITTEN:
                    await self._gather()
                batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), _MAX_WRITTEN))]
                await self._write_down(batch)
        finally:
            self._writing = None
            self._tell_tried()

    async def _gather(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GATHER_S):
                await self._awaited.wait()
        self._awaited.clear()

    async def _write_down(self, batch: list[_Kept[Item]]) -> None:
        failures = 0
        while True:
            try:
                await self._write([item for item, _ in batch])
            except _FOR_NOW as error:
                failures += 1
                again_s = _AGAIN.delay_s(failures)
                if self._ends is not None and asyncio.get_running_loop().time() + again_s > self._ends:
                    said = type(error).__name__
                    log.error("outbox.not_recorded", items=len(batch), error=said)  # noqa: TRY400 - no bug to be traced
                    return self._finish(batch, written=False)
                log.warning("outbox.written_again", items=len(batch), attempt=failures, error=type(error).__name__)
                self.is_stuck = True
                self._tell_tried()
                await asyncio.sleep(again_s)
            except Exception:
                if len(batch) == 1:
                    log.exception("outbox.not_recorded", items=1)
                    return self._finish(batch, written=False)
                for one in batch:
                    await self._write_down([one])
                return None
            else:
                return self._finish(batch, written=True)

    def _finish(self, batch: list[_Kept[Item]], *, written: bool) -> None:
        self.is_stuck = False
        self._count_waiting.dec(len(batch))
        if not written:
            self._count_given_up.inc(len(batch))
        for _, future in batch:
            if not future.done():
                future.set_result(written)
        self._tell_tried()

    def _tell_tried(self) -> None:
        self._tried.set()
        self._tried = asyncio.Event()
