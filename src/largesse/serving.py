"""Runs the application under uvicorn: in one process or several, drained on SIGTERM."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, MutableMapping
from types import FrameType
from typing import Any, NamedTuple

import uvicorn
from uvicorn.supervisors import Multiprocess

from largesse.base.errors import OperatorError
from largesse.base.metrics_server import serve_metrics
from largesse.base.settings import Settings
from largesse.connections.manager import MAX_CONNECTIONS, ConnectionManager, connection_limit
from largesse.main import build_app
from largesse.worker import OPEN_FILES

_DRAIN_S = 30
_FIRST_FD = 3  # SD_LISTEN_FDS_START
_COULD_NOT_START = 3  # uvicorn's exit code


class Listening(NamedTuple):
    """Where a service listens. `inherited` is the listening socket if systemd opened it."""

    host: str
    port: int
    inherited: socket.socket | None = None


def serve(
    settings: Settings,
    *,
    listening: Listening,
    processes: int = 1,
    with_worker: bool = False,
    metrics_port: int | None = None,
    mailbox: bool = False,
    on_start: Callable[[], None] | None = None,
) -> None:
    """Serves until SIGTERM or SIGINT, then finishes the requests under way.

    Later connections to an inherited socket wait for the next process. Each of several processes makes its own application from the
    environment (`largesse.main:create_app`). With `metrics_port` each process serves its metrics: the first on that port, the others on
    the ports that follow. Raises OperatorError if a port cannot be listened on, or one of several processes cannot start.
    """
    host, port, inherited = listening
    if inherited is None:
        require_free(host, port)
    limit = connection_limit(settings.max_connections, other_files=OPEN_FILES if with_worker else 0)
    options = server_options(host, port, limit)
    if processes > 1:
        os.environ["LARGESSE_SERVE_HOST"] = host
        os.environ["LARGESSE_SERVE_WITH_WORKER"] = "1" if with_worker else ""
        ports = range(metrics_port, metrics_port + processes) if metrics_port is not None else ()
        for one in ports:
            require_free("127.0.0.1", one)
        os.environ["LARGESSE_SERVE_METRICS_PORTS"] = ",".join(map(str, ports))
        _serve_in_processes(processes, options, inherited)
        return
    if metrics_port is not None:
        serve_metrics([metrics_port])
    app = build_app(settings, with_worker=with_worker, mailbox=mailbox, listens_on=host)
    server = _Server(uvicorn.Config(app, **options), on_start)
    # uvicorn handles these signals while it runs, and raises them again at the end: here they do nothing more.
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, server.end)
    server.run([inherited] if inherited is not None else None)
    if not server.started:
        raise SystemExit(3)


def _serve_in_processes(processes: int, options: dict[str, Any], inherited: socket.socket | None) -> None:
    """Serves in several processes until a signal ends them. Raises OperatorError if one of them could not start."""
    config = uvicorn.Config("largesse.main:create_app", factory=True, workers=processes, **options)
    parent = Multiprocess(config, [inherited or config.bind_socket()])
    parent.run()  # ends all if one cannot start, and says so only in the log
    if any(child.exitcode == _COULD_NOT_START for child in parent.processes):
        raise OperatorError("a serving process could not start, so all were ended; the log says why (not_started)")


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
    def __init__(self, config: uvicorn.Config, on_start: Callable[[], None] | None) -> None:
        super().__init__(config)
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and self._on_start is not None:
            self._on_start()

    def end(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - as signal.signal calls it
        """Stops serving after the requests under way. Handles a signal before uvicorn does."""
        self.should_exit = True


def inherited_socket(environ: MutableMapping[str, str]) -> socket.socket | None:
    """Returns the listening socket that systemd handed over, as sd_listen_fds(3) says; None without one.

    Removes the variables that name it, so that child processes do not see them. Raises OperatorError for an unusable socket.
    """
    given = {name: environ.pop(name, "") for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")}
    if given["LISTEN_PID"] != str(os.getpid()) or given["LISTEN_FDS"] in {"", "0"}:
        return None
    if given["LISTEN_FDS"] != "1":
        raise OperatorError(f"systemd handed over {given['LISTEN_FDS']} sockets (LISTEN_FDS): give the unit one")
    try:
        inherited = socket.socket(fileno=_FIRST_FD)
        inherited.set_inheritable(False)  # the embedded database server must not inherit it
        listens = inherited.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError as error:
        raise OperatorError(f"systemd handed over no socket (LISTEN_FDS): {error.strerror}") from None
    if not listens or inherited.family not in {socket.AF_INET, socket.AF_INET6}:
        raise OperatorError(
            "systemd handed over a socket that does not listen on TCP: see ListenStream=, and Accept=no"
        )
    return inherited


def require_free(host: str, port: int) -> None:
    """Raises OperatorError if the port cannot be listened on, before anything else starts."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", "no such port")
            raise OperatorError(f"cannot listen on {host}:{port}: {reason}") from None
