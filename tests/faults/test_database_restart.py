"""PostgreSQL stopped under load: the service answers 503 meanwhile, and recovers by itself."""

import asyncio
import os
import random
import signal
from typing import Any

import pytest

pytestmark = [pytest.mark.embedded, pytest.mark.timeout(600)]


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
