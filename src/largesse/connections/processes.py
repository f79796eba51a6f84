"""Runs several serving processes of one service: starts all, replaces those that end, and ends all."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import FrameType
from typing import Any, NamedTuple

import structlog

from largesse.base.errors import OperatorError

COULD_NOT_START = 3  # the exit code of a process that would fail the same way again
# The pause before a process that ended is replaced.
_PAUSE_S = 1.0

_spawn = multiprocessing.get_context("spawn")
_log = structlog.get_logger(__name__)


class _Child(NamedTuple):
    process: SpawnProcess
    started: Connection  # the process sends True here once it serves


def run_processes(
    count: int,
    target: Callable[..., None],
    arguments: Iterable[Any],
    *,
    on_start: Callable[[], None],
    on_end: Callable[[], None],
) -> None:
    """Runs `target(*arguments, started)` in `count` processes until SIGTERM or SIGINT, and waits until they have ended.

    Each calls `started.send(True)` once it serves. Calls `on_start` when all serve, and `on_end` before it ends them. Replaces a process that has
    ended, but never one that is slow, as starting takes long on a busy machine. Raises OperatorError if one ends with COULD_NOT_START.
    """
    ending, wakes = os.pipe()
    os.set_blocking(wakes, False)

    def end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - as signal.signal calls it
        os.write(wakes, b".")

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)

    def start() -> _Child:
        reader, writer = _spawn.Pipe(duplex=False)
        process = _spawn.Process(target=target, args=(*arguments, writer))
        # Inherited: when the terminal closes, this process ends the others, also one that has only begun to start.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        writer.close()
        return _Child(process, reader)

    children: list[_Child] = []
    try:
        children.extend(start() for _ in range(count))
        _watch(children, start, on_start, ending)
    finally:
        on_end()
        for child in children:
            child.process.terminate()
        for child in children:
            child.process.join()
    if any(child.process.exitcode == COULD_NOT_START for child in children):
        raise OperatorError("a serving process could not start, so all were ended; the log says why (not_started)")


def _watch(children: list[_Child], start: Callable[[], _Child], on_start: Callable[[], None], ending: int) -> None:
    """Replaces children that end, until `ending` can be read or a child could not start."""
    starting = set(range(len(children)))
    while True:
        sentinels = [child.process.sentinel for child in children]
        ready = wait([ending, *sentinels, *(children[at].started for at in starting)])
        if ending in ready:
            return
        for at in [at for at in starting if children[at].started in ready and not _ended(children[at])]:
            starting.discard(at)
            if not starting:
                on_start()
        for at, child in enumerate(children):
            if child.process.sentinel not in ready:
                continue
            child.process.join()
            child.started.close()
            if child.process.exitcode == COULD_NOT_START:
                return
            _log.error("serving_process_ended", exit_code=child.process.exitcode)
            if wait([ending], _PAUSE_S):
                return
            children[at] = start()


def _ended(child: _Child) -> bool:
    """Returns whether `started` can be read only because the child has closed it."""
    try:
        child.started.recv()
    except EOFError:
        return True
    return False
