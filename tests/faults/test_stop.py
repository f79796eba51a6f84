"""SIGTERM under load: what was begun is finished, nothing is lost."""

import asyncio
import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import time
from typing import Any

import aiohttp
import psutil
import pytest


async def test_sigterm_drains(start_installation: Any, new_load: Any, check: Any, moments: random.Random) -> None:
    installation = start_installation()
    service = await asyncio.to_thread(installation.serve)
    load = new_load(installation)
    async with load.running():
        await load.serve_from(service.url)
        await load.settle(moments.randint(20, 60))
        large = asyncio.create_task(_send_large(installation, service.url))
        await load.settle(10)
        service.process.send_signal(signal.SIGTERM)
        code = await asyncio.to_thread(service.process.wait, 45)
        load.stopping = True
        await load.serve_from(None)
    assert code == 0
    placed_large = await large
    answered = {number for number, reply in load.settled.items() if reply.status == 200}
    # No order without its answer: the references of all others are unused, so that each is placed now, not 409.
    unanswered = load.started - load.settled.keys()
    service = await asyncio.to_thread(installation.serve)
    again = new_load(installation)
    again.started, again.settled = load.started, load.settled
    async with again.running(clients=0), aiohttp.ClientSession() as session:
        for number in unanswered:
            reply = await again._send(session, service.url, number)
            assert reply.status == 200, number
            again.settled[number] = reply
        # The large one, once more: known already if and only if it was answered.
        assert await _send_large(installation, service.url) == (409 if placed_large == 200 else 200)
    assert answered
    report = await asyncio.to_thread(installation.verify)
    assert report["counted"]["orders"] == len(load.started) + 1
    assert await asyncio.to_thread(service.terminate) == 0


async def _send_large(installation: Any, url: str) -> int:
    """The status of an order of 5,000 codes; 0 when the connection broke."""
    body = {
        "productId": installation.id("products", "coffee"),
        "value": 5,
        "codeQuantity": 5000,
        "externalReference": "large",
    }
    headers = {"Authorization": f"Bearer {installation.world['api_keys']['globex-prod']}"}
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{url}/send/gift", json=body, headers=headers) as response,
        ):
            await response.read()
            return response.status
    except aiohttp.ClientError:
        return 0


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_an_idle_service_ends_well(start_installation: Any, ending: signal.Signals) -> None:
    installation = start_installation()
    service = installation.serve()
    service.process.send_signal(ending)
    assert service.process.wait(45) == 0
    assert "Traceback" not in service.log.read_text()
    if installation.is_embedded:
        assert installation.postmaster() is None


@pytest.mark.long
@pytest.mark.parametrize("command", ["worker", "serve"])
def test_a_start_that_waits_for_a_silent_database_ends_well(command: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.create_server(("127.0.0.1", 0)) as probe:
        silent.settimeout(30)
        address = f"postgresql://u:p@127.0.0.1:{silent.getsockname()[1]}/largesse"
        options = ["--port", str(probe.getsockname()[1])] if command == "serve" else []
        probe.close()
        process = subprocess.Popen(
            [sys.executable, "-m", "largesse", command, *options],
            env={**os.environ, "LARGESSE_DATABASE_URL": address, "LARGESSE_MASTER_KEY": "7a" * 32},
            stderr=subprocess.PIPE,
        )
        connection, _ = silent.accept()
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
        connection.close()
    assert (process.returncode, said) == (0, b"")


def test_several_processes_end_together(start_installation: Any) -> None:
    installation = start_installation()
    service = installation.serve(extra=("--processes", "2"))
    parent = psutil.Process(service.process.pid)
    parent.suspend()  # a terminal that closes tells all at once: none ends before the others know
    for process in (parent, *_serving(parent)):
        process.send_signal(signal.SIGHUP)
    parent.resume()
    assert service.process.wait(45) == 0
    assert "serving_process_ended" not in service.log.read_text()
    assert "Traceback" not in service.log.read_text()
    if installation.is_embedded:
        assert installation.postmaster() is None


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL])
async def test_several_processes_end_with_the_one_that_started_them(start_installation: Any, ending: int) -> None:
    installation = start_installation()
    service = await asyncio.to_thread(installation.serve, extra=("--processes", "2"))
    service.process.send_signal(ending)
    code = await asyncio.to_thread(service.process.wait, 45)
    assert code == (0 if ending == signal.SIGTERM else -ending)
    await asyncio.to_thread(_wait_until_free, service.port)


@pytest.mark.long
def test_processes_still_starting_end_with_the_one_that_started_them(start_installation: Any) -> None:
    service = start_installation().serve(wait=False, extra=("--processes", "2"))
    parent = psutil.Process(service.process.pid)
    deadline = time.monotonic() + 45
    while len(children := _serving(parent)) < 2:
        assert time.monotonic() < deadline, "the serving processes did not start"
        time.sleep(0.001)
    service.process.kill()
    service.process.wait(45)
    _, alive = psutil.wait_procs(children, 45)
    assert not alive


def _serving(parent: psutil.Process) -> list[psutil.Process]:
    """The children that serve, or are about to; another one only watches over shared resources."""
    serving = []
    for child in parent.children():
        with contextlib.suppress(psutil.Error):  # between its fork and its program it has no command line
            if any("spawn_main" in word for word in child.cmdline()):
                serving.append(child)
    return serving


def _wait_until_free(port: int) -> None:
    """Nobody may go on listening, so that the next service can."""
    deadline = time.monotonic() + 45
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            return
        time.sleep(0.05)
    raise AssertionError(f"somebody still listens on port {port}")
