"""The web application's texts are in its catalogues, in every language it speaks, and nothing else is."""

import re
from collections.abc import Iterator
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest
from babel.messages.extract import extract_from_dir, extract_from_file
from babel.messages.pofile import read_po

from largesse.base import amounts
from largesse.base.i18n.languages import LANGUAGES
from largesse.web.console.layout import CATALOGUES, HERE, TEMPLATES

PLACEHOLDER = re.compile(r"%\(\w+\)s")
METHODS = [("**.py", "python"), ("**.html", "jinja2.ext.babel_extract")]
OPTIONS = {"**.html": {"trimmed": "true", "silent": "false"}}
# `say` and `text` in code and templates, `{% trans %}` in templates.
KEYWORDS = {"say": None, "text": None, "gettext": None, "ngettext": (1, 2)}
# Not said by us: the names of fields, which code reads from forms by a method called `text`, too. Templates read none.
NAME_OF_A_FIELD = re.compile(r"[a-z_]+")

Text = str | tuple[str, ...]


@cache
def texts() -> set[Text]:
    of_rooms = extract_from_dir(str(HERE), method_map=METHODS, options_map=OPTIONS, keywords=KEYWORDS)
    messages = [message for file, _, message, _, _ in of_rooms if file.endswith(".html") or not is_of_a_field(message)]
    # What is wrong with an amount is said by the web application and by commands.
    messages += [message for _, message, _, _ in extract_from_file("python", amounts.__file__, KEYWORDS)]
    return {message if isinstance(message, str) else tuple(message) for message in messages}


def is_of_a_field(message: Text) -> bool:
    return isinstance(message, str) and NAME_OF_A_FIELD.fullmatch(message) is not None


def catalogue(tag: str, folder: Path = CATALOGUES) -> Iterator[tuple[Path, Text, Text]]:
    """Each text of a language's files, with its translation."""
    for path in sorted((folder / tag).glob("*.po")):
        with path.open("rb") as file:
            for message in read_po(file, locale=tag):
                if message.id:
                    assert not message.fuzzy, message.id
                    yield path, message.id, message.string


def said_in(tag: str, folder: Path = CATALOGUES) -> dict[Text, Text]:
    """The translations of a language, of which each has the values of its text."""
    said: dict[Text, Text] = {}
    for path, text, translated in catalogue(tag, folder):
        assert text not in said, f"{path.name} says {text!r} once more"
        said[text] = translated
        wanted = sorted(PLACEHOLDER.findall(text if isinstance(text, str) else text[-1]))
        for form in [translated] if isinstance(translated, str) else list(translated):
            assert form, (path.name, text)
            assert sorted(PLACEHOLDER.findall(form)) == wanted, (path.name, text)
    return said


def untranslated(path: Path) -> list[str]:
    """The words of a template that no text has."""
    bare = re.sub(
        r"\{%[-+]?\s*trans.*?endtrans\s*-?%\}|\{#.*?#\}|\{[{%].*?[%}]\}", " ", path.read_text(), flags=re.DOTALL
    )
    bare = re.sub(r"<[^>]*>|/(?:app|office)/\S*|&amp;\w+=", " ", bare)  # what is left of addresses, too
    bare = re.sub(r'[\w-]+="[^"]*"', " ", bare).replace("Largesse", "").replace("autofocus", "")
    return bare.split() if re.search(r"[A-Za-z]{3,}", bare) else []


@pytest.mark.parametrize("tag", [tag for tag in LANGUAGES if tag != "en"])
def test_a_catalogue_says_everything_and_nothing_else(tag: str) -> None:
    said = said_in(tag)
    missing, unused = texts() - said.keys(), said.keys() - texts()
    assert not missing, f"say these in one of the files of web/console/locale/{tag}"
    assert not unused


# A word in the plural after a number that may be one: any word after some numbers, some words after any number but limits, which are above one.
COUNTED = re.compile(
    r"%\((count|all|codes|done|drafts|found|gifts|keys|left_out|minutes|number|orders|recipients|rows|shown|unclaimed)\)s"
    r" (?!of |more|characters)(\w+ )?\w+s\b"
    r"|%\((?!(?:most|least|limit|days|hours|longest|shortest|side|found|who)\))\w+\)s (?!of )(?:\w+ )?"
    r"(?:accounts|addresses|attempts|characters|codes|contacts|days|gifts|keys|mails|orders|people|recipients|rows|sends)\b"
)
# What is chosen by a comparison with one, where gettext would know how a language counts.
BY_HAND = re.compile(r"\{%-? if [^%]*== 1 -?%\}[^{]*\{% trans")


def has_own_colon(path: Path) -> bool:
    """Whether a template itself writes a colon behind a value."""
    plain = re.sub(r"{% trans.*?{% endtrans %}", "{{ said }}", path.read_text(), flags=re.DOTALL)
    return re.search(r'[}>]: |~ ": "', plain) is not None


def test_what_is_counted_has_a_singular() -> None:
    counted = {text for text in texts() if isinstance(text, str) and (COUNTED.search(text) or "(s)" in text)}
    assert not counted, "say these by ngettext, or {% pluralize %}"
    assert all(COUNTED.search(text) for text in ("%(count)s new gifts", "%(seen)s accounts")), "what it is to find"


def test_numbers_are_not_compared_to_choose_a_word() -> None:
    assert [path.name for path in TEMPLATES.rglob("*.html") if BY_HAND.search(path.read_text())] == []
    assert BY_HAND.search(
        "{% if count == 1 %}{% trans %}One gift{% endtrans %}{% else %}{% trans %}Gifts{% endtrans %}{% endif %}"
    )


def test_every_text_in_a_template_can_be_translated() -> None:
    paths = sorted(TEMPLATES.rglob("*.html"))
    assert len(paths) > 70, "those of folders too"
    assert {path.name: words for path in paths if (words := untranslated(path))} == {}


def test_a_colon_after_a_value_is_translated() -> None:
    """French has a blank before it."""
    assert [path.name for path in TEMPLATES.rglob("*.html") if has_own_colon(path)] == []


def test_no_language_has_the_sentences_of_another() -> None:
    """A sentence that two languages share was translated into one of them alone."""
    sentences: dict[str, set[str]] = {}
    for tag in LANGUAGES:
        if tag != "en":
            forms = (form for _, _, said in catalogue(tag) for form in ([said] if isinstance(said, str) else said))
            sentences[tag] = {form for form in forms if len(re.findall(r"[^\W\d_]{2,}", PLACEHOLDER.sub("", form))) > 2}
    for one, other in combinations(sentences, 2):
        assert not sentences[one] & sentences[other], (one, other)
