"""When to try again: exponential backoff with a cap and jitter.

A loop of a worker: repeats one step, at once while it finds work, else when woken or after a while.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import asyncpg
import structlog

from largesse.db.pool import DATABASE_AWAY
from largesse.jobs import metrics
from largesse.jobs.notifier import POLL_S, Waker


@dataclass(frozen=True, slots=True)
class Schedule:
    """Waits `first_s`, then `factor` times as long each time, at most `cap_s`, each ± `jitter` of itself."""

    first_s: float
    factor: float
    cap_s: float
    jitter: float = 0.2

    def delay_s(
        self, failures: int, *, at_least_s: float = 0.0, draw: Callable[[float, float], float] = random.uniform
    ) -> float:
        """Returns the seconds to wait after the `failures`-th failure in a row, never more than the cap.

        `at_least_s` is what the other side asked for (Retry-After), honoured up to the cap.
        """
        middle_s = self.cap_s
        if failures < 64:  # a longer row would overflow, and is at the cap by far
            middle_s = min(self.first_s * self.factor ** (failures - 1), self.cap_s)
        drawn_s = draw(middle_s * (1 - self.jitter), min(middle_s * (1 + self.jitter), self.cap_s))
        return max(drawn_s, min(at_least_s, self.cap_s))


# Away, restarting, or a deadlock and the like: nothing wrong with the step, and soon over.
_TROUBLE: tuple[type[BaseException], ...] = (*DATABASE_AWAY, asyncpg.PostgresError)
_AFTER_TROUBLE = Schedule(first_s=0.5, factor=2.0, cap_s=2.0)
_AFTER_FAILURE = Schedule(first_s=1.0, factor=2.0, cap_s=30.0)

log = structlog.get_logger(__name__)


class Loop:
    """`step` returns True when it found work, so that there may be more.

    Nothing but `stop` ends the loop: one that fails, wherever, is counted and started again after a pause, which grows
    while it goes on failing. `pause` replaces how long it is after a failure, for tests.
    """

    def __init__(
        self,
        name: str,
        step: Callable[[], Awaitable[bool]],
        *,
        every_s: float = POLL_S,
        pause: Schedule = _AFTER_FAILURE,
    ) -> None:
        self.name = name
        self.waker = Waker()
        self._step = step
        self._every_s = every_s
        self._pause = pause
        self._failures = 0  # in a row
        self._stopped = asyncio.Event()
        metrics.LOOP_RESTARTS.labels(name)  # exported from the start, as 0

    async def run(self) -> None:
        """Runs until `stop`, or until its task is cancelled."""
        with metrics.LOOPS.track_inprogress():
            while not self._stopped.is_set():
                try:
                    await self._repeat()
                except (Exception, asyncio.CancelledError) as error:
                    task = asyncio.current_task()
                    if task is not None and task.cancelling():
                        # The error may be of the cleaning up, as when the rollback fails.
                        raise asyncio.CancelledError from error
                    # A CancelledError here is of something that the step waited for, not of this loop.
                    await self._rest(error, _AFTER_TROUBLE if isinstance(error, _TROUBLE) else self._pause)

    def stop(self) -> None:
        """Ends `run` after the step under way."""
        self._stopped.set()
        self.waker.wake()

    async def _repeat(self) -> None:
        while not self._stopped.is_set():
            heard = self.waker.calls
            found_work = await self._step()
            self._failures = 0
            if not found_work and not self._stopped.is_set():
                await self.waker.wait(heard, self._every_s)

    async def _rest(self, error: BaseException, pause: Schedule) -> None:
        self._failures += 1
        pause_s = pause.delay_s(self._failures)
        metrics.LOOP_RESTARTS.labels(self.name).inc()
        with contextlib.suppress(Exception):  # what cannot be said must not end what can be done
            said = {"loop": self.name, "error": type(error).__name__, "again_in_s": round(pause_s, 1)}
            if pause is _AFTER_TROUBLE:
                log.warning("worker.database_trouble", **said)
            else:
                log.error("worker.loop_failed", exc_info=error, **said)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._stopped.wait()
