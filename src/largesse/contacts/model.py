"""A contact, the changes to a contact, and the rules for each value."""

import re
from collections.abc import Collection, Iterable, Mapping
from datetime import date
from functools import cache

import msgspec
from babel import Locale
from babel.core import get_global
from msgspec import UNSET, UnsetType

from largesse.base.confidential import Confidential
from largesse.base.email import MAX_EMAIL, EmailError, is_mistyped, normalise_email
from largesse.base.errors import InvalidRequest
from largesse.base.i18n.languages import LANGUAGES
from largesse.base.text import folded, trimmed, unfit, unfit_key
from largesse.drafts.checking import PROBLEMS as EMAIL_PROBLEMS
from largesse.drafts.mailboxes import fault_of

MOST_CONTACTS = 200_000  # per customer and environment
MOST_GROUPS = 200
MOST_MEMBERS_COUNTED = 1_000  # members of a group that lists of groups count
MOST_COUNTED = 10_000  # contacts of a list that are counted
MOST_GROUPS_EACH = 20  # groups per contact
MOST_FIELDS = 10
MAX_NAME = 200
MAX_GROUP = 60
MAX_ADDRESS = 500
MAX_EXTERNAL_ID = 128
MAX_FIELD_NAME = 60
MAX_FIELD = 200
MAX_KEY = 40

# The faults of a value, in English; pages have their own texts.
PROBLEMS = {
    **{kind: said for kind, said in EMAIL_PROBLEMS.items() if kind.startswith("email_")},
    "email_taken": "Another contact has this address.",
    "name_long": f"The name has more than {MAX_NAME} characters.",
    "name_wrong": "The name has characters that are not allowed in a name.",
    "formula": "A cell has a spreadsheet's error text, such as #N/A or ####.",
    "birthday_wrong": "The birthday must be a day and a month, such as 14/03.",
    "birthday_none": "No year has this day.",
    "birthday_year": "The birthday has a year. Leave it out.",
    "start_date_wrong": "The start date must be a date, such as 2024-03-01.",
    "language_wrong": f"The language must be one of {', '.join(LANGUAGES)}.",
    "country_wrong": "The country must be a code of ISO 3166-1, such as GB.",
    "state_wrong": "The state must be Active or Has left.",
    "address_long": f"The postal address has more than {MAX_ADDRESS} characters.",
    "address_wrong": "The postal address has characters that are not allowed.",
    "external_id_long": f"The id has more than {MAX_EXTERNAL_ID} characters.",
    "external_id_wrong": "The id has characters that are not allowed.",
    "external_id_rounded": "A spreadsheet saved only the first digits of the id.",
    "external_id_taken": "Another contact has this id.",
    "groups_long": f"The name of a group has more than {MAX_GROUP} characters.",
    "groups_wrong": "The name of a group has characters that are not allowed, or is blank.",
    "groups_many": f"A contact is in at most {MOST_GROUPS_EACH} groups.",
    "fields_long": f"A field of your own has more than {MAX_FIELD} characters.",
    "fields_wrong": "A field of your own has characters that are not allowed.",
    "fields_unknown": "There is no such field of your own.",
}


class ContactFault(InvalidRequest):
    """A fault of a contact's value. `field` is its name, `kind` is one of PROBLEMS, and `which` names the wrong part."""

    def __init__(self, field: str, kind: str, which: str = "") -> None:
        said = PROBLEMS[kind]
        super().__init__(f"`{field}`: {said.removesuffix('.')}: {which}." if which else f"`{field}`: {said}")
        self.field = field
        self.kind = kind


class ContactChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A change to a contact: UNSET leaves a member unchanged, None removes it. `fields` are values by key."""

    email: str | UnsetType = UNSET
    name: str | UnsetType | None = UNSET
    language: str | UnsetType | None = UNSET
    country: str | UnsetType | None = UNSET
    address: str | UnsetType | None = UNSET
    birthday: int | UnsetType | None = UNSET  # the month times 100 and the day
    start_date: date | UnsetType | None = UNSET
    external_id: str | UnsetType | None = UNSET
    is_active: bool | UnsetType = UNSET
    groups: tuple[str, ...] | UnsetType = UNSET  # the names of all its groups
    more_groups: tuple[str, ...] = ()  # names of groups to join in addition
    fields: Mapping[str, str | None] = {}


class Contact(Confidential, frozen=True, kw_only=True):
    """A contact. It has no repr, as it is about a person."""

    id: int
    email: str
    name: str
    language: str | None = None
    country: str | None = None
    birthday: int | None = None
    start_date: date | None = None
    external_id: str | None = None
    own_fields: Mapping[str, str] = {}
    is_active: bool = True
    has_address: bool = False
    groups: tuple[str, ...] = ()


class Group(msgspec.Struct, frozen=True):
    """A group of contacts with its number of members, which is counted up to MOST_MEMBERS_COUNTED + 1."""

    id: int
    name: str
    members: int


class OwnField(msgspec.Struct, frozen=True):
    """A field that the customer defined. `key` is its placeholder in messages."""

    key: str
    name: str


def sought(name: str, email: str) -> str:
    """Returns the text by which a contact is sorted and searched."""
    return f"{folded(name)} {folded(email)}".strip()


def read_email(typed: str) -> str:
    """Returns an address in its normal form. Raises ContactFault."""
    email = trimmed(typed)
    if not email:
        raise ContactFault("email", "email_missing")
    if len(email) > MAX_EMAIL:
        raise ContactFault("email", "email_long")
    try:
        if not is_mistyped(email):
            return normalise_email(email)
    except EmailError:
        pass
    raise ContactFault("email", fault_of(email))


MORE_LANGUAGES = ("es", "it", "nl", "pt")  # of files, besides those of our pages
DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def checked_birthday(birthday: int) -> int:
    """Returns a birthday, which must exist in some year, as 29 February does. Raises ContactFault."""
    month, day = divmod(birthday, 100)
    if not (1 <= month <= len(DAYS) and 1 <= day <= DAYS[month - 1]):
        raise ContactFault("birthday", "birthday_none")
    return birthday


def written_birthday(birthday: int) -> str:
    """Returns a birthday as `03-14`."""
    return f"{birthday // 100:02}-{birthday % 100:02}"


def read_language(typed: str) -> str | None:
    """Returns the tag of one of our languages, from a tag such as `en-GB` or a name such as `English (UK)`; None for a blank text.

    Raises ContactFault.
    """
    if not trimmed(typed):
        return None
    text = folded(trimmed(typed)).partition("(")[0].strip()
    for tag, language in LANGUAGES.items():
        names = {folded(str(one.locale.languages.get(tag, ""))) for one in LANGUAGES.values()}
        if text.replace("_", "-").partition("-")[0] == tag or text in {folded(language.name), *names}:
            return tag
    raise ContactFault("language", "language_wrong")


def read_country(typed: str) -> str | None:
    """Returns the code of a country, from its code or its name in one of our languages; None for a blank text. Raises ContactFault."""
    text = trimmed(typed)
    if not text:
        return None
    code = _countries().get(folded(text))
    if code is None:
        raise ContactFault("country", "country_wrong")
    return code


# Names of countries that people use, but the CLDR does not.
_OTHER_COUNTRIES = {
    **dict.fromkeys(("uk", "u.k.", "great britain", "grossbritannien", "grande-bretagne"), "GB"),
    **dict.fromkeys(("england", "angleterre", "scotland", "wales", "northern ireland"), "GB"),
    **dict.fromkeys(("u.s.", "u.s.a.", "united states of america"), "US"),
    **dict.fromkeys(("holland", "the netherlands"), "NL"),
    **dict.fromkeys(("czech republic",), "CZ"),
    **dict.fromkeys(("oesterreich",), "AT"),
    **dict.fromkeys(("turkey",), "TR"),
    **dict.fromkeys(("hong kong", "hongkong"), "HK"),
    **dict.fromkeys(("ivory coast",), "CI"),
}


@cache
def _countries() -> Mapping[str, str]:
    """Returns country codes by code and by name, without letter case and accents."""
    found = dict(_OTHER_COUNTRIES)
    for locale in (
        *(language.locale for language in LANGUAGES.values()),
        Locale("en"),
        *map(Locale, (*MORE_LANGUAGES, "ja")),
    ):
        for code, name in locale.territories.items():
            if len(code) == 2 and code.isalpha() and code not in {"EU", "EZ", "UN", "ZZ", "XA", "XB", "QO"}:
                found.setdefault(code.lower(), code)
                found.setdefault(folded(str(name)), code)
    codes = set(found.values())
    for alias, (code, *others) in get_global("territory_aliases").items():  # these include the codes of three letters
        if len(alias) == 3 and alias.isalpha() and not others and code in codes:
            found.setdefault(alias.lower(), code)
    return found


def country_codes() -> Collection[str]:
    """Returns the codes that a contact's country may have."""
    return sorted(set(_countries().values()))


def read_text(field: str, typed: str | None, most: int, *, lines: bool = False) -> str | None:
    """Returns a text without blanks around it; None for a blank one. Raises ContactFault for `field`."""
    text = (typed or "").replace("\r\n", "\n").strip()
    if not text:
        return None
    if len(text) > most:
        raise ContactFault(field, f"{field}_long")
    if unfit_key(text) if field == "external_id" else unfit(text, line_breaks=lines):
        raise ContactFault(field, f"{field}_wrong")
    return text


def checked_change(change: ContactChange, own: Collection[str]) -> ContactChange:
    """Returns a change with each of its values checked; `own` are the keys of the customer's own fields. Raises ContactFault."""
    checked: dict[str, object] = {}
    if change.email is not UNSET:
        checked["email"] = read_email(change.email)
    for column, most in (("name", MAX_NAME), ("address", MAX_ADDRESS), ("external_id", MAX_EXTERNAL_ID)):
        if (given := getattr(change, column)) is not UNSET:
            checked[column] = read_text(column, given, most, lines=column == "address")
    if change.birthday is not UNSET and change.birthday is not None:
        checked_birthday(change.birthday)
    if change.language is not UNSET:
        checked["language"] = read_language(change.language or "")
    if change.country is not UNSET:
        checked["country"] = read_country(change.country or "")
    if change.groups is not UNSET:
        checked["groups"] = _checked_groups(change.groups)
    checked["more_groups"] = _checked_groups(change.more_groups)
    if unknown := sorted(change.fields.keys() - set(own)):
        raise ContactFault("fields", "fields_unknown", ", ".join(unknown)[:MAX_FIELD])
    checked["fields"] = {key: read_text("fields", value, MAX_FIELD) for key, value in change.fields.items()}
    return msgspec.structs.replace(change, **checked)


def _checked_groups(names: Collection[str]) -> tuple[str, ...]:
    if len(names) > MOST_GROUPS_EACH:
        raise ContactFault("groups", "groups_many")
    return tuple(checked_group(name) for name in names)


def group_key(name: str) -> str:
    """Returns the key that all spellings of a group's name share.

    Each letter is made lower case separately, as in the database: `İzmir` and `Izmir` are one group.
    """
    return "".join(letter.lower()[0] for letter in name)


# Names separated by commas, semicolons, bars or line breaks. A name in quotation marks may contain these, and its own marks twice.
_GROUPS = re.compile(r'[^\S\n]*"([^"]*(?:""[^"]*)*)"\s*(?=[,;|\n]|$)|([^,;|\n]+)')


def read_groups(typed: str) -> list[str]:
    """Returns the names of groups in a cell."""
    found = ((one[1] or "").replace('""', '"') or one[2] or "" for one in _GROUPS.finditer(typed))
    return [name for one in found if (name := one.strip())]


def written_groups(names: Iterable[str]) -> str:
    """Returns the names of groups in one cell, as `read_groups` reads them."""
    return ", ".join(name if read_groups(name) == [name] else '"{}"'.format(name.replace('"', '""')) for name in names)


def checked_group(name: str) -> str:
    """Returns the name of a group without blanks around it. Raises ContactFault."""
    checked = read_text("groups", name, MAX_GROUP)
    if checked is None:
        raise ContactFault("groups", "groups_wrong")
    return checked
