"""Runs acts in the order of their times, and sets the database's clock to each time."""

import asyncio
import heapq
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from itertools import count
from typing import NamedTuple

from largesse.base import clock
from largesse.db.clock import move_clock
from largesse.db.pool import Connection

_TOGETHER = timedelta(minutes=40)  # acts within this time run at one time of the database's clock
_AT_ONCE = 8

Act = Callable[[], Awaitable[None]]


class _Due(NamedTuple):
    """An act and its time. `number` keeps acts with the same time in the order in which they were added."""

    at: datetime
    number: int
    act: Act


def working_days(today: datetime, days: int) -> list[datetime]:
    """Returns the midnights of the last `days` working days before today, oldest first."""
    found: list[datetime] = []
    day = today.replace(hour=0, minute=0, second=0, microsecond=0)
    while len(found) < days:
        day -= timedelta(days=1)
        if day.weekday() < 5:
            found.append(day)
    return found[::-1]


class Timeline:
    """A schedule of acts. `owner` is a connection of the tables' owner, the only role that can move the clock."""

    def __init__(self, owner: Connection, days: int) -> None:
        self._owner = owner
        self._days = working_days(clock.now(), days)
        self._due: list[_Due] = []
        self._numbers = count()
        self.now = self._days[0]

    def on(self, day: int, minute: int, act: Act) -> None:
        """Adds an act at a minute of a working day."""
        self.at(self._days[day] + timedelta(minutes=minute), act)

    def after(self, minutes: float, act: Act) -> None:
        """Adds an act that many minutes after the current act."""
        self.at(self.now + timedelta(minutes=minutes), act)

    def at(self, at: datetime, act: Act) -> None:
        """Adds an act at an instant."""
        heapq.heappush(self._due, _Due(at, next(self._numbers), act))

    async def run(self, settle: Act) -> None:
        """Runs the acts that are due until now, and `settle` after each group of acts. Leaves out acts in the future."""
        while self._due and self._due[0].at < clock.now():
            first = self._due[0].at
            await self.move(first)
            acts = []
            while self._due and self._due[0].at < min(first + _TOGETHER, clock.now()):
                acts.append(heapq.heappop(self._due).act)
            for start in range(0, len(acts), _AT_ONCE):
                await asyncio.gather(*(act() for act in acts[start : start + _AT_ONCE]))
            await settle()

    async def move(self, to: datetime | None = None) -> None:
        """Sets the clock to an instant, by default to the present."""
        self.now = to or clock.now()
        await move_clock(self._owner, self.now - clock.now() if to else timedelta())
