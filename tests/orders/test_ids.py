"""The watch over the ids that are left."""

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from largesse.base import clock
from largesse.orders.ids import FEW_IDS, IdWatch


async def test_few_ids_are_warned_of_now_and_then() -> None:
    watch = IdWatch()
    with capture_logs() as logs:
        watch.note(FEW_IDS)
        assert not logs
        for left in (FEW_IDS - 1, FEW_IDS - 2, 0):
            watch.note(left)
            assert REGISTRY.get_sample_value("largesse_order_ids_left") == left
    assert [(entry["event"], entry["log_level"], entry["left"]) for entry in logs] == [
        ("order_ids_few", "warning", FEW_IDS - 1)
    ]


async def test_a_warning_comes_again_after_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = IdWatch()
    with capture_logs() as logs:
        for at_s in (100.0, 3699.9, 3700.0, 3700.1, 7299.9, 7300.0):
            monkeypatch.setattr(clock, "passed_s", lambda now_s=at_s: now_s)
            watch.note(int(at_s))
    assert [entry["left"] for entry in logs] == [100, 3700, 7300]
