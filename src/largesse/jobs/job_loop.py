"""Repeats a step of a worker: at once while it finds work, else when woken or after a while.

After failures it waits with exponential backoff, a cap and jitter.
"""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable

import asyncpg
import msgspec
import structlog

from largesse.db.pool import DATABASE_AWAY
from largesse.jobs import metrics
from largesse.jobs.notifier import POLL_S, Waker


class Schedule(msgspec.Struct, frozen=True):
    """Waits `first_s`, then `factor` times as long each time, at most `cap_s`, each ± `jitter` of itself."""

    first_s: float
    factor: float
    cap_s: float
    jitter: float = 0.2

    def delay_s(
        self, failures: int, *, at_least_s: float = 0.0, draw: Callable[[float, float], float] = random.uniform
    ) -> float:
        """Returns the seconds to wait after the `failures`-th failure in a row, at most the cap.

        `at_least_s` is the shortest wait, such as a `Retry-After`. The cap limits it too.
        """
        middle_s = self.cap_s
        if failures < 64:  # a larger exponent would overflow, and the cap is reached long before
            middle_s = min(self.first_s * self.factor ** (failures - 1), self.cap_s)
        drawn_s = draw(middle_s * (1 - self.jitter), min(middle_s * (1 + self.jitter), self.cap_s))
        return max(drawn_s, min(at_least_s, self.cap_s))


# Temporary errors: the database is unavailable or restarts, or there was a deadlock. The step itself has no fault.
_TROUBLE: tuple[type[BaseException], ...] = (*DATABASE_AWAY, asyncpg.PostgresError)
_AFTER_TROUBLE = Schedule(first_s=0.5, factor=2.0, cap_s=2.0)
_AFTER_FAILURE = Schedule(first_s=1.0, factor=2.0, cap_s=30.0)

log = structlog.get_logger(__name__)


class Loop:
    """A loop that only `stop` ends. `step` returns True if it found work, as there may be more.

    A step that fails is counted and repeated after a pause, which grows with each failure in a row. Tests set `pause`.
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
        self._failures = 0  # failures in a row
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
                        # The error may come from cleaning up, for example from a failed rollback.
                        raise asyncio.CancelledError from error
                    # Otherwise something that the step waited for was cancelled, not this loop.
                    await self._rest(error, _AFTER_TROUBLE if isinstance(error, _TROUBLE) else self._pause)

    def stop(self) -> None:
        """Ends `run` after the current step."""
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
        with contextlib.suppress(Exception):  # a failure to log must not end the loop
            said = {"loop": self.name, "error": type(error).__name__, "again_in_s": round(pause_s, 1)}
            if pause is _AFTER_TROUBLE:
                log.warning("worker.database_trouble", **said)
            else:
                log.error("worker.loop_failed", exc_info=error, **said)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._stopped.wait()
