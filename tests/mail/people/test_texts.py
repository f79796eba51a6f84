"""The mail to people who sign in is said in every language."""

from __future__ import annotations

import pytest
from babel.messages.pofile import read_po
from jinja2.ext import babel_extract

from largesse.base.i18n.languages import LANGUAGES
from largesse.mail.people.writing import CATALOGUES, TEMPLATES


@pytest.mark.parametrize("tag", [tag for tag in LANGUAGES if tag != "en"])
def test_a_catalogue_says_everything_and_nothing_else(tag: str) -> None:
    with (TEMPLATES / "mail.txt").open("rb") as file:
        texts = {text for _, _, text, _ in babel_extract(file, ("gettext",), (), {"trimmed": "true"})}
    with (CATALOGUES / f"{tag}.po").open("rb") as file:
        said = {message.id: message.string for message in read_po(file, locale=tag) if message.id}
    assert said.keys() == texts
    assert all(said.values())
