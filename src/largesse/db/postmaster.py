"""Observes a running server from outside, by its postmaster.pid, its process and its socket. Ends orphaned sessions.

An orphan is a session whose client was cut off in the middle of a command. Between two commands the server has time-outs
(largesse.db.session). Within a command it waits for the rest without a limit: for the rows of a COPY, or for the parameters of a prepared
statement. Keepalive ends the session if the client's host has vanished, but not if a device between them still answers. Until it ends, the
session holds its locks.
"""

import asyncio
import os
import socket
import struct
import subprocess
from enum import Enum
from pathlib import Path

import msgspec
import structlog

from largesse.db.pool import DATABASE_FAILED, Database
from largesse.db.scope import WORKER

PORT = 5432  # only a part of the socket's name: the server does not listen on the network
PROBE_LIMIT_S = 2.0
NO_PROCESS = 4194305  # above Linux's largest process id
_END_ORPHANS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND usename = session_user
      AND application_name = current_setting('application_name')
      AND state = 'active' AND wait_event = 'ClientRead'
      AND state_change < clock_timestamp() - $1 * interval '1 second'
"""


class Readiness(Enum):
    """A server's answer to a new connection."""

    ACCEPTING = "accepting"
    BUSY = "busy"  # the server runs, but is starting, recovering or stopping
    NONE = "none"


class Postmaster(msgspec.Struct, frozen=True):
    """The lines of postmaster.pid that matter here (`miscadmin.h` in PostgreSQL describes them)."""

    pid: int
    socket_dir: str
    status: str  # starting, ready, stopping or standby; empty while the file is being written


def read(cluster: Path) -> Postmaster | None:
    """Returns the postmaster that last owned the cluster, alive or not; None after a clean stop."""
    try:
        lines = (cluster / "postmaster.pid").read_text().splitlines()
        return Postmaster(
            pid=int(lines[0]),
            socket_dir=lines[4] if len(lines) > 4 else "",
            status=lines[7].strip() if len(lines) > 7 else "",
        )
    except (FileNotFoundError, IndexError, ValueError):
        return None


def is_alive(postmaster: Postmaster, cluster: Path) -> bool:
    """Returns whether the process exists and is this cluster's server, not another process with the same id.

    A process that died and was not reaped yet has no command line, and counts as dead.
    """
    arguments = _command_line(postmaster.pid)
    return bool(arguments) and arguments[0].endswith(b"postgres") and os.fsencode(cluster) in arguments


def _command_line(pid: int) -> list[bytes]:
    if Path("/proc/self/cmdline").exists():
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return []
    # Other systems list the arguments as one line, which is cut where the server's own options begin.
    listing = subprocess.run(  # noqa: S603 - the id is a number
        ["/bin/ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, check=False
    ).stdout
    program, _, options = listing.partition(b" -D ")
    return [program, options.partition(b" -c ")[0]]


def disown(cluster: Path, postmaster: Postmaster) -> None:
    """Allows a new server to start if postmaster.pid names a dead server whose process id another process has.

    PostgreSQL refuses to start while that id exists. The file is not removed: it also names the shared memory, by which
    PostgreSQL makes sure that no orphan of the dead server still writes.
    """
    path = cluster / "postmaster.pid"
    first, rest = path.read_text().split("\n", 1)
    if int(first) == postmaster.pid:
        path.write_text(f"{NO_PROCESS}\n{rest}")


def exists(pid: int) -> bool:
    """Returns whether any process has this id."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def ask(socket_dir: str) -> Readiness:
    """Begins a session as the application would, and ends it before it is authenticated."""
    try:
        first, _ = _knock(socket_dir)
    except TimeoutError:
        return Readiness.BUSY
    except OSError:
        return Readiness.NONE
    return Readiness.ACCEPTING if first == b"R" else Readiness.BUSY


def asks_for_password(socket_dir: str) -> bool | None:
    """Returns whether the server asks its superuser for a password; None if it does not answer that."""
    try:
        first, kind = _knock(socket_dir)
    except OSError:
        return None
    return kind != 0 if first == b"R" else None


def _knock(socket_dir: str) -> tuple[bytes, int | None]:
    """Returns the kind of the first message that a new session gets, and the authentication that it requires (0: none)."""
    parameters = b"user\0largesse\0database\0postgres\0\0"
    startup = struct.pack("!II", 8 + len(parameters), 3 << 16) + parameters
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PROBE_LIMIT_S)
        connection.connect(f"{socket_dir}/.s.PGSQL.{PORT}")
        connection.sendall(startup)
        head = connection.recv(9, socket.MSG_WAITALL)  # a kind, a length, and for `R` a number
        wanted = struct.unpack("!I", head[5:9])[0] if head[:1] == b"R" and len(head) == 9 else None
        if wanted:  # unread bytes would reset the connection, and the server would log that
            connection.recv(struct.unpack("!I", head[1:5])[0] - 8, socket.MSG_WAITALL)
        if wanted == 0:
            connection.sendall(struct.pack("!cI", b"X", 4))
        return head[:1], wanted


_END_EVERY_S = 2.0
# How long a session must have waited: our own processes send the rest of a command sooner, and the database updates its state sooner.
_WAITED_S = 5.0

_log = structlog.get_logger(__name__)


async def end_orphans(database: Database) -> int:
    """Ends the orphans among the sessions of our own login. Returns how many there were."""
    async with database.transaction(WORKER) as connection:
        # A role can see and end sessions that logged in as it, but not those that act as it.
        await connection.execute("SET LOCAL ROLE NONE")
        ended = await connection.fetch(_END_ORPHANS, _WAITED_S)
    if ended:
        _log.warning("orphans_ended", sessions=len(ended))
    return len(ended)


async def end_orphans_for_ever(database: Database) -> None:
    """Ends orphans repeatedly, until cancelled."""
    while True:
        await asyncio.sleep(_END_EVERY_S)
        try:
            await end_orphans(database)
        except DATABASE_FAILED as error:
            _log.warning("orphans_not_ended", error=type(error).__name__)
