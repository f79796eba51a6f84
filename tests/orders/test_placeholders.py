"""Placeholders of messages: which there are, and what a recipient reads in their place."""

import pytest

from largesse.base.errors import InvalidRequest
from largesse.orders.placeholders import check_placeholders, fill, first_name, has_placeholders, unknown_placeholders

KNOWN = ["first_name", "name", "company", "cost_centre"]


@pytest.mark.parametrize(
    ("message", "filled"),
    [
        ("Dear {first_name|friend},", "Dear Ada,"),
        ("Dear {cost_centre|friend},", "Dear friend,"),
        ("Dear {cost_centre}", "Dear"),
        ("{ First_Name } of {company|us}", "Ada of Acme"),
        ("{first_name}{first_name|x}", "AdaAda"),
        ("{} {{first_name}} {a\nb}", "{} {Ada} {a\nb}"),
        ("{first_name|a|b}", "Ada"),
        ("literal", "literal"),
    ],
)
def test_each_is_replaced_by_its_value_or_what_stands_after_the_bar(message: str, filled: str) -> None:
    assert fill(message, {"first_name": "Ada", "company": "Acme", "cost_centre": ""}) == filled


def test_a_value_is_text_and_no_placeholder() -> None:
    assert fill("{first_name} {name}", {"first_name": "{name}", "name": r"\1"}) == r"{name} \1"


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("Ada Byron", "Ada"),
        ("Dr. Ada Byron", "Ada"),
        ("Byron, Ada", "Ada"),
        ("Ada", "Ada"),
        ("", ""),
        ("Dr.", ""),
        ("Ada,", "Ada"),
        ("Dr Ada Byron", "Ada"),
        ("Frau Dr. Ada Byron", "Ada"),
        ("Mme Ada Byron", "Ada"),
        ("Byron, Dr Ada", "Ada"),
        ("Ada Byron, PhD", "Ada"),
        ("Ada Byron, M.D., Ph.D.", "Ada"),
        ("King, Martin, Jr.", "Martin"),
        ("Martin King Jr.", "Martin"),
        # Last names in capitals come first in France.
        ("BYRON Ada", "Ada"),
        ("DE LA TOUR Ada", "Ada"),
        ("Mme BYRON Ada", "Ada"),
        ("Ada BYRON", "Ada"),
        ("ADA BYRON", "ADA"),
        ("JJ Byron", "JJ"),
        # What follows a title or an initial alone is a last name.
        ("Herr Byron", ""),
        ("Dr. Byron", ""),
        ("A. Byron", ""),
        ("Ada B.", "Ada"),
    ],
)
def test_first_names(name: str, first: str) -> None:
    assert first_name(name) == first


def test_what_does_not_exist_is_named() -> None:
    assert unknown_placeholders("{firstname} {name} {nope|x}", KNOWN) == ["{firstname}", "{nope|x}"]
    with pytest.raises(InvalidRequest) as refused:
        check_placeholders("{firstname} {name} {nope|x}", KNOWN)
    assert refused.value.detail == (
        "`message` has placeholders that do not exist: {firstname}, {nope|x}. There are first_name, name, company, cost_centre."
    )
    check_placeholders("{name} {} { \n }", KNOWN)
    assert not has_placeholders("{} a { b")
    assert not has_placeholders(None)
