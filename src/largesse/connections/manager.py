"""The manager of a process's connections: ends those that wait too long, and makes room at the limit.

There is no timer for each request. A connection stands in the list of what it waits for, the longest waiting first, and
once a second the heads of the lists are looked at.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import structlog

from largesse.base.errors import Unavailable
from largesse.connections import metrics
from largesse.connections.protocol import Connection
from largesse.web.kit.problems import SlowRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

HEAD_S = 10.0
# Longer than proxies keep idle connections to us, so that they are the ones to close.
IDLE_S = 75.0
# How long an answer may wait for a client that reads nothing of it.
UNREAD_S = 30.0
# How long the service, when it stops, waits for the next request of a connection that has none: one may be on its way.
QUIET_S = 1.0
# A head of this age gives way to a new connection when there is no room: hardly an honest one takes so long.
_YIELDS_AFTER_S = 2.0
# So many idle ones are asked for one whose client has read all it was answered.
_ASKED = 100
_LOG_EVERY_S = 10.0

_log = structlog.get_logger(__name__)


class ConnectionManager:
    """Makes the connections of one server (uvicorn calls it as its protocol class) and watches over them.

    At `limit` connections a new one takes the place of the one that has owed the head of its request for longest (and for
    two seconds at least), else of the one that has been idle for longest; where all are at work it is answered 503.
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
        self._head_s = head_s
        self._idle_s = idle_s
        self._unread_s = unread_s
        self._quiet_s = quiet_s
        self.is_draining = False  # the service stops: each answer is the last of its connection
        self._sweep_every_s = sweep_every_s
        self._too_late = SlowRequest(f"The head of the request did not arrive within {head_s:g} seconds.")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._next_sweep: asyncio.TimerHandle | None = None
        self._open = 0
        # Since when (loop time), the longest first. Between two requests:
        self.idle: dict[Connection, float] = {}
        # Since the connection came, the head of a request began, or a request was answered whose body is not whole yet:
        self._heads: dict[Connection, float] = {}
        # Answers that the client does not read: how many bytes waited, and since when it took none of them.
        self._unread: dict[Connection, tuple[int, float]] = {}
        self._refused = 0
        self._gave_way = 0
        self._log_after_s = 0.0

    def __call__(self, **uvicorns: Any) -> Connection:
        """A connection, as uvicorn makes them."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            metrics.LIMIT.set(self._limit)
        return Connection(self, **uvicorns)

    def drain(self) -> None:
        """Has each connection end with its next answer, and those without a request once they were quiet for a second."""
        if not self.is_draining:
            self.is_draining = True
            assert self._loop is not None, "there is a connection"
            self._loop.call_later(self._quiet_s, self._end_quiet)

    def _end_quiet(self) -> None:
        for connection in [*self.idle, *(one for one in self._heads if one.said_nothing)]:
            connection.end()

    # What connections tell

    def enter(self, connection: Connection) -> None:
        """A new connection: it is given room, or refused."""
        self._open += 1
        metrics.OPEN.inc()
        if self._next_sweep is None:
            self._later()
        if self._open > self._limit and not self._make_room():
            self._refused += 1
            metrics.REFUSED.inc()
            connection.refuse(Unavailable("The service holds as many connections as it may."), at_once=True)
        else:
            self._heads[connection] = self._now_s
        if self._open > self._limit:
            self._tell()

    def leave(self, connection: Connection) -> None:
        """A connection has ended."""
        self._open -= 1
        metrics.OPEN.dec()
        for waiting in (self.idle, self._heads, self._unread):
            waiting.pop(connection, None)

    def rest(self, connection: Connection) -> None:
        """A request is over and nothing of the next one has come."""
        self._heads.pop(connection, None)
        self.idle[connection] = self._now_s

    def await_head(self, connection: Connection) -> None:
        """The head of a request is owed, or the rest of a body that nobody waits for."""
        self._heads.setdefault(connection, self._now_s)

    def has_head(self, connection: Connection) -> None:
        """The head of a request is whole."""
        self._heads.pop(connection, None)

    def await_reading(self, connection: Connection) -> None:
        """An answer waits in our memory, since the client does not read it as fast as it is written."""
        self._unread[connection] = (connection.unread_bytes, self._now_s)

    def was_read(self, connection: Connection) -> None:
        """The client has taken most of what waited."""
        self._unread.pop(connection, None)

    # What the manager does

    @property
    def _now_s(self) -> float:
        assert self._loop is not None, "there is a connection"
        return self._loop.time()

    def _make_room(self) -> bool:
        """Ends the connection that can best be spared; False when none can."""
        spared = next(_waiting_since(self._heads, self._now_s - _YIELDS_AFTER_S), None)
        if spared is None:
            spared = next((one for one in islice(self.idle, _ASKED) if not one.unread_bytes), None)
        if spared is None:
            spared = next(iter(self.idle), None)
        if spared is None:
            return False
        self.idle.pop(spared, None)
        self._heads.pop(spared, None)
        spared.give_way()
        metrics.ROOM.inc()
        self._gave_way += 1
        return True

    def _later(self) -> None:
        assert self._loop is not None, "there is a connection"
        self._next_sweep = self._loop.call_later(self._sweep_every_s, self._sweep)

    def _sweep(self) -> None:
        self._next_sweep = None
        now_s = self._now_s
        for connection in list(_waiting_since(self._heads, now_s - self._head_s)):
            del self._heads[connection]
            metrics.LATE.inc()
            if connection.said_nothing:
                connection.end()
            else:
                connection.refuse(self._too_late)
        for connection in list(_waiting_since(self.idle, now_s - self._idle_s)):
            del self.idle[connection]
            metrics.IDLE.inc()
            connection.end()
        for connection, (before, since_s) in list(self._unread.items()):
            unread = connection.unread_bytes
            if unread < before:
                self._unread[connection] = (unread, now_s)
            elif since_s < now_s - self._unread_s:
                metrics.UNREAD.inc()
                connection.abort()
        self._tell()
        if self._open:
            self._later()

    def _tell(self) -> None:
        """Logs what the limit did, at once and then at most every ten seconds."""
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


def _waiting_since(waiting: Mapping[Connection, float], before_s: float) -> Iterator[Connection]:
    """Those that have waited since before then, the longest first."""
    for connection, since_s in waiting.items():
        if since_s > before_s:
            return
        yield connection
