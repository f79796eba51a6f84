"""The back office's texts are in its catalogues or in those of the web application, in every language, and nothing else is."""

from functools import cache
from itertools import combinations

import pytest
from babel.messages.extract import extract_from_dir
from tests.web.console.test_texts import (
    KEYWORDS,
    METHODS,
    OPTIONS,
    Text,
    has_own_colon,
    is_of_a_field,
    said_in,
    untranslated,
)

from largesse.base.i18n.languages import LANGUAGES
from largesse.catalogue import content, editing, sheet
from largesse.web.office.context import CATALOGUES, HERE, TEMPLATES

TAGS = [tag for tag in LANGUAGES if tag != "en"]


@cache
def texts() -> set[Text]:
    found = extract_from_dir(str(HERE), method_map=METHODS, options_map=OPTIONS, keywords=KEYWORDS)
    messages = {
        message if isinstance(message, str) else tuple(part for part in message if part is not None)
        for _, _, message, _, _ in found
    }
    # What is wrong with a product or a file of them is said by commands, too.
    faults = {*content.FAULTS, *sheet.FAULTS, editing.KEY_TAKEN, editing.NOT_LATER}
    return faults | {one for one in messages if not is_of_a_field(one)}


@pytest.mark.parametrize("tag", TAGS)
def test_a_catalogue_says_everything_and_nothing_else(tag: str) -> None:
    own, shared, wanted = said_in(tag, CATALOGUES), said_in(tag), texts()
    missing = wanted - own.keys() - shared.keys()
    assert not missing, f"say these in one of the files of web/office/locale/{tag}"
    assert not own.keys() - wanted
    assert not own.keys() & shared.keys(), "the web application has these"


def test_every_text_in_a_template_can_be_translated() -> None:
    assert {path.name: words for path in TEMPLATES.rglob("*.html") if (words := untranslated(path))} == {}


def test_a_colon_after_a_value_is_translated() -> None:
    assert [path.name for path in TEMPLATES.rglob("*.html") if has_own_colon(path)] == []


def test_no_language_has_the_words_of_another() -> None:
    both = [{**said_in(tag), **said_in(tag, CATALOGUES)} for tag in TAGS]
    same = {text for one, other in combinations(both, 2) for text, said in one.items() if text != said == other[text]}
    assert same == {"Address", "Margin"}, "these are the same word in French and in German"
