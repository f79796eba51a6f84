"""Every page with texts that are 40 % longer than the English ones: a language of its own, whose catalogue is made of them.

No text is cut off, stands outside of what it belongs to, or is broken inside a word, at any width.
"""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from babel.messages.catalog import Catalog
from babel.messages.pofile import write_po
from tests.base.i18n.test_catalogues import texts as texts_of_recipients
from tests.browser.conftest import Demo, let_in, started_demo
from tests.browser.looks import WIDTHS, every_page, wrong_with
from tests.walks import tree
from tests.walks.test_patches import LAST
from tests.web.console.test_texts import texts as texts_of_people

TAG = "eo"  # browsers know it, and nothing else speaks it here
LINE = f'        Language("{TAG}", "Esperanto", Locale("en", "GB")),\n'
# Placeholders, tags and addresses stay as they are.
KEPT = re.compile(r"(%\(\w+\)s|<[^>]*>|&\w+;|%%)")


def longer(text: str) -> str:
    """A text of 140 % of its length: with each vowel twice, and more letters where that is not enough."""
    parts = KEPT.split(text)
    parts[::2] = [re.sub("[aeiou]", lambda vowel: vowel[0] * 2, part) for part in parts[::2]]
    said = "".join(parts)
    lacks = math.ceil(1.4 * len(text)) - len(said)
    return said + ("o" * lacks if lacks < 3 else f" {'lo' * math.ceil((lacks - 1) / 2)}")


def write_catalogue(path: Path, texts: set[Any]) -> None:
    catalogue = Catalog(locale=TAG)
    for text in texts:
        catalogue.add(text, longer(text) if isinstance(text, str) else tuple(map(longer, text)))
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        write_po(file, catalogue)


@pytest.fixture(scope="module")
def long_demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    copy = tree.copy_tree(tmp_path_factory.mktemp("long"))
    languages = copy / "src/largesse/base/i18n/languages.py"
    declared = languages.read_text()
    assert declared.count(LAST) == 1
    languages.write_text(declared.replace(LAST, LAST + LINE))
    write_catalogue(copy / f"src/largesse/base/i18n/locale/{TAG}.po", texts_of_recipients())
    write_catalogue(copy / f"src/largesse/web/console/locale/{TAG}/all.po", texts_of_people())
    with started_demo(tmp_path_factory.mktemp("long-demo"), PYTHONPATH=str(copy / "src")) as demo:
        yield demo


def test_texts_are_long() -> None:
    for text in ("Send", "All orders", "%(count)s orders of %(name)s"):
        assert len(longer(text)) >= 1.4 * len(text)
    assert longer("%(count)s gifts <b>now</b>").startswith("%(count)s giifts <b>noow</b>")


@pytest.mark.long
@pytest.mark.timeout(600)
def test_longer_texts_break_no_page(browser: Any, long_demo: Demo) -> None:
    admin = let_in(long_demo)
    paths = every_page(long_demo, admin)
    assert len(paths) > 30
    context = browser.new_context(storage_state=admin, locale=TAG, reduced_motion="reduce")
    page, wrong = context.new_page(), []
    for path in paths:
        page.goto(long_demo.url + path)
        assert page.locator("html").get_attribute("lang") == TAG, path
        for width in WIDTHS:
            wrong += [f"{path} at {width}: {what}" for what in wrong_with(page, width)]
    context.close()
    assert not wrong, "\n".join(wrong)
