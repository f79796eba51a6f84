"""Pacing: refusals leave one after another, so that guessers who wait for answers cannot use the process up.

A lone refusal leaves at once. Only who refuses many, and so is being guessed at, makes them wait, all alike.
"""

from __future__ import annotations

import asyncio

_LONGEST_WAIT_S = 30.0


class Pacer:
    """Lets `per_s` through a second."""

    def __init__(self, per_s: float) -> None:
        self._every_s = 1 / per_s
        self._next_s = 0.0

    async def turn(self) -> None:
        """Waits for the next turn."""
        now_s = asyncio.get_running_loop().time()
        at_s = min(max(now_s, self._next_s), now_s + _LONGEST_WAIT_S)
        self._next_s = at_s + self._every_s
        if at_s > now_s:
            await asyncio.sleep(at_s - now_s)
