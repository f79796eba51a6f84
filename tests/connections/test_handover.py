"""A socket that outlives the process: who connects while `serve` restarts waits, and is answered."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from tests.connections.conftest import PATIENCE_S, get
from tests.connections.test_manager import HEAD, Echo
from tests.faults.installation import Installation
from tests.web.api.conftest import serving

from largesse.connections.manager import ConnectionManager

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
        client = httpx.Client(base_url=self._url, timeout=PATIENCE_S)
        while not self._stopping.is_set():
            try:
                status = client.get("/health").status_code
                assert status == 200, status
                self.answered += 1
            except Exception as error:  # noqa: BLE001 - whatever it is, a caller saw it
                self.failed.append(repr(error))
            if not self._keeps:
                client.close()
                client = httpx.Client(base_url=self._url, timeout=PATIENCE_S)
        client.close()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_restart_refuses_nobody(installation: Installation, listener: socket.socket, processes: int) -> None:
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    stopping = threading.Event()
    callers = [Caller(url, stopping, keeps=keeps) for keeps in (False, False, True, True)]

    def asks_on() -> None:
        seen = [caller.answered for caller in callers]
        wait_for(lambda: all(caller.answered > before + 5 for caller, before in zip(callers, seen, strict=True)))

    served = start(installation, listener, "--processes", str(processes))
    try:
        for caller in callers:
            caller.start()
        asks_on()
        served.send_signal(signal.SIGTERM)
        assert served.wait(PATIENCE_S) == 0
        served = start(installation, listener, "--processes", str(processes))
        asks_on()
    finally:
        stopping.set()
        for caller in callers:
            caller.join(2 * PATIENCE_S)
        served.terminate()
        served.wait(PATIENCE_S)
    assert [caller.failed for caller in callers] == [[], [], [], []]


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


@pytest.mark.parametrize(
    ("extra", "count", "said"),
    [
        (["--port", "1"], 1, "--port is 1, but systemd handed over a socket that listens on 127.0.0.1:"),
        (["--host", "127.0.0.2"], 1, "--host is 127.0.0.2, but systemd handed over a socket"),
        ([], 2, "systemd handed over 2 sockets (LISTEN_FDS): give the unit one"),
    ],
)
def test_a_socket_that_does_not_fit_is_refused(
    installation: Installation, listener: socket.socket, extra: list[str], count: int, said: str
) -> None:
    process = start(installation, listener, *extra, count=count)
    assert process.wait(PATIENCE_S) == 1
    assert said in (installation.folder / "handover.log").read_text()


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
        wait_for(lambda: manager._open == 4)
        ask = threading.Thread(target=_ask_once_it_stops, args=(manager, (fresh, idle), half, silent, stopped))
        ask.start()
    ask.join()
    assert stopped.is_set()


def _ask_once_it_stops(
    manager: ConnectionManager, whole: tuple[Any, ...], half: Any, silent: Any, stopped: threading.Event
) -> None:
    wait_for(lambda: manager.is_draining)
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
