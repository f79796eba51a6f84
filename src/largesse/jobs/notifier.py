"""Wakes workers by NOTIFY when the outbox has new rows. Workers also poll, in case a notification is lost.

NOTIFY locks the whole database until its transaction commits, so an order never sends one. The placer notifies afterwards, at most once in
NOTIFY_EVERY_S. A lost notification delays work by at most POLL_S.
"""

import asyncio
import contextlib
from collections.abc import Callable
from enum import StrEnum
from typing import Any

import structlog

from largesse.db.pool import DATABASE_AWAY, Connection, Database
from largesse.db.scope import WORKER

POLL_S = 0.25
NOTIFY_EVERY_S = 0.05
_CHANNEL = "largesse_outbox"
_RECONNECT_S = 1.0
_HEARTBEAT_S = 15.0

log = structlog.get_logger(__name__)


class News(StrEnum):
    """The kinds of notifications, by their payloads."""

    ORDERS = "orders"  # Orders were placed. What delivers is woken later, when their deliveries and messages are made.
    OUTBOX = ""  # Something waits to be delivered.
    EVERYTHING = "everything"  # All periodic tasks run at once.


_KNOWN_NEWS = frozenset(News)


async def notify(connection: Connection, news: News = News.OUTBOX) -> None:
    """Wakes every worker, in a transaction after its commit."""
    await connection.execute(f"NOTIFY {_CHANNEL}, '{news}'")


class Notifier:
    """Notifies of new orders, for a process that places many. `notify_soon` is cheap and never waits."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._notifying: asyncio.Task[None] | None = None
        self._again = False

    def notify_soon(self) -> None:
        """Wakes the workers soon. Several calls share one NOTIFY."""
        if self._notifying is not None and not self._notifying.done():
            self._again = True
            return
        self._notifying = asyncio.create_task(self._notify())

    async def close(self) -> None:
        """Waits for the last NOTIFY."""
        if self._notifying is not None:
            await self._notifying

    async def _notify(self) -> None:
        self._again = True
        while self._again:
            self._again = False
            try:
                async with self._database.connection(WORKER) as connection:
                    await notify(connection, News.ORDERS)
            except DATABASE_AWAY:
                return  # polling finds the work
            await asyncio.sleep(NOTIFY_EVERY_S)


class Waker:
    """Wakes one loop. Read `calls`, look for work, then call `wait` with the number read, so that no call in between is missed."""

    def __init__(self) -> None:
        self.calls = 0
        self._called = asyncio.Event()

    def wake(self) -> None:
        """Ends the current wait, or the next one."""
        self.calls += 1
        self._called.set()
        self._called = asyncio.Event()

    async def wait(self, heard: int, longest_s: float = POLL_S) -> None:
        """Waits until `calls` is above `heard`, at most `longest_s`."""
        if self.calls != heard:
            return
        called = self._called
        try:
            async with asyncio.timeout(longest_s):
                await called.wait()
        except TimeoutError:
            return


async def listen(database: Database, wake: Callable[[News], None]) -> None:
    """Calls `wake` for each notification until cancelled. It has its own connection, and opens a new one if that breaks.

    Whenever listening begins, `wake` is called with EVERYTHING, as earlier notifications were missed.
    """
    while True:
        try:
            async with database.connection(WORKER) as connection:
                await _listen_on(connection, wake)
        except DATABASE_AWAY:
            log.warning("outbox.not_listening")
        await asyncio.sleep(_RECONNECT_S)


async def _listen_on(connection: Connection, wake: Callable[[News], None]) -> None:
    def heard(*notification: Any) -> None:
        payload = notification[-1]
        wake(News(payload) if payload in _KNOWN_NEWS else News.OUTBOX)  # another release may send other payloads

    ended = asyncio.Event()
    connection.add_termination_listener(lambda _: ended.set())
    await connection.add_listener(_CHANNEL, heard)
    wake(News.EVERYTHING)  # notifications that were sent before were missed
    try:
        while not ended.is_set():
            try:
                async with asyncio.timeout(_HEARTBEAT_S):
                    await ended.wait()
            except TimeoutError:
                # Only a statement shows that the connection is broken.
                await connection.execute("SELECT")
    finally:
        # It still listens, so it cannot be used again. An error here must not replace the cancellation.
        with contextlib.suppress(*DATABASE_AWAY):
            await connection.close()
