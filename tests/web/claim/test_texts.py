"""Wrappings, choices and addresses by their rules."""

from pathlib import Path

import pytest

import largesse.web.claim
from largesse.web.claim.addresses import address_fields, check_address
from largesse.web.claim.rendering import THEMES, grouped, theme

FOLDER = Path(largesse.web.claim.__file__).parent


def test_every_wrapping_has_its_colours_and_unknown_keys_look_like_the_default() -> None:
    style = (FOLDER / "assets" / "claim.css").read_text()
    assert len(THEMES) >= 6
    for key in THEMES.keys() - {"default"}:
        assert f".theme-{key} {{" in style
        assert f":root.theme-{key} {{" in style, "in the dark too"
    assert theme("Confetti ").key == "confetti"
    assert theme("thanks").key == "thank-you"
    for unknown in ("", "none-such", "../x", "DEFAULT"):
        assert theme(unknown).key == "default"


@pytest.mark.parametrize(
    ("country", "address"),
    [
        ("GB", {"name": "A B", "street_address": "1 High St", "city": "Leeds", "postal_code": "LS1 4DY"}),
        ("IE", {"name": "A B", "street_address": "1 Main St", "city": "Cork", "country_area": "Co. Cork"}),
        ("FR", {"name": "A B", "street_address": "1 rue X", "city": "Paris", "postal_code": "75001"}),
        ("US", {"name": "A B", "street_address": "1 A", "city": "Reno", "country_area": "NV", "postal_code": "89501"}),
        (
            "JP",
            {
                "name": "A B",
                "street_address": "1-1",
                "city": "千代田区",
                "country_area": "東京都",
                "postal_code": "100-0001",
            },
        ),
    ],
)
def test_good_addresses_pass_and_come_out_with_their_country(country: str, address: dict[str, str]) -> None:
    checked = check_address(country, {**address, "country_code": "XX"})
    assert checked.errors == {}
    assert checked.address["country_code"] == country
    assert checked.address["name"] == "A B"


@pytest.mark.parametrize(
    ("changes", "errors"),
    [
        ({"postal_code": ""}, {"postal_code": "required"}),
        ({"postal_code": "75001"}, {"postal_code": "invalid"}),
        ({"name": "   "}, {"name": "required"}),
        ({"street_address": "\n \n"}, {"street_address": "required"}),
        ({"name": "x" * 201}, {"name": "invalid"}),
        ({"name": "a\x00b"}, {"name": "invalid"}),
        ({"city": "a\N{RIGHT-TO-LEFT OVERRIDE}b"}, {"city": "invalid"}),
    ],
)
def test_bad_addresses_say_what_is_wrong(changes: dict[str, str], errors: dict[str, str]) -> None:
    good = {"name": "A B", "street_address": "1 High St", "city": "Leeds", "postal_code": "LS1 4DY"}
    assert check_address("GB", good | changes).errors == errors


def test_a_postal_code_of_accents_alone_is_refused_before_they_are_ordered() -> None:
    good = {"name": "A B", "street_address": "1 High St", "city": "Leeds"}
    typed = {**good, "postal_code": "a" + "\u0301\u0316" * 250_000}
    assert check_address("GB", typed).errors == {"postal_code": "invalid"}


@pytest.mark.parametrize(
    ("country", "typed", "stored"),
    [
        ("NL", "1012 ab", "1012 AB"),
        ("DE", "\uff11\uff10\uff11\uff11\uff15", "10115"),
        ("DE", "D-10115", "10115"),
        ("LU", "L - 4750", "4750"),
        ("LV", "1073", "LV-1073"),
        ("PT", "2725079", "2725-079"),
        ("PL", "00950", "00-950"),
        ("GB", "m11ae", "M11AE"),
        ("GB", "M1 1 AE", "M1 1AE"),
    ],
)
def test_postal_codes_are_stored_as_their_country_writes_them(country: str, typed: str, stored: str) -> None:
    checked = check_address(country, {"name": "A B", "street_address": "Weg 1", "city": "Delft", "postal_code": typed})
    assert (checked.errors, checked.address["postal_code"]) == ({}, stored)


@pytest.mark.parametrize(
    ("country", "area", "city", "postal_code", "stored"),
    [
        ("IN", "Karnataka", "Bengaluru", "560 001", "560001"),
        ("JP", "Tokyo", "", "\u3012150\u30fc0001", "150-0001"),
        ("JP", "\u6771\u4eac\u90fd", "", "1500001", "1500001"),
        ("BR", "SP", "Sao Paulo", "01310 100", "01310-100"),
        ("CN", "\u5317\u4eac\u5e02", "\u5317\u4eac", "100000", "100000"),
        ("KR", "Seoul", "Gangnam", "06236", "06236"),
        ("TW", "Taipei City", "Da'an", "10617", "10617"),
        ("HK", "Kowloon", "\u5c16\u6c99\u5480", "", ""),
        ("AE", "Dubai", "", "", ""),
        ("US", "NY", "New York", "10001\u20131234", "10001-1234"),
    ],
)
def test_towns_and_provinces_stand_on_the_parcel_as_they_were_typed_and_chosen(
    country: str, area: str, city: str, postal_code: str, stored: str
) -> None:
    typed = {"name": "A B", "street_address": "1-1", "city": city, "country_area": area, "postal_code": postal_code}
    choices = next(field.choices for field in address_fields(country) if field.name == "country_area")
    assert area in dict(choices)
    checked = check_address(country, typed)
    assert checked.errors == {}
    assert checked.address["country_area"] == area
    assert checked.address.get("city", "").upper() == city.upper()  # some countries write it in capitals
    assert checked.address.get("postal_code", "") == stored


def test_an_old_order_for_no_country_still_takes_an_address() -> None:
    typed = {"name": "A B", "street_address": "1 High St", "city": "Leeds"}
    assert [field.name for field in address_fields("EU")] == ["name", "company_name", "street_address", "city"]
    checked = check_address("EU", typed)
    assert checked.errors == {}
    assert checked.address == {**typed, "company_name": "", "country_code": "EU"}
    assert check_address("EU", typed | {"city": ""}).errors == {"city": "required"}


def test_a_form_asks_for_the_name_first_wherever_it_is_written() -> None:
    for country in ("GB", "US", "JP", "CN", "DE", "AE", "KW", "HU"):
        fields = address_fields(country)
        assert fields[0].name == "name"
        assert "street_address" in {field.name for field in fields}


def test_long_numbers_are_read_in_groups() -> None:
    assert grouped("6035710012345678") == ["6035", "7100", "1234", "5678"]
    assert grouped("AB-12-CD-34") == ["AB-12-CD-34"]
    assert grouped("12345678") == ["12345678"]
