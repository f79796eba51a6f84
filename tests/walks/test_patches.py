"""Changes that CONTRIBUTING.md describes touch as few files as it says, and work. A language more takes its line and its catalogue."""

from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from babel.messages.pofile import write_po
from tests.base.i18n.test_catalogues import texts
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


LAST = '        Language("de", "Deutsch", Locale("de", "DE")),\n'
LINE = '        Language("is", "Íslenska", Locale("is", "IS")),\n'


def catalogue() -> Catalog:
    """Every text of pages and mail in brackets, where Icelandic would stand."""
    catalogue = Catalog(locale="is")
    for text in texts():
        forms = (text,) if isinstance(text, str) else text
        bracketed = tuple(f"⟦{form}⟧" for form in forms)
        catalogue.add(text, bracketed[0] if isinstance(text, str) else bracketed)
    return catalogue


@pytest.mark.long
def test_a_language_more_takes_its_line_and_its_catalogue(tmp_path: Path, server_url: str) -> None:
    copy = tree.copy_tree(tmp_path)
    i18n = copy / "src/largesse/base/i18n"
    languages = i18n / "languages.py"
    declared = languages.read_text()
    assert declared.count(LAST) == 1
    languages.write_text(declared.replace(LAST, LAST + LINE))
    with (i18n / "locale/is.po").open("wb") as file:
        write_po(file, catalogue())
    tree.run(copy, server_url, "tests/walks/icelandic.py", "tests/base/i18n/test_catalogues.py")
