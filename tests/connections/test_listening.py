"""Sockets of the demo, which binds long before it listens, and those that listen on IPv6 and IPv4."""

import contextlib
import errno
import os
import socket
from typing import Any

import pytest
from tests.connections.test_manager import HEAD, Echo
from tests.web.api.conftest import serving
from tests.worker.test_metrics import free_port

from largesse.base.errors import OperatorError
from largesse.base.settings import load_settings
from largesse.cli.service import _listening
from largesse.connections.listening import Listening, bound_socket, free_socket, reserved_socket
from largesse.connections.manager import ConnectionManager
from largesse.serving import serve

HOST = "127.0.0.1"


def test_nobody_else_binds_to_a_reserved_address() -> None:
    with reserved_socket(HOST, 0) as reserved:
        port = reserved.getsockname()[1]
        for take in (bound_socket, reserved_socket):
            with pytest.raises(OperatorError, match=f"cannot listen on {HOST}:{port}: Address already in use"):
                take(HOST, port)
        with free_socket(HOST, port) as another:
            assert another.getsockname()[1] != port
        reserved.listen()
    with free_socket(HOST, port) as again:
        assert again.getsockname()[1] == port


def test_several_processes_reserve_their_address_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a service that started meanwhile took it, and theirs never listened, without a word."""
    port, tried = free_port(), []

    def run(_processes: int, _serve: object, arguments: Any, **_: object) -> None:
        with arguments[3]:
            for take in (bound_socket, reserved_socket):
                with pytest.raises(OperatorError, match="Address already in use"):
                    take(HOST, port).close()
                tried.append(take)

    monkeypatch.setattr("os.environ", dict(os.environ))
    monkeypatch.setattr("largesse.serving.run_processes", run)
    serve(load_settings({}), listening=Listening(HOST, port), processes=2)
    assert len(tried) == 2


def test_connections_that_still_end_do_not_reserve_it() -> None:
    with reserved_socket(HOST, 0) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.listen()
        port = listener.getsockname()[1]
        with contextlib.closing(socket.create_connection((HOST, port))):
            listener.accept()[0].close()  # this side closes first, and its end of the connection waits
    with pytest.raises(OSError, match="in use"), socket.socket() as plain:
        plain.bind((HOST, port))
    reserved_socket(HOST, port).close()


def test_every_address_is_of_both_kinds_and_a_proxy_on_ipv4_is_trusted(wire: Any) -> None:
    """Such a socket, as systemd's `ListenStream=8000`, names 127.0.0.1 in IPv6."""
    clients = []

    class Noting(Echo):
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            clients.append(scope.get("client"))
            await super().__call__(scope, receive, send)

    with reserved_socket("::", 0) as free:
        port = free.getsockname()[1]
    both = _listening("::", port, shared=False).opened
    assert both is not None, "a single process, too"
    both.listen()
    with serving(Noting(), ConnectionManager(100), both):
        for end in (b"\r\n", b"X-Forwarded-For: 203.0.113.4\r\n\r\n"):
            assert wire(f"http://127.0.0.1:{port}").ask(HEAD + end).status == 200
    assert [client[0] for client in clients if client] == ["127.0.0.1", "203.0.113.4"]


def test_a_machine_without_ipv6_is_named_as_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command took it for the database's."""

    def refuse(*_: Any) -> None:
        raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")

    monkeypatch.setattr(socket, "socket", refuse)
    with pytest.raises(OperatorError, match=r"^cannot listen on ::: Address family not supported by protocol$"):
        bound_socket("::", 8000)
