"""A contact, the changes to a contact, and the rules for each value."""

import contextlib
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
from largesse.contacts.eastern_dates import normal_date
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


_TIME = r"(?:,? \d{1,2}:\d{2}.*)?"  # databases and spreadsheets write a time, mostly midnight, after a date
_YEAR_FIRST = re.compile(r"\d{4}[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})(?:[ T].*)?")
_YEAR_LAST = re.compile(rf"(?P<day>\d{{1,2}})[-/.]\s?(?P<month>\d{{1,2}})[-/.]\s?\d{{2,4}}{_TIME}")
_DAY_FIRST = re.compile(r"(?P<day>\d{1,2})\s?[./]\s?(?P<month>\d{1,2})\.?")
_MONTH_FIRST = re.compile(r"(?:--)?(?P<month>\d{1,2})-(?P<day>\d{1,2})")
# `14 March 2024`, `14-Mar` as spreadsheets show it, and `March 14, 2024`. Not `Mar-14`: in spreadsheets it is a month and a year.
_IN_WORDS = (
    re.compile(
        r"(?P<day>\d{1,2})(?:st|nd|rd|th|er)?\.?[\s-]*(?:de |of )?(?P<month>[^\W\d_]{3,20})\.?(?:,?(?: de |[\s-]+)(?P<year>\d{2,4}))?",
        re.IGNORECASE,
    ),
    re.compile(
        r"(?P<month>[^\W\d_]{3,20})\.?\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?(?:,?\s+(?P<year>\d{2,4}))?", re.IGNORECASE
    ),
)
_MORE_LANGUAGES = ("es", "it", "nl", "pt")  # of files, besides those of our pages
_OTHER_MONTHS = {"mrz": 3, "maerz": 3, "janner": 1}
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def read_birthday(typed: str, *, drops_year: bool = False) -> int | None:
    """Returns a birthday such as `14/03`, `14.03.`, `03-14` or `14 March`; None for a blank one. Raises ContactFault.

    A year is refused, or dropped with `drops_year`.
    """
    text = normal_date(trimmed(typed))
    if not text:
        return None
    in_words = _in_words(text)
    dated = _YEAR_FIRST.fullmatch(text) or _YEAR_LAST.fullmatch(text)
    if not drops_year and (dated or (in_words and in_words["year"])):
        raise ContactFault("birthday", "birthday_year")
    if in_words and (month := _month(folded(in_words["month"]))):
        return checked_birthday(month * 100 + int(in_words["day"]))
    found = dated or _DAY_FIRST.fullmatch(text) or _MONTH_FIRST.fullmatch(text)
    if found is None:
        raise ContactFault("birthday", "birthday_wrong")
    return checked_birthday(int(found["month"]) * 100 + int(found["day"]))


def _in_words(text: str) -> re.Match[str] | None:
    return _IN_WORDS[0].fullmatch(text) or _IN_WORDS[1].fullmatch(text)


def _month(word: str) -> int | None:
    """Returns the month whose name in a language of files begins with `word`; None if there is none, or several."""
    if word in _OTHER_MONTHS:
        return _OTHER_MONTHS[word]
    found = {number for number, name in _month_names() if name.startswith(word)}
    return found.pop() if len(found) == 1 else None


@cache
def _month_names() -> list[tuple[int, str]]:
    return [
        (number, folded(name).rstrip("."))
        for one in (*(language.locale for language in LANGUAGES.values()), *map(Locale, _MORE_LANGUAGES))
        for width in ("wide", "abbreviated")
        for number, name in one.months["format"][width].items()
    ]


def checked_birthday(birthday: int) -> int:
    """Returns a birthday, which must exist in some year, as 29 February does. Raises ContactFault."""
    month, day = divmod(birthday, 100)
    if not (1 <= month <= len(_DAYS) and 1 <= day <= _DAYS[month - 1]):
        raise ContactFault("birthday", "birthday_none")
    return birthday


def written_birthday(birthday: int) -> str:
    """Returns a birthday as `03-14`."""
    return f"{birthday // 100:02}-{birthday % 100:02}"


_ISO_DAY = re.compile(r"(?P<year>\d{4})(?P<mark>[-/])(?P<month>\d{1,2})(?P=mark)(?P<day>\d{1,2})(?:[ T].*)?")
_FIRST_YEAR = 1900
_WRITTEN_DAY = re.compile(rf"(?P<day>\d{{1,2}})\s?[-./]\s?(?P<month>\d{{1,2}})\s?[-./]\s?(?P<year>\d{{4}}){_TIME}")


def read_start_date(typed: str) -> date | None:
    """Returns a date such as `2024-03-01`, `01/03/2024`, `01.03.2024` or `1 March 2024`; None for a blank one. Raises ContactFault."""
    text = normal_date(trimmed(typed))
    if not text:
        return None
    found = _ISO_DAY.fullmatch(text) or _WRITTEN_DAY.fullmatch(text) or _in_words(text)
    if found is not None and int(found["year"] or 0) >= _FIRST_YEAR:
        month = int(found["month"]) if found["month"].isdecimal() else _month(folded(found["month"])) or 0
        with contextlib.suppress(ValueError):
            return date(int(found["year"]), month, int(found["day"]))
    raise ContactFault("start_date", "start_date_wrong")


# `03/14/1990`, `03-14-1990` or `03/14`. `03-14` without a year always has the month first.
_TWO_NUMBERS = re.compile(
    r"(?P<first>\d{1,2})(?P<mark>[/-])(?P<second>\d{1,2})(?P<year>(?P=mark)(?:\d{4}|\d{2})|(?<=/\d)|(?<=/\d\d))" + _TIME
)


def month_lead(dates: Iterable[str]) -> int:
    """Returns how many dates must have the month first, as in the United States, less those that must have the day first."""
    lead = 0
    for found in filter(None, map(_TWO_NUMBERS.fullmatch, dates)):
        first, second = int(found["first"]), int(found["second"])
        lead += (first <= len(_DAYS) < second <= max(_DAYS)) - (second <= len(_DAYS) < first <= max(_DAYS))
    return lead


def either_first(dates: Iterable[str]) -> str | None:
    """Returns the first date whose day and month may be in either order; None if there is none."""
    found = (_TWO_NUMBERS.fullmatch(one) for one in dates)
    either = (one for one in found if one and max(int(one["first"]), int(one["second"])) <= len(_DAYS))
    return next((one[0] for one in either if int(one["first"]) != int(one["second"])), None)


def with_day_first(typed: str) -> str:
    """Returns a date that has the month first with the day first: `14/03/1990` for `03/14/1990`."""
    return _TWO_NUMBERS.sub(r"\g<second>\g<mark>\g<first>\g<year>", typed) if _TWO_NUMBERS.fullmatch(typed) else typed


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
        *map(Locale, (*_MORE_LANGUAGES, "ja")),
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
