"""Writes requests into the log in the background: a request is noted in memory, and once a second the noted requests are written.

Noting never waits. If there are too many requests, or they cannot be written, they are dropped and counted, so that the log slows no order.
"""

import asyncio
import contextlib
from collections import Counter
from typing import NamedTuple

import asyncpg
import structlog
from prometheus_client import Counter as Metric

from largesse.base import clock
from largesse.customers.principal import Principal
from largesse.db.pool import DATABASE_AWAY, Database
from largesse.db.scope import for_customers
from largesse.request_log import store
from largesse.request_log.model import loggable_path

_EVERY_S = 1.0
_BURST_S = 20  # after a quiet time, a process may write the requests of this many seconds at once
_AT_ONCE = 500
_SHARE = 0.75  # the part of the limit that one customer may use, and the part for requests that were not refused
_REFUSED = 400
_LONGEST_US = 2_147_483_647
_TROUBLE: tuple[type[BaseException], ...] = (*DATABASE_AWAY, asyncpg.PostgresError)

NOT_LOGGED = Metric(
    "largesse_requests_not_in_log",
    "Requests that are not in the request log: there were too many, or the database was away.",
    ["reason"],
)
_TOO_MANY, _AWAY = NOT_LOGGED.labels("load"), NOT_LOGGED.labels("database")
_log = structlog.get_logger(__name__)


class NotedRequest(NamedTuple):
    """A request of an API key that waits to be written. It ended at `ended_s` by the process's own clock."""

    principal: Principal
    method: str
    route: str
    path: str
    status: int
    problem: str | None
    request_id: bytes
    address: str | None
    ended_s: float
    took_s: float


class RequestLog:
    """The log of one process. It writes at most `most_per_s` requests a second. With 0 there is no log."""

    def __init__(self, database: Database, most_per_s: int) -> None:
        self._database = database
        self._most_per_s = most_per_s
        self._room = most_per_s * _BURST_S
        self._noted: list[NotedRequest] = []
        self._of_customer: Counter[int] = Counter()
        self._too_many = 0
        self._writer = asyncio.create_task(self._write_for_ever())

    def takes(self, customer_id: int, status: int) -> bool:
        """Returns whether there is room for a request of that customer. If so, note it; if not, it is counted as dropped."""
        share = self._room * _SHARE
        most = share if status < _REFUSED else self._room
        if len(self._noted) >= most or self._of_customer[customer_id] >= share:
            self._too_many += bool(self._most_per_s)  # with 0 there is no log, and nothing to count
            return False
        return True

    def note(self, request: NotedRequest) -> None:
        """Notes a request."""
        self._of_customer[request.principal.customer_id] += 1
        self._noted.append(request)

    async def close(self) -> None:
        """Writes the noted requests, if the database is available."""
        self._writer.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._writer
        await self.flush()

    async def _write_for_ever(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            await self.flush()

    async def flush(self) -> None:
        """Writes the noted requests, and makes room for those of one more second."""
        noted, self._noted = self._noted, []
        too_many, self._too_many = self._too_many, 0
        self._of_customer.clear()
        self._room = min(self._room - len(noted) + self._most_per_s, self._most_per_s * _BURST_S)
        if too_many:
            _TOO_MANY.inc(too_many)
        for part in (noted[start : start + _AT_ONCE] for start in range(0, len(noted), _AT_ONCE)):
            try:
                await self._insert(part)
            except _TROUBLE as error:
                _AWAY.inc(len(part))
                _log.warning("requests_not_logged", requests=len(part), error=type(error).__name__)

    async def _insert(self, noted: list[NotedRequest]) -> None:
        now_s = clock.passed_s()
        rows = [
            (
                one.principal.customer_id,
                one.principal.environment,
                now_s - one.ended_s + one.took_s,
                one.principal.key_id,
                one.method,
                one.route,
                None if one.path == one.route else loggable_path(one.path),
                one.status,
                one.problem,
                min(round(one.took_s * 1_000_000), _LONGEST_US),
                one.request_id.decode(),
                one.address,
            )
            for one in noted
        ]
        scope = for_customers((one.principal.customer_id, one.principal.environment) for one in noted)
        async with self._database.transaction(scope) as connection:
            await store.insert(connection, list(zip(*rows, strict=True)))
