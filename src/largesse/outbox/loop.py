"""A loop of a worker: repeats one step, at once while it finds work, else when woken or after a while."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import asyncpg
import structlog

from largesse.database import DATABASE_AWAY
from largesse.outbox import metrics
from largesse.outbox.waking import POLL_S, Waker

_PAUSE_AFTER_FAILURE_S = 1.0

log = structlog.get_logger(__name__)


# Away, restarting, or a deadlock and the like: nothing wrong with the step.
_TROUBLE: tuple[type[BaseException], ...] = (*DATABASE_AWAY, asyncpg.PostgresError)


class Loop:
    """`step` returns True when it found work, so that there may be more."""

    def __init__(self, name: str, step: Callable[[], Awaitable[bool]], *, every_s: float = POLL_S) -> None:
        self.name = name
        self.waker = Waker()
        self._step = step
        self._every_s = every_s
        self._stopping = False

    async def run(self) -> None:
        """Runs until `stop`. A step that fails is logged, counted and repeated after a pause."""
        while not self._stopping:
            heard = self.waker.rings
            try:
                if await self._step():
                    continue
            except _TROUBLE as error:
                log.warning("worker.database_trouble", step=self.name, error=type(error).__name__)
                await self._pause()
            except Exception:
                log.exception("worker.step_failed", step=self.name)
                await self._pause()
            if not self._stopping:
                await self.waker.wait(heard, self._every_s)

    def stop(self) -> None:
        """Ends `run` after the step under way."""
        self._stopping = True
        self.waker.wake()

    async def _pause(self) -> None:
        metrics.STEP_FAILURES.labels(self.name).inc()
        await asyncio.sleep(_PAUSE_AFTER_FAILURE_S)
