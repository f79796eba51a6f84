"""The wiring of a serving process and of a worker."""

import asyncio
import gc
import os
import signal
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.waiting import until

from largesse.base.settings import Settings, load_settings
from largesse.cli.service import _work
from largesse.db.postmaster import end_orphans_for_ever
from largesse.db.roles import Role
from largesse.db.session import UNLIMITED
from largesse.installation import open_database
from largesse.main import GC_THRESHOLDS, build_app


@pytest.fixture
def usual_thresholds():
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    return replace(
        load_settings({}),
        database_url=database_url,
        owner_database_url=database_url,
        data_dir=tmp_path,
        master_keys=(bytes(32),),
    )


async def _seldom() -> None:
    """Waits until the thresholds are those of a process that has loaded its code."""
    await until(lambda: gc.get_threshold() == GC_THRESHOLDS)


async def test_a_serving_process_collects_garbage_seldom_and_passes_over_what_stays(
    settings: Settings, usual_thresholds: None
):
    sent: list[str] = []
    frozen_before = gc.get_freeze_count()

    async def receive() -> dict[str, str]:
        if sent:
            await _seldom()
            assert gc.get_freeze_count() > frozen_before
        return {"type": "lifespan.startup"}

    async def send(message: dict[str, str]) -> None:
        sent.append(message["type"])

    await build_app(settings)({"type": "lifespan"}, receive, send)

    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


async def test_a_worker_collects_garbage_as_seldom(settings: Settings, usual_thresholds: None):
    working = asyncio.create_task(_work(settings))
    await _seldom()
    os.kill(os.getpid(), signal.SIGTERM)
    await working


@pytest.mark.parametrize(
    ("role", "ends"),
    # The office is part of a serving process, which ends them already.
    [(Role.APP, True), (Role.WORKER, True), (Role.OFFICE, False), (Role.OPERATOR, False)],
)
async def test_a_process_ends_orphans_once_and_a_command_none(settings: Settings, role: Role, ends: bool) -> None:
    async with open_database(settings, role=role, limits=UNLIMITED):  # as for `largesse migrate`
        names = [getattr(task.get_coro(), "__name__", "") for task in asyncio.all_tasks()]
    assert (end_orphans_for_ever.__name__ in names) == ends
