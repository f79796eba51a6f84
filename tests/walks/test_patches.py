"""Changes that CONTRIBUTING.md describes touch as few files as it says, and work."""

from pathlib import Path

import pytest
from tests.walks import tree

COST_CENTRE, GIFT_CHOSEN = (Path(__file__).with_name(f"{name}.patch") for name in ("cost_centre", "gift_chosen"))


@pytest.mark.slow
def test_an_optional_member_more_takes_five_files_at_most(tmp_path: Path, server_url: str) -> None:
    """With the Python client, and a sixth where lists and events have the member, too."""
    copy = tree.copy_tree(tmp_path)
    touched = tree.apply(COST_CENTRE, copy)
    assert len(set(touched) - {"src/largesse/events/kinds.py"}) <= 5, touched
    tests = ("tests/web/api", "tests/privacy", "sdk/python/tests")
    tree.run(copy, server_url, *(f"{folder}/test_cost_centre.py" for folder in tests))


@pytest.mark.long
def test_an_event_more_takes_two_files_and_no_migration(tmp_path: Path, server_url: str) -> None:
    copy = tree.copy_tree(tmp_path)
    touched = tree.apply(GIFT_CHOSEN, copy)
    assert len(touched) <= 2, touched
    assert not any("migrations" in name for name in touched)
    tree.run(copy, server_url, "tests/walks/gift_chosen.py", "tests/events/test_kinds.py")


@pytest.mark.long
def test_a_patch_that_no_longer_applies_is_told(tmp_path: Path) -> None:
    copy = tree.copy_tree(tmp_path / "tree")
    patch = tmp_path / "stale.patch"
    patch.write_text(COST_CENTRE.read_text().replace("\n     from_name: ", "\n     from_nobody: "))
    with pytest.raises(AssertionError, match="patch does not apply"):
        tree.apply(patch, copy)
