"""By which words an order is found."""

from __future__ import annotations

import pytest

from largesse.reports.search import MAX_WORD, words_of, words_of_order, words_of_recipient


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, set()),
        ("", set()),
        ("Thank you, Zoë!", {"thank", "you", "zoe"}),
        ("ÅNGSTRÖM straße", {"angstrom", "strasse"}),
        ("O'Brien-Smith", {"brien", "smith"}),
        ("a b_c d2", {"d2"}),
        ("日本 語", {"日本"}),
        ("x" * 200, {"x" * MAX_WORD}),
    ],
)
def test_a_text_is_taken_apart_without_regard_to_case_and_accents(text: str | None, words: set[str]) -> None:
    assert words_of(text) == words


def test_a_recipient_is_found_by_address_and_name() -> None:
    words = set(words_of_recipient("Ada.Lovelace@Acme.example", "Ada King"))
    assert words == {"ada.lovelace@acme.example", "ada", "lovelace", "king"}
    assert set(words_of_recipient(None, None)) == set()


def test_an_order_is_found_by_its_own_reference_whole_and_in_parts() -> None:
    assert words_of_order(" PO-2030/17 ", ["Acme"], [("ben@acme.example", None)]) == {
        "po-2030/17",
        "po",
        "2030",
        "17",
        "acme",
        "ben@acme.example",
        "ben",
    }
