"""Listening sockets that outlive a process: one that systemd opened, and one whose address several processes share."""

import asyncio
import os
import select
import socket
import struct
from collections.abc import MutableMapping
from typing import NamedTuple

import structlog

from largesse.base.errors import OperatorError

_FIRST_FD = 3  # SD_LISTEN_FDS_START
# How long the last handshakes may take. A client repeats a dropped one after a second, and must then reach another process.
_HANDSHAKE_S = 0.5
_AGAIN_S = 0.02
_MOST_LOOKS = 250

# A classic BPF program for the packets of a listening socket: drops those that begin a connection.
_DROP_NEW = (
    (0x30, 0, 0, 13),  # load the flags of the TCP header
    (0x54, 0, 0, 0x02),  # keep only the flag SYN
    (0x15, 0, 1, 0),  # if SYN is not set:
    (0x06, 0, 0, 0xFFFF),  # accept the packet
    (0x06, 0, 0, 0),  # else drop it
)

_log = structlog.get_logger(__name__)


class Listening(NamedTuple):
    """Where a service listens.

    `opened` is a socket that is bound already. It is `shared` if other processes listen on the same address, each on a socket of its own.
    """

    host: str
    port: int
    opened: socket.socket | None = None
    shared: bool = False


def inherited_socket(environ: MutableMapping[str, str]) -> socket.socket | None:
    """Returns the listening socket that systemd passed on, as in sd_listen_fds(3), or None.

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


def bound_socket(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """Returns a socket bound to the address. It does not listen yet: a process listens once it can answer.

    `shared` lets other processes of the same user listen there too. Raises OperatorError if the address is not free.
    """
    bound = _socket_for(host)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        bound.bind((host, port))
    except (OSError, OverflowError) as error:
        bound.close()
        reason = getattr(error, "strerror", "no such port")
        raise OperatorError(f"cannot listen on {host}:{port}: {reason}") from None
    return bound


def _socket_for(host: str) -> socket.socket:
    try:
        return socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    except OSError as error:  # a machine without IPv6
        raise OperatorError(f"cannot listen on {host}: {error.strerror}") from None


def require_free(host: str, port: int) -> None:
    """Raises OperatorError if the port cannot be listened on, before anything else starts."""
    bound_socket(host, port).close()


def reserved_socket(host: str, port: int) -> socket.socket:
    """Returns a socket bound to the address, for a process that listens later: until then no other process can bind to it.

    Raises OperatorError if the address is not free.
    """
    reserved = _socket_for(host)
    try:
        reserved.bind((host, port))  # with SO_REUSEADDR others could bind as well, and only the first could listen
    except (OSError, OverflowError):
        reserved.close()
        return bound_socket(host, port)  # connections of the previous process may still be ending
    return reserved


def free_socket(host: str, port: int) -> socket.socket:
    """Returns a reserved socket on the port, or on another port if that is not free."""
    try:
        return reserved_socket(host, port)
    except OperatorError:
        return reserved_socket(host, 0)


def leave_new_to_others(listener: socket.socket) -> None:
    """Leaves new connections to the other processes that listen on this address.

    A client repeats a dropped handshake after a second, and reaches another process once this socket is closed.
    """
    try:
        _attach(listener, _DROP_NEW)
    except OSError as error:
        _log.warning("connections_not_left", reason=error.strerror)


async def accept_waiting(listener: socket.socket) -> None:
    """Returns once the server has accepted all connections of a socket that gets no new ones.

    The kernel would reset connections that still wait when the socket is closed.
    """
    waiting = select.poll()
    waiting.register(listener, select.POLLIN)
    await asyncio.sleep(_HANDSHAKE_S)
    for _ in range(_MOST_LOOKS):
        if not waiting.poll(0):
            return
        await asyncio.sleep(_AGAIN_S)


def _attach(listener: socket.socket, program: tuple[tuple[int, int, int, int], ...]) -> None:
    """Attaches a filter for its packets to the socket (SO_ATTACH_FILTER, see socket(7)). Raises OSError."""
    import ctypes  # imported here, as a start does not need it

    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    so_attach_filter = 26
    # struct sock_fprog: the number of instructions and where they are.
    listener.setsockopt(socket.SOL_SOCKET, so_attach_filter, struct.pack("HP", len(program), ctypes.addressof(code)))
