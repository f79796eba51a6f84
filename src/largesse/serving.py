"""Runs the application under uvicorn: in one process or several, drained on SIGTERM. Replaces processes that end."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

import structlog
import uvicorn

from largesse.base.errors import OperatorError
from largesse.base.metrics_server import LOOPBACK, serve_metrics
from largesse.base.settings import Settings
from largesse.connections.listening import Listening, accept_waiting, leave_new_to_others, require_free, reserved_socket
from largesse.connections.manager import MAX_CONNECTIONS, ConnectionManager, connection_limit
from largesse.connections.quick import QuickConnections
from largesse.db.pool import DATABASE_FAILED, in_one_line
from largesse.main import build_app, create_app
from largesse.web.api.application import Application

COULD_NOT_START = 3  # the exit code of a process that would fail the same way again
# The pause before a process that ended is replaced.
_PAUSE_S = 1.0

_spawn = multiprocessing.get_context("spawn")


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


if TYPE_CHECKING:
    from starlette.routing import BaseRoute

_DRAIN_S = 30
_NOT_OPENED: tuple[type[BaseException], ...] = (OperatorError, *DATABASE_FAILED)

_log = structlog.get_logger(__name__)


class DemoExtras(NamedTuple):
    """The additional parts that the demo serves: captured mail of production, `pages`, and staging on a socket of its own."""

    pages: Sequence[BaseRoute]
    test_mode: tuple[Settings, socket.socket] | None


def serve(
    settings: Settings,
    *,
    listening: Listening,
    processes: int = 1,
    with_worker: bool = False,
    metrics_port: int | None = None,
    metrics_host: str = LOOPBACK,
    demo: DemoExtras | None = None,
    on_start: Callable[[], None] = lambda: None,
) -> None:
    """Serves until SIGTERM or SIGINT, then finishes the requests under way.

    After that, new connections to a socket of systemd wait for the next process. Those to a shared address go to the other processes.
    Each of several processes makes its own application from the environment. With `metrics_port`, each process serves its
    metrics: the first on that port, the others on the ports that follow. A single process calls `on_start` once it serves.

    Raises OperatorError if a port cannot be listened on, the services cannot be opened, or one of several processes cannot start.
    """
    host, port, opened, shared = listening
    limit = connection_limit(settings.max_connections, other_files=_files_of_worker() if with_worker else 0)
    if processes > 1:
        os.environ["LARGESSE_SERVE_HOST"] = host
        os.environ["LARGESSE_SERVE_WITH_WORKER"] = "1" if with_worker else ""
        ports = range(metrics_port, metrics_port + processes) if metrics_port is not None else ()
        for one in ports:
            require_free(metrics_host, one)
        os.environ["LARGESSE_SERVE_METRICS_HOST"] = metrics_host
        os.environ["LARGESSE_SERVE_METRICS_PORTS"] = ",".join(map(str, ports))
        bound = opened or reserved_socket(host, port)
        run_processes(
            processes,
            _serve_in_child,
            (host, port, limit, bound, shared),
            on_start=tell_ready,
            on_end=lambda: leave_new_to_others(bound) if shared else None,
        )
        return
    if opened is None:
        require_free(host, port)
    if metrics_port is not None:
        serve_metrics([metrics_port], metrics_host)
    pages = demo.pages if demo else ()
    app = build_app(settings, with_worker=with_worker, mailbox=demo is not None, pages=pages, listens_on=host)

    def started() -> None:
        tell_ready()
        on_start()

    options = server_options(host, port, limit)
    beside = _test_server(host, demo) if demo else None
    _run(_Server(app, options, started, beside, opened if shared else None), opened)


def _serve_in_child(host: str, port: int, limit: int, opened: socket.socket, shared: bool, started: Connection) -> None:
    """Serves in one of several processes. Sends True to `started` once it does."""
    try:
        app, options = create_app(), server_options(host, port, limit)
        server = _Server(app, options, lambda: started.send(True), shared=opened if shared else None)
        _run(server, opened)
    except _NOT_OPENED as error:  # the database became unreachable after the command's check, for example
        _log.error("not_started", reason=in_one_line(error))
        raise SystemExit(COULD_NOT_START) from None


def _run(server: _Server, opened: socket.socket | None) -> None:
    """Runs a server until a signal ends it. Exits if it could not start. Raises OperatorError if its services cannot be opened."""
    server.run([opened] if opened is not None else None)
    if not (server.started or server.was_ended):
        raise SystemExit(COULD_NOT_START)


def _files_of_worker() -> int:
    from largesse.worker import OPEN_FILES

    return OPEN_FILES


def _test_server(host: str, demo: DemoExtras) -> _Server | None:
    if demo.test_mode is None:
        return None
    settings, opened = demo.test_mode
    app = build_app(settings, listens_on=host)
    return _BesideServer(app, server_options(host, opened.getsockname()[1]), opened)


def server_options(host: str, port: int, limit: int = MAX_CONNECTIONS) -> dict[str, Any]:
    """Returns the options of uvicorn. `limit` bounds the connections of a process."""
    return {
        "host": host,
        "port": port,
        "loop": "uvloop",
        "http": QuickConnections(ConnectionManager(limit)),
        "ws": "none",
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "timeout_graceful_shutdown": _DRAIN_S,
        "backlog": 2048,
    }


class _Server(uvicorn.Server):
    """Serves `app`, and runs a second server `beside` if there is one. Opens the services of both first, and calls `on_start` once both serve.

    `shared` is its listening socket if other processes listen on the same address.
    """

    def __init__(
        self,
        app: Application,
        options: Mapping[str, Any],
        on_start: Callable[[], None] | None = None,
        beside: _Server | None = None,
        shared: socket.socket | None = None,
    ) -> None:
        super().__init__(uvicorn.Config(app, **options))
        self.app = app
        self._on_start = on_start
        self._beside = beside
        self._shared = shared
        self._serving: asyncio.Task[None] | None = None
        self._opening: asyncio.Task[None] | None = None
        self.was_ended = False
        self.has_begun = asyncio.Event()

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        # uvicorn handles these signals while it runs, and raises them again at the end. Then they need no handling.
        for ending in (signal.SIGTERM, signal.SIGINT):
            signal.signal(ending, self.end)
        self._opening = asyncio.current_task()
        try:
            async with self.app.opened(), self._beside.app.opened() if self._beside else nullcontext():
                self._opening = None
                await super().serve(sockets)
        except asyncio.CancelledError:
            if not self.was_ended:
                raise

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        for opened in sockets or []:  # so that the next process can bind while connections of this one still end
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        await super().startup(sockets)
        self.has_begun.set()
        if self.started and self._beside is not None:
            self._serving = asyncio.create_task(self._beside.serve())
            await self._beside.has_begun.wait()
        if self.started and self._on_start is not None:
            self._on_start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._shared is not None:
            if multiprocessing.parent_process() is None:  # a parent does this once for all its processes
                leave_new_to_others(self._shared)
            await accept_waiting(self._shared)
        if self._beside is not None and self._serving is not None:
            self._beside.should_exit = True
            await self._serving
        await super().shutdown(sockets)

    def end(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - as signal.signal calls it
        """Finishes the requests under way and ends, or cancels the opening of the services. Handles signals until uvicorn does."""
        self.should_exit = self.was_ended = True
        if self._opening is not None:
            self._opening.cancel()


class _BesideServer(_Server):
    """A server on a socket that is already bound. The server that starts and ends it handles signals and opens its services."""

    def __init__(self, app: Application, options: Mapping[str, Any], opened: socket.socket) -> None:
        super().__init__(app, options)
        self._opened = opened

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        await uvicorn.Server.serve(self, sockets or [self._opened])

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def tell_ready() -> None:
    """Reports to systemd, if it asks (NOTIFY_SOCKET), that the service answers: sd_notify(3)."""
    address = os.environ.pop("NOTIFY_SOCKET", "")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notifying:
        try:
            notifying.sendto(b"READY=1", f"\0{address[1:]}" if address.startswith("@") else address)
        except OSError as error:
            _log.warning("readiness_not_reported", reason=error.strerror)
