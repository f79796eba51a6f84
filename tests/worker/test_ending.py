"""Ending a worker whose tasks lose their cancellation in the driver, as one that ends right after it began does."""

from __future__ import annotations

import asyncio

import asyncpg

from largesse.worker import _cancel


async def test_a_cancellation_that_is_lost_is_said_again() -> None:
    lost = 0

    async def lose_two() -> None:
        nonlocal lost
        while True:
            try:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    raise asyncpg.InterfaceError("cannot perform operation") from None
            except asyncpg.InterfaceError:
                lost += 1
                if lost == 3:
                    return

    tasks = [asyncio.create_task(lose_two())]
    await asyncio.sleep(0)
    async with asyncio.timeout(30):
        await _cancel(tasks)
    assert lost == 3
