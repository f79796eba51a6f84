"""An optional member of an order is declared once: `costCentre` touches five files at most (CONTRIBUTING.md)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.walks import tree

PATCH = Path(__file__).with_name("cost_centre.patch")


@pytest.mark.slow
def test_an_optional_member_more_takes_five_files_at_most(tmp_path: Path, server_url: str) -> None:
    copy = tree.copy_tree(tmp_path)
    touched = tree.apply(PATCH, copy)
    assert len(touched) <= 5, touched
    tree.run(copy, server_url, "tests/web/api/test_cost_centre.py", "tests/privacy/test_cost_centre.py")


@pytest.mark.long
def test_a_patch_that_no_longer_applies_is_told(tmp_path: Path) -> None:
    copy = tree.copy_tree(tmp_path / "tree")
    patch = tmp_path / "stale.patch"
    patch.write_text(PATCH.read_text().replace("\n     from_name: ", "\n     from_nobody: "))
    with pytest.raises(AssertionError, match="patch does not apply"):
        tree.apply(patch, copy)
