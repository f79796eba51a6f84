"""The catalogues are complete and fit the texts; wrappings, choices and addresses by their rules."""

import re
from pathlib import Path

import pytest
from babel.messages.pofile import read_po
from jinja2.ext import babel_extract

import largesse.claim
from largesse.claim.addresses import address_fields, check_address
from largesse.claim.designs import DESIGNS, design
from largesse.claim.languages import LANGUAGES, choose_language
from largesse.claim.rendering import grouped

FOLDER = Path(largesse.claim.__file__).parent
PLACEHOLDER = re.compile(r"%\(\w+\)s")


def texts() -> set[str]:
    """Every text of the templates."""
    found = set()
    for path in sorted((FOLDER / "templates").glob("*.html")):
        with path.open("rb") as file:
            for _, _, text, _ in babel_extract(
                file, ("gettext", "ngettext"), (), {"trimmed": "true", "silent": "false"}
            ):
                assert isinstance(text, str)
                found.add(text)
    return found


@pytest.mark.parametrize("tag", [tag for tag in LANGUAGES if tag != "en"])
def test_a_catalogue_says_everything_and_nothing_else(tag: str) -> None:
    with (FOLDER / "locale" / f"{tag}.po").open("rb") as file:
        catalogue = read_po(file, locale=tag)
    said = {message.id: message for message in catalogue if message.id}
    assert said.keys() == texts()
    for text, message in said.items():
        assert message.string, text
        assert not message.fuzzy, text
        assert sorted(PLACEHOLDER.findall(text)) == sorted(PLACEHOLDER.findall(str(message.string))), text


def test_there_is_a_catalogue_for_each_language_but_english() -> None:
    assert {path.stem for path in (FOLDER / "locale").iterdir()} == set(LANGUAGES) - {"en"}


def test_every_text_in_a_template_can_be_translated() -> None:
    for path in (FOLDER / "templates").glob("*.html"):
        source = path.read_text()
        bare = re.sub(
            r"\{%-?\s*trans.*?endtrans\s*-?%\}|\{#.*?#\}|\{[{%].*?[%}]\}|<[^>]*>",
            " ",
            source,
            flags=re.DOTALL,
        )
        bare = re.sub(r'[\w-]+="[^"]*"', " ", bare)
        assert not re.search(r"[A-Za-z]{3,}", bare), (path.name, bare.split())


@pytest.mark.parametrize(
    ("asked", "remembered", "accepted", "tag"),
    [
        ("de", "fr", "en", "de"),
        ("xx", "fr", "en", "fr"),
        (None, None, "fr;q=0.2, de;q=0.9", "de"),
        (None, None, "FR-ca", "fr"),
        (None, None, "ar", "en"),
        (None, None, ",".join(["ja"] * 50 + ["de"]), "en"),
    ],
)
def test_the_language_of_a_request(
    asked: str | None, remembered: str | None, accepted: str, tag: str
) -> None:
    assert choose_language(asked, remembered, accepted).tag == tag


@pytest.mark.parametrize(
    ("tag", "minor", "currency", "text"),
    [
        ("en", 1000, "GBP", "£10.00"),
        ("en", 2500, "USD", "US$25.00"),
        ("en", 1250, "KWD", "KWD\N{NO-BREAK SPACE}1.250"),
        ("de", 123456, "EUR", "1.234,56\N{NO-BREAK SPACE}€"),
        ("fr", 123456, "EUR", "1\N{NARROW NO-BREAK SPACE}234,56\N{NO-BREAK SPACE}€"),
        ("de", 500, "JPY", "500\N{NO-BREAK SPACE}¥"),
    ],
)
def test_amounts_for_their_readers(tag: str, minor: int, currency: str, text: str) -> None:
    assert LANGUAGES[tag].amount(minor, currency) == text


def test_every_wrapping_has_its_colours_and_unknown_keys_look_like_the_default() -> None:
    style = (FOLDER / "assets" / "claim.css").read_text()
    assert len(DESIGNS) >= 6
    for key in DESIGNS.keys() - {"default"}:
        assert f".design-{key} {{" in style
        assert f":root.design-{key} {{" in style, "in the dark too"
    assert design("Confetti ").key == "confetti"
    assert design("thanks").key == "thank-you"
    for unknown in ("", "none-such", "../x", "DEFAULT"):
        assert design(unknown).key == "default"


@pytest.mark.parametrize(
    ("country", "address"),
    [
        ("GB", {"name": "A B", "street_address": "1 High St", "city": "Leeds", "postal_code": "LS1 4DY"}),
        ("IE", {"name": "A B", "street_address": "1 Main St", "city": "Cork", "country_area": "Co. Cork"}),
        ("FR", {"name": "A B", "street_address": "1 rue X", "city": "Paris", "postal_code": "75001"}),
        ("DE", {"name": "A B", "street_address": "Weg 1", "city": "Berlin", "postal_code": "10115"}),
        (
            "US",
            {
                "name": "A B",
                "street_address": "1 A St",
                "city": "Reno",
                "country_area": "NV",
                "postal_code": "89501",
            },
        ),
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


def test_a_form_asks_for_the_name_first_wherever_it_is_written() -> None:
    for country in ("GB", "US", "JP", "CN", "DE", "AE", "KW", "HU"):
        fields = address_fields(country)
        assert fields[0].name == "name"
        assert "street_address" in {field.name for field in fields}


def test_long_numbers_are_read_in_groups() -> None:
    assert grouped("6035710012345678") == ["6035", "7100", "1234", "5678"]
    assert grouped("AB-12-CD-34") == ["AB-12-CD-34"]
    assert grouped("12345678") == ["12345678"]
