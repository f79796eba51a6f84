"""Sockets of the demo, which binds long before it listens."""

from __future__ import annotations

import contextlib
import socket

import pytest

from largesse.base.errors import OperatorError
from largesse.connections.listening import bound_socket, free_socket, reserved_socket

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
