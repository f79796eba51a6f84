"""Runs the application under uvicorn: in one process or several, drained on SIGTERM."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from multiprocessing.connection import Connection
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

import structlog
import uvicorn

from largesse.base.errors import OperatorError
from largesse.base.metrics_server import LOOPBACK, serve_metrics
from largesse.base.settings import Settings
from largesse.connections.listening import Listening, accept_waiting, bound_socket, leave_new_to_others, require_free
from largesse.connections.manager import MAX_CONNECTIONS, ConnectionManager, connection_limit
from largesse.connections.processes import COULD_NOT_START, run_processes
from largesse.db.pool import DATABASE_FAILED, in_one_line
from largesse.main import build_app, create_app
from largesse.web.api.application import Application

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
        bound = opened or bound_socket(host, port)
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
        "http": ConnectionManager(limit),
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
