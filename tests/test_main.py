"""The wiring of a serving process."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path

import pytest

from largesse.base.settings import load_settings
from largesse.main import GC_THRESHOLDS, build_app


@pytest.fixture
def usual_thresholds():
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


async def test_a_serving_process_collects_garbage_seldom_and_passes_over_what_stays(
    database_url: str, tmp_path: Path, usual_thresholds: None
):
    settings = replace(
        load_settings({}),
        database_url=database_url,
        owner_database_url=database_url,
        data_dir=tmp_path,
        master_keys=(bytes(32),),
    )
    sent: list[str] = []
    frozen_before = gc.get_freeze_count()

    async def receive() -> dict[str, str]:
        if sent:
            assert gc.get_threshold() == GC_THRESHOLDS
            assert gc.get_freeze_count() > frozen_before
        return {"type": "lifespan.startup"}

    async def send(message: dict[str, str]) -> None:
        sent.append(message["type"])

    await build_app(settings)({"type": "lifespan"}, receive, send)

    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
