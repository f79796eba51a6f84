"""Keeps sessions for work that comes again at once, such as the next batch of orders.

For an order that comes alone, to take a session from the driver's pool and to return it is a tenth of the serving process's work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from largesse.base.clock import passed_s

KEEP_S = 0.05
_Session: TypeAlias = "PoolConnectionProxy[asyncpg.Record]"


class KeptSessions:
    """Sessions that one kind of work has used within KEEP_S. Later, `give_back` returns them to the pool."""

    def __init__(self, give_back: Callable[[_Session], Awaitable[None]]) -> None:
        self._give_back = give_back
        self._kept: list[tuple[_Session, float]] = []  # with the time of their last use, in its order
        self._giving_back: asyncio.Task[None] | None = None

    def take(self) -> _Session | None:
        """Returns the session that was used last, if there is one that still works."""
        while self._kept:
            session, _ = self._kept.pop()
            if not is_lost(session):
                return session
        return None

    def keep(self, session: _Session) -> bool:
        """Keeps a session after its use. Returns False for one that is lost or still in a transaction: the caller gives it back."""
        if is_lost(session) or session.is_in_transaction():
            return False
        self._kept.append((session, passed_s()))
        if self._giving_back is None or self._giving_back.done():
            self._giving_back = asyncio.create_task(self._give_back_unused())
        return True

    async def _give_back_unused(self) -> None:
        while self._kept:
            await asyncio.sleep(KEEP_S)
            until = passed_s() - KEEP_S
            while self._kept and self._kept[0][1] <= until:
                await self._give_back(self._kept.pop(0)[0])

    async def close(self) -> None:
        """Waits until all sessions are returned to the pool, which is soon after their last use."""
        if self._giving_back is not None:
            await self._giving_back


def is_lost(session: Any) -> bool:
    """Returns whether a session's connection is closed."""
    try:
        return bool(session.is_closed())
    except asyncpg.InterfaceError:  # the pool has noticed it already
        return True
