"""A language more takes its line and its catalogue: pages and mail both speak it then."""

from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from babel.messages.pofile import write_po
from tests.base.i18n.test_catalogues import texts
from tests.walks import tree

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
