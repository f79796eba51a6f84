"""An event more, `gift.chosen`, touches two files beside tests and docs, and no migration."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.walks import tree

PATCH = Path(__file__).with_name("gift_chosen.patch")


@pytest.mark.long
def test_an_event_more_takes_two_files(tmp_path: Path, server_url: str) -> None:
    copy = tree.copy_tree(tmp_path)
    touched = tree.apply(PATCH, copy)
    assert len(touched) <= 2, touched
    assert not any("migrations" in name for name in touched)
    tree.run(copy, server_url, "tests/walks/gift_chosen.py", "tests/events/test_kinds.py")
