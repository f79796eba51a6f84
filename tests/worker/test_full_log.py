"""A log that cannot be written: on a device that is always full, and on a disk that is full for a while."""

import asyncio
import json
import os
import re
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from tests.waiting import until
from tests.worker.conftest import PATIENCE_S, Works
from tests.worker.test_metrics import free_port

FULL = Path("/dev/full")

pytestmark = pytest.mark.skipif(not FULL.exists(), reason="no /dev/full on this system")


async def start(works: Works, *arguments: str, log: Path = FULL) -> asyncio.subprocess.Process:
    with log.open("ab", buffering=0) as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "largesse",
            *arguments,
            env={**os.environ, **works.environ},
            stdout=output,
            stderr=output,
        )
    works.workers.append(process)
    return process


async def told(url: str) -> str:
    async with httpx.AsyncClient() as client:
        with suppress(httpx.TransportError):
            return (await client.get(url)).text
    return ""


async def end(process: asyncio.subprocess.Process) -> int:
    process.send_signal(signal.SIGTERM)
    return await asyncio.wait_for(process.wait(), PATIENCE_S)


@pytest.mark.long
async def test_a_worker_on_a_full_log_works_and_ends(works: Works) -> None:
    port = free_port()
    worker = await start(works, "worker", "--metrics-port", str(port))
    ids = set(await works.place(20))
    await works.until_arrived(ids, ids)
    await works.until_settled()
    later = set(await works.place(3))
    await works.until_arrived(ids | later, ids | later)
    metrics = await told(f"http://127.0.0.1:{port}/metrics")
    lost = re.search(r"^largesse_log_lines_lost_total (\S+)", metrics, re.MULTILINE)
    assert lost
    assert float(lost[1]) >= 23, "a line for each message at least"
    assert re.search(r"^largesse_worker_loops [1-3]\d\.0", metrics, re.MULTILINE), "all loops are alive"
    assert not [
        line
        for line in metrics.splitlines()
        if line.startswith("largesse_worker_loop_restarts_total") and not line.endswith(" 0.0")
    ]
    assert await end(worker) == 0
    assert len(works.mail.got) == 23


@pytest.mark.long
async def test_serving_on_a_full_log_answers_and_ends(works: Works) -> None:
    port = free_port()
    process = await start(works, "serve", "--with-worker", "--port", str(port))

    async def answers() -> bool:
        assert process.returncode is None
        return '"pass"' in await told(f"http://127.0.0.1:{port}/health")

    await until(answers)
    ids = set(await works.place(3))
    await works.until_arrived(ids, ids)
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        assert (await client.get("/me")).status_code == 401
        assert (await client.post("/send/gift", content=b"{")).status_code == 401
        assert (await client.get("/docs")).status_code == 200
    assert await answers()
    assert await end(process) == 0


@pytest.mark.long
async def test_a_log_is_written_again_when_it_can_be(works: Works) -> None:
    """A limit on the size of files stands in for the disk: a write beyond it fails as on a full one."""
    log = works.folder / "worker.log"
    worker = await start(works, "worker", log=log)
    first = set(await works.place(3))
    await works.until_arrived(first, first)
    await works.until_logged("mail.message")
    _, hard = resource.prlimit(worker.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, (0, hard))
    await works.until_settled()
    size = log.stat().st_size
    second = set(await works.place(5))
    await works.until_arrived(first | second, first | second)
    await works.until_settled()
    assert log.stat().st_size == size
    resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, (hard, hard))
    third = set(await works.place(3))
    await works.until_arrived(first | second | third, first | second | third)
    await works.until_logged("log.lines_lost")
    assert await end(worker) == 0
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    [lost] = [line for line in lines if line["event"] == "log.lines_lost"]
    assert lost["lines"] >= 5
    assert lines[-1]["event"] == "worker.stopped"
    assert len(works.mail.got) == 11
