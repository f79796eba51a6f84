"""Timeouts: who asks hears something in time, also where nothing answers any more.

A network that swallows what is said can hold up a request in several places, one after another, each with a limit of its own. So
there is one for the whole. A long queue that moves is waited for, as large orders may have to; one that stands still is not.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Protocol

from largesse.base.clock import passed_s

# With what comes before and after, an answer well within 15 seconds.
TIMEOUT_S = 10.0
_LOOK_EVERY_S = 0.5


class TimedOut(TimeoutError):
    """It took too long. What was under way may have happened, or may yet."""


class Waiting(Protocol):
    """What a time-out ends: a task, or a request that waits without one."""

    def cancel(self) -> object:
        """Ends the wait."""


class Timeouts:
    """Gives up waits of `patience_s` in which nothing has moved.

    Those who wait are looked at together now and then: a timer for each would cost every request more.
    """

    def __init__(self, patience_s: float = TIMEOUT_S) -> None:
        self._patience_s = patience_s
        self._loop = asyncio.get_running_loop()
        self._moved_at = 0.0
        self._since: dict[Waiting, float] = {}
        self._given_up: set[Waiting] = set()
        self._looking = asyncio.create_task(self._look())

    def wait(self) -> Wait:
        """Returns a wait, for one `with` block after another: each raises TimedOut when all have lasted too long together."""
        return Wait(self._loop, self._since, self._given_up)

    def watch(self, waiting: Waiting, since_s: float) -> None:
        """Cancels what has waited too long since then, unless it ends before."""
        self._since[waiting] = since_s

    def ended(self, waiting: Waiting) -> None:
        """Watches it no longer."""
        self._since.pop(waiting, None)
        self._given_up.discard(waiting)

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        """Suspends the time-out for work of the caller's own, however long it takes."""
        task = asyncio.current_task(self._loop)
        assert task is not None
        began = passed_s()
        since = self._since.pop(task, None)
        try:
            yield
        finally:
            if since is not None:
                self._since[task] = since + passed_s() - began

    def moved(self) -> None:
        """Notes that something succeeded that others may be waiting behind."""
        self._moved_at = passed_s()

    async def close(self) -> None:
        """Ends the looking; who still waits then waits for as long as it takes."""
        self._looking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._looking

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(min(_LOOK_EVERY_S, self._patience_s))
            late = passed_s() - self._patience_s
            if self._moved_at > late:
                continue
            for waiting, since in list(self._since.items()):
                if since <= late and waiting not in self._given_up:
                    self._given_up.add(waiting)
                    waiting.cancel()


class Wait:
    """One wait, by the task that is in the `with` block."""

    __slots__ = ("_given_up", "_loop", "_since", "_spent_s", "_task")

    def __init__(self, loop: asyncio.AbstractEventLoop, since: dict[Waiting, float], given_up: set[Waiting]) -> None:
        self._loop = loop  # asking for the one that runs is a system call
        self._since = since
        self._given_up = given_up
        self._spent_s = 0.0
        self._task: asyncio.Task[Any] | None = None

    def __enter__(self) -> None:
        task = self._task
        if task is None:
            self._task = task = asyncio.current_task(self._loop)
            assert task is not None
        self._since[task] = passed_s() - self._spent_s

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        task = self._task
        assert task is not None
        self._spent_s = passed_s() - self._since.pop(task)
        if task in self._given_up:
            self._given_up.remove(task)
            if task.uncancel() == 0 and kind is asyncio.CancelledError:
                raise TimedOut from error
