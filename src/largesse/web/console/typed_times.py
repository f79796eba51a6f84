"""Days and times as people type them where the browser has no picker: `31.12.2026`, `31/12/2026 à 14 h 30`, `31 December 2026, 2:30 pm`."""

from __future__ import annotations

import re
from datetime import date, datetime, time

from largesse.base.i18n.languages import DEFAULT, Language, text
from largesse.base.text import trimmed
from largesse.contacts.dates import either_first, month_lead, read_start_date, weekdays_in, with_day_first
from largesse.contacts.model import ContactFault

_LONGEST = 60
_WITH_TIME = re.compile(r".*:.*|\d{4}[-/]\d{1,2}[-/]\d{1,2}[ T].*")  # dates in files may have a time
_BLANKS = re.compile(r"\s+")
_HOUR_AND_MINUTE = r"(?P<hour>\d{1,2})(?:[:.]|\s?h\s?)(?P<minute>\d{2})(?::00)?(?: ?(?:Uhr|(?P<half>[ap])\.?m\.?))?"
_HOUR = r"(?P<full_hour>\d{1,2}) ?(?:h|Uhr|(?P<full_half>[ap])\.?m\.?)"
_DAY_AND_TIME = re.compile(
    rf"(?P<day>.*?[\w)]\.?)(?:T|,? (?:(?:at|à|um) )?)(?:{_HOUR_AND_MINUTE}|{_HOUR})", re.IGNORECASE
)

UNREAD_DAY = text("Type a date, such as 31 December 2026. “%(typed)s” cannot be read.")
UNREAD_TIME = text("Type a day and a time, such as 31 December 2026, 14:30. “%(typed)s” cannot be read.")
WRONG_WEEKDAY = text("%(day)s is a %(weekday)s. Type the date that you mean.")
EITHER_DAY = text("Type the month as a word: “%(typed)s” can be %(one)s or %(other)s.")


class Unread(ValueError):
    """What was typed is no day or time."""


class Either(ValueError):
    """In the language of the page, day and month of the typed date may be in either order. Its arguments are both dates."""

    args: tuple[date, date]


class WrongWeekday(ValueError):
    """The typed date is on another weekday than the typed one. Its argument is the date."""

    args: tuple[date]


def read_day(typed: str, language: Language) -> date:
    """Returns the day. Raises Unread, Either, WrongWeekday."""
    plain = trimmed(_BLANKS.sub(" ", typed))
    if len(plain) > _LONGEST or _WITH_TIME.fullmatch(plain):
        raise Unread
    days = [_read(one) for one in readings(plain, language)]
    if len(days) > 1:
        raise Either(*days)
    if (weekdays := weekdays_in(plain)) and days[0].weekday() not in weekdays:
        raise WrongWeekday(days[0])
    return days[0]


def readings(plain: str, language: Language) -> tuple[str, ...]:
    """Returns a date with the day first, or both dates that it can be.

    In English, `03/04/2026` is 3 April in Britain and 4 March in the United States. Other languages have the day first.
    """
    if language.tag != DEFAULT.tag:
        return (plain,)
    if either_first((plain,)):
        return plain, with_day_first(plain)
    return (with_day_first(plain) if month_lead((plain,)) > 0 else plain,)


def _read(plain: str) -> date:
    try:
        day = read_start_date(plain)
    except ContactFault:
        day = None
    if day is None:
        raise Unread
    return day


def read_time(typed: str, language: Language) -> datetime:
    """Returns the day and time, without a zone. Raises Unread, Either, WrongWeekday."""
    plain = trimmed(_BLANKS.sub(" ", typed))
    found = _DAY_AND_TIME.fullmatch(plain) if len(plain) <= _LONGEST else None
    if found is None:
        raise Unread
    hour, half = int(found["hour"] or found["full_hour"]), (found["half"] or found["full_half"] or "").lower()
    if half and not 1 <= hour <= 12:
        raise Unread
    try:
        at = time(hour % 12 + 12 * (half == "p") if half else hour, int(found["minute"] or 0))
    except ValueError:
        raise Unread from None
    return datetime.combine(read_day(found["day"], language), at)
