"""Waits for what another thread, process or session does, and which tells nobody that it has happened."""

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any

LONGEST_S = 60.0  # what has not happened by then counts as not happening
_PAUSE_S = 0.02


def wait_until(look: Callable[[], Any], longest_s: float = LONGEST_S) -> Any:
    """Calls `look` again and again until what it returns is true, and returns that."""
    ends_s = time.monotonic() + longest_s
    while not (found := look()):
        assert time.monotonic() < ends_s, f"it has not happened within {longest_s:.0f} s"
        time.sleep(_PAUSE_S)
    return found


async def until(look: Callable[[], Any], longest_s: float = LONGEST_S) -> Any:
    """Does the same in a coroutine. `look` may be a coroutine function, too."""
    async with asyncio.timeout(longest_s):
        while True:
            found = look()
            found = await found if inspect.isawaitable(found) else found
            if found:
                return found
            await asyncio.sleep(_PAUSE_S)
