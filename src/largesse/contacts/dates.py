"""Reads dates as people type them, and as databases, spreadsheets and the programs of other countries write them."""

import contextlib
import re
from collections.abc import Collection, Iterable, Mapping
from datetime import date
from functools import cache

from babel import Locale

from largesse.base.i18n.languages import LANGUAGES
from largesse.base.text import folded, plain_digits, trimmed
from largesse.contacts.model import DAYS, MORE_LANGUAGES, ContactFault, checked_birthday

# A weekday, such as `Thursday, `, `Do. ` or `quinta-feira `, with all blanks after it: otherwise many blanks would be tried one by one.
_WORD = r"[^\W\d_](?:[^\W\d_]|-)*\.?,?\s+(?!\s)"
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
_OTHER_MONTHS = {"mrz": 3, "maerz": 3, "janner": 1}


def read_birthday(typed: str, *, drops_year: bool = False) -> int | None:
    """Returns a birthday such as `14/03`, `14.03.`, `03-14` or `14 March`; None for a blank one. Raises ContactFault.

    A year is refused, or dropped with `drops_year`.
    """
    text = _normal_date(trimmed(typed))
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
        for one in _locales()
        for width in ("wide", "abbreviated")
        for number, name in one.months["format"][width].items()
    ]


def _locales() -> list[Locale]:
    """Returns the languages of files."""
    return [*(language.locale for language in LANGUAGES.values()), *map(Locale, MORE_LANGUAGES)]


_ISO_DAY = re.compile(r"(?P<year>\d{4})(?P<mark>[-/])(?P<month>\d{1,2})(?P=mark)(?P<day>\d{1,2})(?:[ T].*)?")
_FIRST_YEAR = 1900
_WRITTEN_DAY = re.compile(rf"(?P<day>\d{{1,2}})\s?[-./]\s?(?P<month>\d{{1,2}})\s?[-./]\s?(?P<year>\d{{4}}){_TIME}")


def read_start_date(typed: str) -> date | None:
    """Returns a date such as `2024-03-01`, `01/03/2024`, `01.03.2024` or `1 March 2024`; None for a blank one. Raises ContactFault."""
    text = _normal_date(trimmed(typed))
    if not text:
        return None
    found = _ISO_DAY.fullmatch(text) or _WRITTEN_DAY.fullmatch(text) or _in_words(text)
    if found is not None and int(found["year"] or 0) >= _FIRST_YEAR:
        month = int(found["month"]) if found["month"].isdecimal() else _month(folded(found["month"])) or 0
        with contextlib.suppress(ValueError):
            return date(int(found["year"]), month, int(found["day"]))
    raise ContactFault("start_date", "start_date_wrong")


# `03/14/1990`, `03-14-1990` or `03/14`, also after a weekday. `03-14` without a year always has the month first.
_TWO_NUMBERS = re.compile(
    rf"(?:{_WORD})?"
    r"(?P<first>\d{1,2})(?P<mark>[/-])(?P<second>\d{1,2})(?P<year>(?P=mark)(?:\d{4}|\d{2})|(?<=/\d)|(?<=/\d\d))" + _TIME
)


def month_lead(dates: Iterable[str]) -> int:
    """Returns how many dates must have the month first, as in the United States, less those that must have the day first."""
    lead = 0
    for found in filter(None, map(_TWO_NUMBERS.fullmatch, dates)):
        first, second = int(found["first"]), int(found["second"])
        lead += (first <= len(DAYS) < second <= max(DAYS)) - (second <= len(DAYS) < first <= max(DAYS))
    return lead


def either_first(dates: Iterable[str]) -> str | None:
    """Returns the first date whose day and month may be in either order; None if there is none."""
    found = (_TWO_NUMBERS.fullmatch(one) for one in dates)
    either = (one for one in found if one and max(int(one["first"]), int(one["second"])) <= len(DAYS))
    return next((one[0] for one in either if int(one["first"]) != int(one["second"])), None)


def with_day_first(typed: str) -> str:
    """Returns a date that has the month first with the day first: `14/03/1990` for `03/14/1990`."""
    return _TWO_NUMBERS.sub(r"\g<second>\g<mark>\g<first>\g<year>", typed) if _TWO_NUMBERS.fullmatch(typed) else typed


# `1990年1月2日`, `平成2年1月2日(月)`, `1月2日`, and the same in Korean.
_EASTERN = re.compile(
    r"(?:(?:(?P<era>明治|大正|昭和|平成|令和) ?)?(?P<year>\d{1,4}|元)[年년] ?)?(?P<month>\d{1,2})[月월] ?(?P<day>\d{1,2})[日일]"
    r"(?: ?[((]?(?:[月火水木金土日](?:曜日?)?|[월화수목금토일](?:요일)?)[))]?)?"
)
_ERAS = {"明治": 1867, "大正": 1911, "昭和": 1925, "平成": 1988, "令和": 2018}  # the years before their first
_JOINED = re.compile(r"(?P<year>(?:19|20)\d{2})(?P<month>0[1-9]|1[0-2])(?P<day>\d{2})")


# A date after a word. It has marks between its numbers, or a word of its own: in `Mar 14, 1990`, the first word is the month.
_AFTER_WEEKDAY = re.compile(rf"(?P<weekday>{_WORD})(?P<date>\d{{1,4}}\s?[-./].*|.*[^\W\d_]{{3}}.*)")


def weekdays_in(typed: str) -> Collection[int]:
    """Returns the weekdays (0 is Monday) that the word before a date can mean, as `Mar.` is Tuesday in French. Empty for another word."""
    return _split_weekday(trimmed(typed))[0]


def _split_weekday(text: str) -> tuple[Collection[int], str]:
    """Returns the weekdays that the word before a date can mean, and the date; nothing and the whole text if there is no weekday."""
    found = _AFTER_WEEKDAY.fullmatch(text)
    weekdays = _weekdays().get(folded(found["weekday"]).strip(" .,"), ()) if found else ()
    return (weekdays, found["date"]) if found and weekdays else ((), text)


@cache
def _weekdays() -> Mapping[str, Collection[int]]:
    """Returns the weekdays by their names in the languages of files."""
    found: dict[str, set[int]] = {}
    for one in _locales():
        for width in ("wide", "abbreviated", "short"):
            for number, name in one.days["format"][width].items():
                found.setdefault(folded(name).strip("."), set()).add(number)
    return found


def _normal_date(text: str) -> str:
    """Returns a date without its weekday, with plain digits, and in the western form.

    Returns `1990-01-02` for `1990年1月2日`, `平成2年1月2日` or `19900102`, and `01-02` for `1月2日`.
    """
    _, plain = _split_weekday(plain_digits(text))
    found = _EASTERN.fullmatch(plain) or _JOINED.fullmatch(plain)
    if found is None:
        return plain
    parts = found.groupdict()
    month_and_day = f"{int(parts['month']):02}-{int(parts['day']):02}"
    if parts["year"] is None:
        return month_and_day
    year = 1 if parts["year"] == "元" else int(parts["year"])
    return f"{year + _ERAS.get(parts.get('era') or '', 0):04}-{month_and_day}"
