"""Many calls of one client: as many reach httpx as it has connections, and the others wait. Processes and event loops have their own."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from largesse_client import AsyncLargesse
from largesse_client.asking import Asker, RetryPolicy
from largesse_client.calls import get
from largesse_client.driving import MAX_CALLS, AsyncDriver, Driver
from largesse_client.models import Health

BASE = "http://service.example"
ANSWER = {"status": "pass", "version": "1"}
ASKER = Asker(BASE, RetryPolicy(attempts=1, total_s=0))


def test_hundreds_of_calls_that_are_awaited_take_turns() -> None:
    at_once, most = 0, 0

    async def handle(_: httpx.Request) -> httpx.Response:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.001)
        at_once -= 1
        return httpx.Response(200, json=ANSWER)

    async def call_all() -> list[Health]:
        async with httpx.AsyncClient(base_url=BASE, transport=httpx.MockTransport(handle)) as client:
            driver = AsyncDriver(lambda: client, ASKER, 30)
            return await asyncio.gather(*(driver.perform(lambda: get("/health", Health)) for _ in range(3 * MAX_CALLS)))

    assert len(asyncio.run(call_all())) == 3 * MAX_CALLS
    assert most == MAX_CALLS


def test_more_threads_than_connections_take_turns() -> None:
    entered, end = threading.Semaphore(0), threading.Event()

    def handle(_: httpx.Request) -> httpx.Response:
        entered.release()
        end.wait(30)
        return httpx.Response(200, json=ANSWER)

    with (
        httpx.Client(base_url=BASE, transport=httpx.MockTransport(handle)) as client,
        ThreadPoolExecutor(MAX_CALLS + 1) as threads,
    ):
        driver = Driver(lambda: client, ASKER, 30)
        calls = [threads.submit(driver.perform, lambda: get("/health", Health)) for _ in range(MAX_CALLS + 1)]
        assert all(entered.acquire(timeout=30) for _ in range(MAX_CALLS))
        is_one_more = entered.acquire(timeout=0.2)
        end.set()
        assert all(call.result() for call in calls)
    assert not is_one_more


FORKING = """
import os, sys
from largesse_client import Largesse

client = Largesse(sys.argv[1], "key")
client.health()
if not os.fork():
    client.health()
    os._exit(0)
assert os.wait()[1] == 0
client.health()
"""


def test_a_forked_process_opens_connections_of_its_own(listen, http_answer) -> None:
    requests = []

    def handle(connection) -> None:
        with connection.makefile("rb") as file:
            for line in iter(file.readline, b""):
                if line == b"\r\n":
                    requests.append(connection)
                    connection.sendall(http_answer("200 OK", "application/json", json.dumps(ANSWER)))

    subprocess.run([sys.executable, "-c", FORKING, listen(handle).url], check=True, timeout=60)
    first, of_child, last = requests
    assert first is last is not of_child


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_client_goes_on_in_another_event_loop(answer_with, http_answer) -> None:
    client = AsyncLargesse(answer_with(http_answer("200 OK", "application/json", json.dumps(ANSWER))).url, "key")

    async def call(*, closes: bool) -> list[Health]:
        answers = await asyncio.gather(*(client.health() for _ in range(MAX_CALLS + 1)))
        if closes:
            await client.aclose()
        return answers

    assert [len(asyncio.run(call(closes=closes))) for closes in (False, True)] == [MAX_CALLS + 1] * 2
    gc.collect()  # the first loop could not close its connections
