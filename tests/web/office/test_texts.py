"""The back office's texts are in its catalogues or in those of the web application, in every language, and nothing else is."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po
from tests.web.console.test_texts import KEYWORDS, METHODS, NAME_OF_A_FIELD, OPTIONS, PLACEHOLDER, Text

from largesse.base.i18n.languages import LANGUAGES
from largesse.web.console.layout import CATALOGUES as OF_CONSOLE
from largesse.web.office.context import CATALOGUES, HERE, TEMPLATES

TAGS = [tag for tag in LANGUAGES if tag != "en"]


def texts() -> set[Text]:
    found = extract_from_dir(str(HERE), method_map=METHODS, options_map=OPTIONS, keywords=KEYWORDS)
    messages = {
        message if isinstance(message, str) else tuple(part for part in message if part is not None)
        for _, _, message, _, _ in found
    }
    return {one for one in messages if not (isinstance(one, str) and NAME_OF_A_FIELD.fullmatch(one))}


def catalogue(folder: Path, tag: str) -> dict[Text, Text]:
    said: dict[Text, Text] = {}
    for path in sorted((folder / tag).glob("*.po")):
        with path.open("rb") as file:
            for message in read_po(file, locale=tag):
                if message.id:
                    assert not message.fuzzy, message.id
                    assert said.setdefault(message.id, message.string) == message.string, (path, message.id)
    return said


@pytest.mark.parametrize("tag", TAGS)
def test_a_catalogue_says_everything_and_nothing_else(tag: str) -> None:
    own, shared, wanted = catalogue(CATALOGUES, tag), catalogue(OF_CONSOLE, tag), texts()
    missing = wanted - own.keys() - shared.keys()
    assert not missing, f"say these in one of the files of web/office/locale/{tag}"
    assert not own.keys() - wanted
    assert not own.keys() & shared.keys(), "the web application has these"


@pytest.mark.parametrize("tag", TAGS)
def test_each_text_has_its_values(tag: str) -> None:
    for text, translated in catalogue(CATALOGUES, tag).items():
        forms = [translated] if isinstance(translated, str) else list(translated)
        wanted = sorted(PLACEHOLDER.findall(text if isinstance(text, str) else text[-1]))
        for form in forms:
            assert form, text
            assert sorted(PLACEHOLDER.findall(form)) == wanted, text


def test_every_text_in_a_template_can_be_translated() -> None:
    for path in sorted(TEMPLATES.rglob("*.html")):
        bare = re.sub(
            r"\{%[-+]?\s*trans.*?endtrans\s*-?%\}|\{#.*?#\}|\{[{%].*?[%}]\}", " ", path.read_text(), flags=re.DOTALL
        )
        bare = re.sub(r"<[^>]*>|/office/\S*|&amp;\w+=", " ", bare)
        bare = re.sub(r'[\w-]+="[^"]*"', " ", bare).replace("Largesse", "")
        assert not re.search(r"[A-Za-z]{3,}", bare), (path.name, bare.split())


def test_no_language_has_the_words_of_another() -> None:
    both = [{**catalogue(OF_CONSOLE, tag), **catalogue(CATALOGUES, tag)} for tag in TAGS]
    same = {text for one, other in combinations(both, 2) for text, said in one.items() if text != said == other[text]}
    assert same == {"Address", "Margin"}, "these are the same word in French and in German"
