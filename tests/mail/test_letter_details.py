"""What a letter says of a gift beside its name: its picture, what it is, how to use it, on what terms. And the letter as a test."""

from __future__ import annotations

from dataclasses import replace
from email.message import EmailMessage

import pytest
from tests.mail.test_letter import Seen, a_letter, bodies, parse

from largesse.base.i18n.languages import LANGUAGES
from largesse.catalogue.model import Details


def test_a_letter_says_what_the_gift_is_how_to_use_it_and_on_what_terms() -> None:
    picture = "https://gifts.example.com/pictures/0123456789abcdef0123456789abcdef.png"
    details = Details("Hot\nand <fresh>.", "Show it.\nDrink it.", "No refunds & no cash.")
    html, text = bodies(parse(a_letter(picture=picture, details=details)))

    seen = Seen(html)
    assert seen.tags.count("img") == 1
    assert f'src="{picture}"' in html
    for said in ("Hot", "and <fresh>.", "How to use it", "Drink it.", "Terms", "No refunds & no cash."):
        assert said in seen.text
        assert said in text
    assert picture not in text
    assert text.index("Coffee House") < text.index("and <fresh>.") < text.index("How to use it") < text.index("Terms")


def test_a_letter_about_a_gift_of_which_nothing_is_said_has_no_picture_and_no_headings() -> None:
    html, text = bodies(parse(a_letter()))
    assert "<img" not in html
    for said in ("How to use it", "Terms"):
        assert said not in html
        assert said not in text


@pytest.mark.parametrize("ending", [0, 1])
def test_word_of_a_voucher_says_how_to_use_it(ending: int) -> None:
    details = Details("Hot.", "Show it.", "No refunds.")
    said = {kind: bodies(parse(a_letter(kind=kind, details=details)))[ending] for kind in ("voucher_ready", "shipped")}
    assert "Show it." in said["voucher_ready"]
    assert "Show it." not in said["shipped"]


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
