"""Restarts that refuse nobody: on a socket that outlives the process, and on an address that two processes share."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, Self

import httpx
import pytest
from tests.connections.conftest import PATIENCE_S, get
from tests.connections.test_manager import HEAD, Echo
from tests.faults.installation import Installation
from tests.waiting import wait_until
from tests.web.api.conftest import serving

from largesse.connections.manager import ConnectionManager

RESTART_S = 50.0  # until processes that start on a busy machine count as not starting

# Each starts a handful of processes, each of which may take so long.
starts_several = pytest.mark.timeout(6 * RESTART_S)

# As systemd does it: the socket is descriptor 3, and the variables name the process that is to have it.
_HANDED_OVER = 'exec 3<&{fd}; LISTEN_PID=$$ LISTEN_FDS={count} exec "$@"'


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
        yield listener


def start(installation: Installation, listener: socket.socket, *extra: str, count: int = 1) -> subprocess.Popen[bytes]:
    fd = listener.fileno()
    script = _HANDED_OVER.format(fd=fd, count=count)
    with (installation.folder / "handover.log").open("ab") as log:
        return subprocess.Popen(
            ["bash", "-c", script, "bash", sys.executable, "-m", "largesse", "serve", *extra],
            env={**os.environ, **installation.environ},
            cwd=installation.folder,
            stdout=log,
            stderr=log,
            pass_fds=(fd,),
        )


class Caller(threading.Thread):
    """Asks again and again, each time on a new connection or always on the same one, and counts what it is answered."""

    def __init__(self, url: str, stopping: threading.Event, *, keeps: bool) -> None:
        super().__init__()
        self._url = url
        self._stopping = stopping
        self._keeps = keeps
        self.answered = 0
        self.failed: list[str] = []

    def run(self) -> None:
        client = httpx.Client(base_url=self._url, timeout=RESTART_S)
        while not self._stopping.is_set():
            try:
                status = client.get("/health").status_code
                assert status == 200, status
                self.answered += 1
            except Exception as error:  # noqa: BLE001 - whatever it is, a caller saw it
                self.failed.append(repr(error))
            if not self._keeps:
                client.close()
                client = httpx.Client(base_url=self._url, timeout=RESTART_S)
        client.close()


class Callers:
    """Callers that ask on while a block restarts the service, and none of whom may see it."""

    def __init__(self, port: int) -> None:
        self._stopping = threading.Event()
        url = f"http://127.0.0.1:{port}"
        self._callers = [Caller(url, self._stopping, keeps=keeps) for keeps in (False, False, True, True)]

    def __enter__(self) -> Self:
        for caller in self._callers:
            caller.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for caller in self._callers:
            caller.join(2 * RESTART_S)
        assert [caller.failed for caller in self._callers] == [[], [], [], []]

    def are_answered(self) -> None:
        """Waits until each got some more answers."""
        seen = [caller.answered for caller in self._callers]
        wait_until(lambda: all(one.answered > before + 5 for one, before in zip(self._callers, seen, strict=True)))


@starts_several
@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_restart_refuses_nobody(installation: Installation, listener: socket.socket, processes: int) -> None:
    served = start(installation, listener, "--processes", str(processes))
    try:
        with Callers(listener.getsockname()[1]) as callers:
            callers.are_answered()
            served.send_signal(signal.SIGTERM)
            assert served.wait(RESTART_S) == 0
            served = start(installation, listener, "--processes", str(processes))
            callers.are_answered()
    finally:
        served.terminate()
        served.wait(RESTART_S)


class Sharing:
    """Services that share a port, each of which says when it is ready."""

    def __init__(self, installation: Installation, processes: int) -> None:
        self._installation = installation
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        self._command = ["serve", "--port", str(self.port), "--reuse-port", "--processes", str(processes)]
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self) -> subprocess.Popen[bytes]:
        address = f"\0largesse-test-{os.getpid()}-{self.port}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
            ready.bind(address)
            ready.settimeout(RESTART_S)
            environ = {**os.environ, **self._installation.environ, "NOTIFY_SOCKET": f"@{address[1:]}"}
            process = subprocess.Popen(
                [sys.executable, "-m", "largesse", *self._command], env=environ, cwd=self._installation.folder
            )
            self.started.append(process)
            assert ready.recv(100) == b"READY=1"
        return process


@pytest.fixture
def sharing(installation: Installation) -> Iterator[Callable[[int], Sharing]]:
    made: list[Sharing] = []

    def make(processes: int) -> Sharing:
        made.append(Sharing(installation, processes))
        return made[-1]

    yield make
    for process in [process for one in made for process in one.started]:
        process.terminate()
        process.wait(RESTART_S)


@pytest.mark.long
@starts_several
@pytest.mark.parametrize("processes", [1, 2])
def test_a_restart_beside_the_next_process_refuses_nobody(sharing: Callable[[int], Sharing], processes: int) -> None:
    """The older one ends while the newer one serves, then the newer one beside the next: no matter which came first."""
    services = sharing(processes)
    first = services.start()
    with Callers(services.port) as callers:
        second = services.start()
        for ending in (first, second):
            callers.are_answered()
            ending.send_signal(signal.SIGTERM)
            assert ending.wait(RESTART_S) == 0
            callers.are_answered()
            services.start()


@pytest.mark.long
def test_connections_that_wait_are_answered_by_who_leaves(sharing: Callable[[int], Sharing], wire: Any) -> None:
    """Those in the queue of a process that stops: the kernel would reset them with its socket."""
    services = sharing(1)
    leaving = services.start()
    leaving.send_signal(signal.SIGSTOP)
    waiting = [wire(f"http://127.0.0.1:{services.port}") for _ in range(20)]
    for connection in waiting:
        connection.send(get("/health"))
    services.start()
    leaving.send_signal(signal.SIGTERM)
    leaving.send_signal(signal.SIGCONT)
    assert [answer.status for connection in waiting if (answer := connection.answer())] == [200] * 20
    assert leaving.wait(RESTART_S) == 0


@pytest.mark.long
def test_a_port_is_shared_by_who_asks_for_it_alone(
    installation: Installation, sharing: Callable[[int], Sharing]
) -> None:
    services = sharing(1)
    services.start()
    said = installation.run("serve", "--port", str(services.port), code=1)
    assert f"cannot listen on 127.0.0.1:{services.port}: Address already in use" in said


_STARTS_LATE = """
import os, sys, time
if "--multiprocessing-fork" in sys.orig_argv:
    with open("starts", "a") as file:
        file.write("x")
    time.sleep(7)
"""


@pytest.mark.long
def test_a_process_that_takes_long_to_start_is_not_replaced(
    sharing: Callable[[int], Sharing], installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    (installation.folder / "sitecustomize.py").write_text(_STARTS_LATE)
    monkeypatch.setenv("PYTHONPATH", str(installation.folder), prepend=os.pathsep)
    sharing(2).start()
    assert (installation.folder / "starts").read_text() == "xx"


@pytest.mark.slow
def test_systemd_hands_over_a_socket(installation: Installation) -> None:
    program = shutil.which("systemd-socket-activate")
    if program is None and not os.environ.get("CI"):
        pytest.skip("systemd-socket-activate is not installed here: apt install systemd")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    names = [f"--setenv={name}" for name in (*installation.environ, "PATH", "PYTHONPATH")]
    process = subprocess.Popen(
        [program, "--listen", f"127.0.0.1:{port}", *names, sys.executable, "-m", "largesse", "serve"],
        env={**os.environ, **installation.environ},
        cwd=installation.folder,
        stderr=subprocess.DEVNULL,
    )
    try:
        with httpx.Client(transport=httpx.HTTPTransport(retries=8), timeout=PATIENCE_S) as client:
            assert client.get(f"http://127.0.0.1:{port}/health").json()["status"] == "pass"
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


@pytest.mark.long
@pytest.mark.parametrize(
    ("extra", "count", "said"),
    [
        (["--port", "1"], 1, "--port is 1, but systemd handed over a socket that listens on 127.0.0.1:"),
        (["--host", "127.0.0.2"], 1, "--host is 127.0.0.2, but systemd handed over a socket"),
        (["--reuse-port"], 1, "--reuse-port cannot be combined with a socket from systemd"),
        ([], 2, "systemd handed over 2 sockets (LISTEN_FDS): give the unit one"),
    ],
)
def test_a_socket_that_does_not_fit_is_refused(
    installation: Installation, listener: socket.socket, extra: list[str], count: int, said: str
) -> None:
    process = start(installation, listener, *extra, count=count)
    assert process.wait(PATIENCE_S) == 1
    assert said in (installation.folder / "handover.log").read_text()


@pytest.mark.slow
def test_a_socket_that_does_not_listen_is_refused(installation: Installation) -> None:
    with socket.socket() as idle:
        idle.bind(("127.0.0.1", 0))
        assert start(installation, idle).wait(PATIENCE_S) == 1
    assert "does not listen on TCP" in (installation.folder / "handover.log").read_text()


def test_what_was_on_its_way_when_the_service_stopped_is_answered(wire: Any) -> None:
    """A new connection, an idle one and half a request: each gets its answer, and no other after that."""
    manager = ConnectionManager(100, quiet_s=PATIENCE_S)
    stopped = threading.Event()
    with serving(Echo(), manager) as url:
        fresh, idle, half = wire(url), wire(url), wire(url)
        assert idle.ask(get("/")).status == 200
        assert half.ask(get("/")).status == 200
        half.send(HEAD)
        silent = wire(url)
        wait_until(lambda: manager._open == 4)
        ask = threading.Thread(target=_ask_once_it_stops, args=(manager, (fresh, idle), half, silent, stopped))
        ask.start()
    ask.join()
    assert stopped.is_set()


def _ask_once_it_stops(
    manager: ConnectionManager, whole: tuple[Any, ...], half: Any, silent: Any, stopped: threading.Event
) -> None:
    wait_until(lambda: manager.is_draining)
    for connection in whole:
        connection.send(get("/"))
    half.send(b"\r\n")
    for connection in (*whole, half):
        answer = connection.answer()
        assert answer.status == 200
        assert answer.headers["connection"] == "close"
        assert connection.answer() is None
    silent.close()
    stopped.set()


def test_who_stays_quiet_is_not_waited_for(wire: Any) -> None:
    with serving(Echo(), ConnectionManager(100, quiet_s=0.1)) as url:
        idle, fresh = wire(url), wire(url)
        assert idle.ask(get("/")).status == 200
    assert idle.answer() is None
    assert fresh.answer() is None


def test_who_has_asked_is_answered_although_the_service_was_late(wire: Any) -> None:
    """The quiet second is over, and the request has arrived, before a busy process gets to either."""
    manager = ConnectionManager(100, quiet_s=PATIENCE_S)
    busy, asked = threading.Event(), threading.Event()

    class Late(Echo):
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            if scope.get("path") == "/late":
                manager.drain()
                busy.set()
                assert asked.wait(PATIENCE_S)
                manager._end_quiet()
            await super().__call__(scope, receive, send)

    with serving(Late(), manager) as url:
        late, idle = wire(url), wire(url)
        assert idle.ask(get("/")).status == 200
        late.send(get("/late"))
        assert busy.wait(PATIENCE_S)
        idle.send(get("/"))
        asked.set()
        assert (late.answer().status, idle.answer().status) == (200, 200)
