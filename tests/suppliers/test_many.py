"""Many lines over two suppliers that fail in every way, with worker processes that are killed: each line gets one voucher, and the costs add up."""

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.suppliers.conftest import SETTLED, claim, pool, states, verified
from tests.suppliers.conftest import WORLD as WORLD  # noqa: PLC0414 - the service's
from tests.suppliers.server import ENVIRON, SupplierServer, describe, serving

from largesse.db.scope import WORKER

ALL = {
    "well": 60, "pending": 8, "refuse": 8, "lose_request": 4, "lose_answer": 6, "time_out": 3, "late": 3, "no_json": 3, "foreign": 2,
    "twice": 2, "malformed": 2,
}  # fmt: skip
_LATE_AND_OPEN = """
    SELECT count(*) FROM supplier_orders WHERE state IN ('new', 'asked', 'pending', 'cancelling', 'late')
"""
_ASKED = "SELECT count(*) FROM supplier_orders WHERE state <> 'new'"


class Workers:
    """Processes of `largesse worker`, killed one after the other."""

    def __init__(self, service: Any, folder: Path, descriptions: list[Path]) -> None:
        self._folder = folder
        self._environ = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "LARGESSE_DATABASE_URL": service.database_url,
            "LARGESSE_MASTER_KEY": service.settings.master_keys[0].hex(),
            "LARGESSE_SUPPLIERS": ",".join(map(str, descriptions)),
            **ENVIRON,
        }
        self._running: list[subprocess.Popen[bytes]] = []
        self.killed = 0

    def start(self) -> None:
        with (self._folder / "worker.log").open("ab") as log:
            self._running.append(
                subprocess.Popen(
                    [sys.executable, "-m", "largesse", "worker"],
                    env=self._environ,
                    cwd=self._folder,
                    stdout=log,
                    stderr=log,
                )
            )

    def kill_one(self) -> None:
        victim = self._running.pop(0)
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        self.killed += 1
        self.start()

    def stop(self) -> None:
        for process in self._running:
            process.kill()
            process.wait()


@contextlib.asynccontextmanager
async def killing(database: Any, workers: Workers, every_s: float) -> AsyncIterator[None]:
    """Kills a process as soon as something is bought, and then again and again, each time once more was bought.

    On a busy machine, a process may need longer to start than it is given to live.
    """

    async def go_on() -> None:
        chance = random.Random(1)
        before = 0
        while True:
            while (asked := await database.fetchval(WORKER, _ASKED)) <= before:  # noqa: ASYNC110 - other processes do it
                await asyncio.sleep(0.05)
            before = asked
            await asyncio.to_thread(workers.kill_one)
            await asyncio.sleep(every_s * chance.uniform(0.7, 1.3))

    task = asyncio.create_task(go_on())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until_none(database: Any, patience_s: float) -> None:
    async with asyncio.timeout(patience_s):
        while await database.fetchval(WORKER, _LATE_AND_OPEN):  # noqa: ASYNC110 - other processes do it
            await asyncio.sleep(0.2)


@pytest.mark.long
@pytest.mark.parametrize(
    ("lines", "kill_every_s"),
    [
        pytest.param(120, 4.0, marks=pytest.mark.timeout(400)),
        pytest.param(10_000, 20.0, marks=[pytest.mark.long, pytest.mark.timeout(3_000)]),
    ],
)
async def test_each_line_gets_one_voucher_and_costs_add_up(
    service: Any, tmp_path: Path, lines: int, kill_every_s: float
) -> None:
    first = SupplierServer(ALL, seed=1, prefix=f"A{lines}", cost=910)
    second = SupplierServer({**ALL, "refuse": 1}, seed=2, prefix=f"B{lines}", cost=870, can_cancel=False)
    with serving(first), serving(second):
        paths = []
        for name, server in (("cards", first), ("other", second)):
            paths.append(tmp_path / f"{name}.yaml")
            paths[-1].write_text(yaml.safe_dump(describe(name, server, timeout_s=0.6, attempts=4)))
        workers = Workers(service, tmp_path, paths)
        async with pool(service) as (database, vault):
            keys = []
            for start in range(0, lines, 500):
                keys += await claim(database, service, "bought", min(500, lines - start))
            try:
                workers.start()
                workers.start()
                async with killing(database, workers, kill_every_s):
                    await until_none(database, 240 + lines * 0.2)
                await asyncio.sleep(3.0)  # the last late orders arrive, and are looked for
                await until_none(database, 120)
                await _settle_late(database, first, second)
            finally:
                workers.stop()
            served = await states(database)
            waiting = await database.fetchval(WORKER, "SELECT count(*) FROM voucher_waits")
            assert served["line fulfilled"] + waiting == lines, served
            assert waiting <= lines // 20
            assert workers.killed >= 1
            for server in (first, second):
                assert set(server.order_calls.values()) == {1}, "an order call was made twice under one id"
                assert server.wrong_signatures == 0
            paid = await database.fetchval(WORKER, "SELECT sum(cost_minor) FROM supplier_costs")
            assert paid == first.charged + second.charged
            handed = await database.fetchval(
                WORKER,
                "SELECT count(DISTINCT (customer_id, order_id, number)) FROM vouchers WHERE order_id IS NOT NULL",
            )
            assert handed == served["line fulfilled"]
            assert (await verified(database, vault)).findings == []
            log = (tmp_path / "worker.log").read_text()
            assert not any(order.number in log for order in [*first.orders.values(), *second.orders.values()])
            print(lines, served, dict(first.behaved), dict(second.behaved), workers.killed)  # noqa: T201 - for the report


async def _settle_late(database: Any, *servers: SupplierServer) -> None:
    """Waits until what the suppliers charge for is what was recorded: late orders are looked for at growing intervals."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(90):
            while True:
                paid = await database.fetchval(WORKER, "SELECT coalesce(sum(cost_minor), 0) FROM supplier_costs")
                if paid == sum(server.charged for server in servers) and await database.fetchval(WORKER, SETTLED):
                    return
                await asyncio.sleep(0.5)
