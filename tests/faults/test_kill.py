"""Under load, kill -9 of the serving process at any moment, and PostgreSQL stopped: the service answers 503 meanwhile, and recovers by itself."""

import asyncio
import os
import random
import signal
from typing import Any

import pytest


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_killed_again_and_again_no_order_is_lost_halved_or_charged_twice(
    start_installation: Any, new_load: Any, check: Any, rounds: int, moments: random.Random
) -> None:
    installation = start_installation()
    load = new_load(installation)
    service = await asyncio.to_thread(installation.serve)
    left_behind = installation.postmaster() if installation.is_embedded else None
    async with load.running():
        for _ in range(rounds):
            await load.serve_from(service.url)
            await load.settle(moments.randint(1, 80))
            await asyncio.sleep(moments.uniform(0, 0.02))  # anywhere between two answers
            await load.serve_from(None)
            await asyncio.to_thread(service.kill)
            service = await asyncio.to_thread(installation.serve)
            if left_behind is not None:
                # The server that the killed process left behind was found, not another one started.
                assert installation.postmaster() == left_behind
        await load.serve_from(service.url)
        await load.settle(50)
    assert load.statuses() <= {0, 200, 409}
    await check(installation, load, service)
    assert await asyncio.to_thread(service.terminate) == 0
    if left_behind is not None:
        assert installation.postmaster() is None


@pytest.mark.embedded
@pytest.mark.timeout(600)
@pytest.mark.long
@pytest.mark.parametrize(
    "how",
    [
        pytest.param(signal.SIGINT, id="fast", marks=pytest.mark.slow),
        pytest.param(signal.SIGQUIT, id="immediate", marks=pytest.mark.slow),
        pytest.param(signal.SIGKILL, id="killed"),
    ],
)
async def test_the_service_outlives_its_database(
    how: signal.Signals, start_installation: Any, new_load: Any, check: Any, rounds: int, moments: random.Random
) -> None:
    installation = start_installation(embedded=True)
    service = await asyncio.to_thread(installation.serve)
    load = new_load(installation)
    async with load.running():
        await load.serve_from(service.url)
        for _ in range(max(1, rounds // 3)):
            await load.settle(moments.randint(20, 60))
            server = installation.postmaster()
            os.kill(server.pid, how)
            await load.settle(60)  # more than were under way: the database is back
            assert installation.postmaster().pid != server.pid
    assert load.statuses() <= {200, 409, 503}
    assert all(reply.retry_after == "1" for reply in load.replies if reply.status == 503)
    await check(installation, load, service)
    assert await asyncio.to_thread(service.terminate) == 0
    assert installation.postmaster() is None
