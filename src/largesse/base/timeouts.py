"""Time-outs of whole requests: a caller gets an answer in time, even if the database no longer answers.

A network that drops packets can delay a request in several places, one after another, each with its own time-out. So the whole request
has one too. Waiting in a queue that moves does not count, as large orders may wait long. Waiting in a queue that does not move counts.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Protocol

from largesse.base.clock import passed_s

# With the work before and after, a caller gets an answer within 15 seconds.
TIMEOUT_S = 10.0
_LOOK_EVERY_S = 0.5


class TimedOut(TimeoutError):
    """The request took too long. Its effect may have happened, or may still happen."""


class Waiting(Protocol):
    """A task, or a request that waits without one."""

    def cancel(self) -> object:
        """Ends the wait."""


class Timeouts:
    """Ends waits of `patience_s` in which nothing has moved.

    All waits are checked together, every half second: a timer for each would make every request slower.
    """

    def __init__(self, patience_s: float = TIMEOUT_S) -> None:
        self._patience_s = patience_s
        self._loop = asyncio.get_running_loop()
        self._moved_at = 0.0
        self._since: dict[Waiting, float] = {}
        self._given_up: set[Waiting] = set()
        self._looking = asyncio.create_task(self._look())

    def wait(self) -> Wait:
        """Returns a wait for `with` blocks, one after another. A block raises TimedOut once all of them together have lasted too long."""
        return Wait(self._loop, self._since, self._given_up)

    def watch(self, waiting: Waiting, since_s: float) -> None:
        """Cancels `waiting` if it waits too long, counted from `since_s`."""
        self._since[waiting] = since_s

    def ended(self, waiting: Waiting) -> None:
        """Stops watching `waiting`."""
        self._since.pop(waiting, None)
        self._given_up.discard(waiting)

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        """Suspends the time-out during long work that the caller asked for."""
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
        """Records that an operation succeeded: the queue behind it moves."""
        self._moved_at = passed_s()

    async def close(self) -> None:
        """Stops the checks. Waits that are left have no time-out."""
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
    """A wait by the task that runs the `with` block."""

    __slots__ = ("_given_up", "_loop", "_since", "_spent_s", "_task")

    def __init__(self, loop: asyncio.AbstractEventLoop, since: dict[Waiting, float], given_up: set[Waiting]) -> None:
        self._loop = loop  # `get_running_loop` is a system call
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
