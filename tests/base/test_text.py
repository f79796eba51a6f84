"""Which characters texts and addresses may hold: the same for callers, seed files and pages. Cells that spreadsheets do not compute."""

import csv
import io
import unicodedata

import pytest

from largesse.base.email import MAX_EMAIL, EmailError, normalise_email
from largesse.base.errors import InvalidRequest, OperatorError
from largesse.base.text import cleaned, folded, free_key, plain_text, trimmed, unfit, unfit_key, without_apostrophe
from largesse.orders.options import read_key, read_text
from largesse.seed.reading import parse_seed
from largesse.web.claim.addresses import check_address

# Unicode's property Bidi_Control, whole.
BIDIRECTIONAL = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
CONTROL = "".join(chr(n) for n in (*range(0x20), *range(0x7F, 0xA0))) + "\ud800\udfff"
BREAKS = "\n\r\u2028\u2029"
# Joiners, marks, right-to-left letters, an emoji of several, and blanks of other scripts are text like any other.
FINE = ["\u200d", "\u200c", "e\u0301", "\u05e9\u05dc\u05d5\u05dd", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\U0001f469\u200d\U0001f680", "\u3000", "\u00a0", "\ufeff", "\ue000"]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Zoë Straße", "zoe strasse"),
        ("e\u0301" * 1_000, "e" * 1_000),
        ("\ufdfa" * 300, unicodedata.normalize("NFKD", "\ufdfa" * 300)),
        # Half a megabyte, as a body may have. Sorting the accents by their place once took minutes, while nothing else was answered.
        ("a" + "\u0301\u0316" * 250_000, "a"),
    ],
    ids=["words", "accents", "long signs", "many accents"],
)
def test_a_text_is_folded_however_many_accents_it_has(text: str, plain: str) -> None:
    assert folded(text) == plain


@pytest.mark.parametrize("character", BIDIRECTIONAL)
def test_no_text_turns_its_direction(character: str) -> None:
    assert unicodedata.category(character) == "Cf"
    for line_breaks in (False, True):
        said = unfit(f"a{character}b", line_breaks=line_breaks)
        assert said == f"bidirectional control characters (U+{ord(character):04X})"
    assert unfit_key(f"a{character}b") is None


@pytest.mark.parametrize("character", CONTROL, ids=lambda character: f"U+{ord(character):04X}")
def test_no_text_holds_control_characters(character: str) -> None:
    said = "control characters"
    assert unfit(f"a{character}b") == unfit_key(f"a{character}b") == said
    assert unfit(f"a{character}b", line_breaks=True) == (None if character in BREAKS else said)


def test_a_message_alone_breaks_its_lines() -> None:
    for character in BREAKS:
        assert unfit(f"a{character}b", line_breaks=True) is None
        assert unfit(f"a{character}b") is not None


@pytest.mark.parametrize("text", FINE)
def test_everything_else_is_text(text: str) -> None:
    assert unfit(text) is unfit(text, line_breaks=True) is unfit_key(text) is None


def test_what_is_cleaned_is_fit() -> None:
    text = f"a{CONTROL}b{BIDIRECTIONAL}c{BREAKS}d"
    assert cleaned(text, "-") == "a-b-c-d"


def as_caller(text: str) -> bool:
    try:
        read_text("fromName", text)
    except InvalidRequest as refusal:
        return "`fromName` must not contain" not in refusal.detail
    return True


def in_a_world(text: str) -> bool:
    escaped = "".join(f"\\U{ord(character):08X}" for character in text)
    file = f'customers:\n  - {{key: a, plan: pro, funding: balance, name: "{escaped}"}}\n'
    try:
        parse_seed(file.encode(), "world.yaml")
    except OperatorError as refusal:
        return "customers[0].name: must not contain" not in str(refusal)
    return True


def on_a_page(text: str) -> bool:
    typed = {"name": text, "street_address": "1 High St", "city": "Leeds", "postal_code": "LS1 4DY"}
    errors = check_address("GB", typed).errors
    assert errors in ({}, {"name": "invalid"})
    return not errors


@pytest.mark.parametrize("character", [*BIDIRECTIONAL, "\0", "\x07", "\x7f", "\x9b", *FINE], ids=ascii)
def test_callers_seed_files_and_pages_agree(character: str) -> None:
    text = f"a{character}b"
    fit = unfit(text) is None
    assert as_caller(text) == in_a_world(text) == on_a_page(text) == fit


def test_a_callers_own_key_is_its_own() -> None:
    """An order that has such a reference is still found by it."""
    assert read_key("externalReference", " a\u202eb ") == "a\u202eb"
    with pytest.raises(InvalidRequest, match=r"`externalReference` must not contain control characters"):
        read_key("externalReference", "a\0b")


def test_an_address_has_a_longest_length() -> None:
    domain = ".".join(["b" * 60] * 3) + ".example.com"
    longest = "a" * (MAX_EMAIL - len(domain) - 1) + "@" + domain
    assert normalise_email(longest) == longest
    with pytest.raises(EmailError, match="at most 254"):
        normalise_email("a" + longest)


def test_blanks_and_invisible_characters_around_a_typed_text_are_removed() -> None:
    assert trimmed(" \u200b\ufeffAda\u00a0\u202c\r\n") == "Ada"
    assert trimmed("\u0645\u06cc\u200c\u062e\u0648") == "\u0645\u06cc\u200c\u062e\u0648", (
        "within a word they belong to it"
    )
    assert trimmed("\u2068 \u2069") == ""


@pytest.mark.parametrize("first", "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
def test_a_cell_that_would_begin_a_formula_has_an_apostrophe(first: str) -> None:
    cell = plain_text(f"{first}cmd|' /C calc'!A0")
    assert cell[0] == "'"
    assert without_apostrophe(cell) == cell[1:]


@pytest.mark.parametrize("own", ",;")
@pytest.mark.parametrize("other", ",;\t")
@pytest.mark.parametrize(
    "text",
    [
        "Ada;=cmd|' /C calc'!A0",
        "Ada,=1+1,b",
        "Ada\t=1+1",
        "1 High Street\n=1+1",
        'Ada;"=1+1";b',
        'Ada,""=1+1"",b',
        "Ada;-1+1;b",
        "Ada;+cmd|' /C calc'!A0",
        "Ada;--1",
        "Ada;@SUM(1)",
        "Ada;\uff1d1+1",
    ],
)
def test_a_cell_is_no_formula_wherever_a_spreadsheet_splits_it(text: str, own: str, other: str) -> None:
    """Excel splits at the separator of its own country, whatever the file has."""
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=own).writerow(["F76P6C4XX61C", plain_text(text), "30.00"])
    [[_, cell, _]] = csv.reader(io.StringIO(file.getvalue(), newline=""), delimiter=own)
    assert without_apostrophe(cell) == text
    split = csv.reader(io.StringIO(file.getvalue(), newline=""), delimiter=other)
    assert not [one for row in split for one in row if one.startswith(tuple("=+-@\uff1d"))]


def test_a_text_whose_zeros_a_program_has_kept_is_read_without_the_formula() -> None:
    assert without_apostrophe('="00123"') == "00123"
    assert without_apostrophe('="1"&"2"') == '="1"&"2"'
    assert without_apostrophe(plain_text('="00123"')) == '="00123"'


def test_texts_that_begin_no_formula_stay_as_they_are() -> None:
    for text in ("Thank you ;-)", "Ada - and Grace, too; = fine", "ada+1@example.com", "l'été, 'quoted'", "one\n- two"):
        assert plain_text(text) == without_apostrophe(text) == text


def test_a_key_of_accents_alone_takes_no_time() -> None:
    assert free_key("Zo\u00eb" + "\u0301\u0316" * 250_000, (), "nameless") == "zoe"
