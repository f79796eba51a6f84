"""Manages the connections of a process: ends those that wait too long, and makes room at the limit.

Requests have no timers. There is a list of connections for each thing they wait for, with the longest waiting first. Once a second, the
manager checks the first entries of each list.
"""

import asyncio
import select
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Protocol

import structlog
from prometheus_client import Counter, Gauge

from largesse.base.errors import OperatorError, Problem, Unavailable
from largesse.base.open_files import allow_files
from largesse.web.kit.problems import SlowRequest

MAX_CONNECTIONS = 4_000
# Files that a serving process opens besides connections: the database, the log, listening sockets, files that it reads.
_OTHER_FILES = 100
HEAD_S = 10.0
# Proxies close idle connections earlier. So the proxy closes first, and sends no request on a closed connection.
IDLE_S = 75.0
# How long an answer may wait for a client that reads nothing.
UNREAD_S = 30.0
# How long the service waits, when it stops, for a request that may be on its way.
QUIET_S = 1.0
# The pause before the next check, if a request has arrived but is not read yet.
_AGAIN_S = 0.05
# At the limit, a connection that has waited this long for a request head is closed for a new one. Few ordinary clients take so long.
_YIELDS_AFTER_S = 2.0
# How many idle connections are searched for one whose client has read its whole answer.
_CHECKED = 100
_LOG_EVERY_S = 10.0
# The pause between two reads of bytes that are discarded, for all connections together. A read takes up to 256 KB, so 64 MB a second.
_DISCARD_EVERY_S = 0.004
MAX_DISCARDING = 200  # how many connections may have their bytes discarded

_log = structlog.get_logger(__name__)

OPEN = Gauge("largesse_connections_open", "Connections of callers that are open now.")
_LIMIT = Gauge("largesse_connections_limit", "How many connections this process may hold at most.")
_REFUSED = Counter(
    "largesse_connections_refused", "Connections answered 503 at once, because the process held as many as it may."
)
CLOSED = Counter("largesse_connections_closed", "Connections the service closed, by reason.", ["reason"])

_IDLE = CLOSED.labels("idle")
_LATE = CLOSED.labels("late")
_UNREAD = CLOSED.labels("unread")
_ROOM = CLOSED.labels("room")


class Managed(Protocol):
    """What the manager asks a connection, and does to it."""

    @property
    def descriptor(self) -> int:
        """The file descriptor of the socket."""

    @property
    def unread_bytes(self) -> int:
        """The bytes of answers that the client has not read."""

    @property
    def said_nothing(self) -> bool:
        """Whether no part of a request has arrived since the last request."""

    def end(self) -> None:
        """Closes after the client has read its answers."""

    def abort(self) -> None:
        """Closes at once."""

    def give_way(self) -> None:
        """Closes at once, to make room for another connection, even if the client has not read everything."""

    def read_on(self) -> None:
        """Reads on after a pause."""

    def refuse(self, problem: Problem, *, at_once: bool = False) -> None:
        """Stops reading, answers `problem` if that is still possible, and closes."""


class ConnectionManager:
    """Watches the connections of one server.

    At `limit` connections, a new one replaces the one whose request head is late for longest: at least two seconds. If there is none,
    it replaces the one that has been idle for longest. If all are busy, the new one gets the answer 503.
    """

    def __init__(
        self,
        limit: int,
        *,
        head_s: float = HEAD_S,
        idle_s: float = IDLE_S,
        unread_s: float = UNREAD_S,
        quiet_s: float = QUIET_S,
        sweep_every_s: float = 1.0,
    ) -> None:
        self._limit = limit
        _LIMIT.set(limit)
        self._head_s = head_s
        self._idle_s = idle_s
        self._unread_s = unread_s
        self._quiet_s = quiet_s
        self.is_draining = False  # True while the service stops: each connection ends with its next answer
        self._sweep_every_s = sweep_every_s
        self._too_late = SlowRequest(f"The head of the request did not arrive within {head_s:g} seconds.")
        self._loop: asyncio.AbstractEventLoop  # set with each connection
        self._next_sweep: asyncio.TimerHandle | None = None
        self._open = 0
        # Four lists with the loop time since which each connection waits, the longest first. Idle between two requests:
        self.idle: dict[Managed, float] = {}
        # Waiting for the head of a request, or for the rest of a body whose request is already answered:
        self._heads: dict[Managed, float] = {}
        # Waiting for the client to read its answer: the number of unread bytes, and since when it has read none.
        self._unread: dict[Managed, tuple[int, float]] = {}
        # Waiting to read on; see `put_off`.
        self._put_off: dict[Managed, None] = {}
        self._next_read: asyncio.TimerHandle | None = None
        self._refused = 0
        self._gave_way = 0
        self._log_after_s = 0.0

    def drain(self) -> None:
        """Ends each connection with its next answer. Ends connections without a request after one quiet second."""
        if not self.is_draining:
            self.is_draining = True
            self._loop.call_later(self._quiet_s, self._end_quiet)

    def _end_quiet(self) -> None:
        """Ends the connections without a request, unless one has arrived and is not read yet.

        If the loop is late, it runs this before it reads. Closing then would reset the connection.
        """
        quiet = {one.descriptor: one for one in (*self.idle, *(one for one in self._heads if one.said_nothing))}
        arrived = select.poll()
        for descriptor in quiet:
            arrived.register(descriptor, select.POLLIN)
        unread = {descriptor for descriptor, _ in arrived.poll(0)}
        for descriptor, connection in quiet.items():
            if descriptor not in unread:
                connection.end()
        if unread:
            self._loop.call_later(_AGAIN_S, self._end_quiet)

    # Calls from connections

    def enter(self, connection: Managed) -> None:
        """Admits a new connection or refuses it."""
        self._loop = asyncio.get_running_loop()
        self._open += 1
        OPEN.inc()
        if self._next_sweep is None:
            self._schedule_sweep()
        if self._open > self._limit and not self._make_room():
            self._refused += 1
            _REFUSED.inc()
            connection.refuse(Unavailable("The service holds as many connections as it may."), at_once=True)
        else:
            self._heads[connection] = self._now_s
        if self._open > self._limit:
            self._log_limit()

    def leave(self, connection: Managed) -> None:
        """Removes a connection that ended."""
        self._open -= 1
        OPEN.dec()
        for waiting in (self.idle, self._heads, self._unread, self._put_off):
            waiting.pop(connection, None)

    def rest(self, connection: Managed) -> None:
        """Marks a connection as idle between two requests."""
        self._heads.pop(connection, None)
        self.idle[connection] = self._now_s

    def await_head(self, connection: Managed) -> None:
        """Starts the time for the head of a request, or for the rest of a body that is discarded."""
        self._heads.setdefault(connection, self._now_s)

    def has_head(self, connection: Managed) -> None:
        """Ends the time for the head of a request."""
        self._heads.pop(connection, None)

    def await_reading(self, connection: Managed) -> None:
        """Starts the time for a client that does not read its answer as fast as it is written."""
        self._unread[connection] = (connection.unread_bytes, self._now_s)

    def was_read(self, connection: Managed) -> None:
        """Ends the time for a client that has read most of its answer."""
        self._unread.pop(connection, None)

    def put_off(self, connection: Managed) -> None:
        """Delays the next read of a connection whose bytes are discarded.

        Such connections read in turn, so that a flood does not slow requests down. Above MAX_DISCARDING, the one that has waited
        longest ends: its client has had the most time to read its answer.
        """
        self._put_off[connection] = None
        while len(self._put_off) > MAX_DISCARDING:
            first = next(iter(self._put_off))
            del self._put_off[first]
            first.abort()
        if self._next_read is None:
            self._schedule_read()

    def _schedule_read(self) -> None:
        self._next_read = self._loop.call_later(_DISCARD_EVERY_S, self._read_on)

    def _read_on(self) -> None:
        self._next_read = None
        first = next(iter(self._put_off), None)
        if first is not None:
            del self._put_off[first]
            first.read_on()
        if self._put_off and self._next_read is None:
            self._schedule_read()

    @property
    def _now_s(self) -> float:
        return self._loop.time()

    def _make_room(self) -> bool:
        """Ends the connection that is needed least. Returns False if all are needed."""
        ended = next(_waiting_since(self._heads, self._now_s - _YIELDS_AFTER_S), None)
        if ended is None:
            ended = next((one for one in islice(self.idle, _CHECKED) if not one.unread_bytes), None)
        if ended is None:
            ended = next(iter(self.idle), None)
        if ended is None:
            return False
        self.idle.pop(ended, None)
        self._heads.pop(ended, None)
        ended.give_way()
        _ROOM.inc()
        self._gave_way += 1
        return True

    def _schedule_sweep(self) -> None:
        self._next_sweep = self._loop.call_later(self._sweep_every_s, self._sweep)

    def _sweep(self) -> None:
        self._next_sweep = None
        now_s = self._now_s
        for connection in list(_waiting_since(self._heads, now_s - self._head_s)):
            del self._heads[connection]
            _LATE.inc()
            if connection.said_nothing:
                connection.end()
            else:
                connection.refuse(self._too_late)
        for connection in list(_waiting_since(self.idle, now_s - self._idle_s)):
            del self.idle[connection]
            _IDLE.inc()
            connection.end()
        for connection, (before, since_s) in list(self._unread.items()):
            unread = connection.unread_bytes
            if unread < before:
                self._unread[connection] = (unread, now_s)
            elif since_s < now_s - self._unread_s:
                _UNREAD.inc()
                connection.abort()
        self._log_limit()
        if self._open:
            self._schedule_sweep()

    def _log_limit(self) -> None:
        """Logs what the limit did: at once, then at most every ten seconds."""
        if not (self._refused or self._gave_way) or self._now_s < self._log_after_s:
            return
        _log.warning(
            "connections_full",
            limit=self._limit,
            idle=len(self.idle),
            without_a_request=len(self._heads),
            closed_for_others=self._gave_way,
            refused=self._refused,
        )
        self._refused = self._gave_way = 0
        self._log_after_s = self._now_s + _LOG_EVERY_S


def _waiting_since(waiting: Mapping[Managed, float], before_s: float) -> Iterator[Managed]:
    """Yields the connections that have waited since before then, the longest first."""
    for connection, since_s in waiting.items():
        if since_s > before_s:
            return
        yield connection


def files_needed(requested: int | None, *, other_files: int = 0) -> int:
    """Returns how many files a process needs to open, for the arguments of `connection_limit`."""
    return (requested or MAX_CONNECTIONS) + _OTHER_FILES + other_files


def connection_limit(requested: int | None, *, other_files: int = 0) -> int:
    """Returns how many connections this process may hold at once. Raises its limit of open files if needed and allowed.

    `requested` is the operator's setting; None means MAX_CONNECTIONS, or fewer if the system allows fewer. `other_files` is
    what a worker in the same process opens. Raises OperatorError if the system does not allow the operator's setting.
    """
    reserve = _OTHER_FILES + other_files
    allowed = allow_files(files_needed(requested, other_files=other_files))
    # Callers get at least half of a small limit, even if a worker needs more.
    most = max(allowed - reserve, allowed // 2)
    if requested is None:
        if most < MAX_CONNECTIONS:
            _log.warning("connections_limited_by_open_files", limit=most, open_files=allowed)
        return min(MAX_CONNECTIONS, most)
    if requested > most:
        raise OperatorError(
            f"LARGESSE_MAX_CONNECTIONS is {requested}, but this process may open {allowed} files, which is enough for "
            f"{most} connections: raise the limit of open files (LimitNOFILE=, ulimit -Hn) or lower the setting"
        )
    return requested
