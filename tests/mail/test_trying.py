"""The letter as a test, to whoever is about to send it."""

from __future__ import annotations

from dataclasses import replace
from email.message import EmailMessage

import pytest
from tests.mail.test_letter import Seen, a_letter, bodies, parse

from largesse.base.i18n.languages import LANGUAGES


@pytest.mark.parametrize("tag", list(LANGUAGES))
def test_a_test_says_that_it_is_one_before_anything_else(tag: str) -> None:
    letter = a_letter(language=LANGUAGES[tag])
    message, test = parse(letter), parse(replace(letter, is_test=True))
    assert test["Subject"] == f"[Test] {message['Subject']}"
    for words, said in zip(map(shown_text, (message, test)), (False, True), strict=True):
        assert all(("test" in one[:200].lower()) is said for one in words)


def shown_text(message: EmailMessage) -> tuple[str, str]:
    html, text = bodies(message)
    return Seen(html.partition("<table")[2]).text.strip(), text
