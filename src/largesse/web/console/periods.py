"""The time zones that people choose from.

The periods that figures are of: whole months up to today, of which the sums are kept, or days that somebody names.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from zoneinfo import available_timezones

from largesse.base.i18n.templates import text

_PLACES = frozenset(
    ("Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific")
)


def zone_choices(chosen: str) -> list[tuple[str, str]]:
    """Pairs of value and label: UTC, the zones of places, and the one that is chosen, whatever it is."""
    names = sorted({*_of_places(), chosen} - {""})
    return [("", "UTC"), *((name, name.replace("_", " ")) for name in names)]


@cache
def known_zones() -> frozenset[str]:
    """All zones that the machine knows."""
    return frozenset(available_timezones())


@cache
def _of_places() -> frozenset[str]:
    return frozenset(name for name in known_zones() if name.partition("/")[0] in _PLACES)


FREE = "days"
PERIODS = {
    "this-month": text("This month"),
    "last-month": text("Last month"),
    "3-months": text("Three months"),
    "12-months": text("Twelve months"),
    FREE: text("From and to"),
}
MOST_DAYS = 5 * 366  # of a free one
_DAYS_DRAWN = 62  # more are drawn by month
_MONTHS = {"this-month": 1, "last-month": 1, "3-months": 3, "12-months": 12}


@dataclass(frozen=True, slots=True)
class Period:
    """Days from `since` to `until`, both included, and as many months or days before them to compare with."""

    name: str
    since: date
    until: date
    before_since: date
    before_until: date

    @property
    def grain(self) -> str:
        """By what it is drawn: `day` or `month`."""
        if self.name == FREE:
            return "day" if (self.until - self.since).days < _DAYS_DRAWN else "month"
        return "day" if _MONTHS[self.name] == 1 else "month"

    def steps(self) -> list[date]:
        """The first day of each of these, from the first to the last; of a month that is under way, all its days."""
        if self.grain == "month":
            first, last = self.since.replace(day=1), self.until.replace(day=1)
            count = (last.year - first.year) * 12 + last.month - first.month
            return [months_before(last, back) for back in reversed(range(count + 1))]
        last = self.until if self.name == FREE else _end(self.since)
        return [self.since + timedelta(days=at) for at in range((last - self.since).days + 1)]


def period_of(name: str, today: date) -> Period:
    """The period of that name, this month where there is none such. What came before it is as long in months, whole."""
    name = name if name in _MONTHS else "this-month"
    last = months_before(today.replace(day=1), 1 if name == "last-month" else 0)
    since = months_before(last, _MONTHS[name] - 1)
    until = today if name != "last-month" else _end(last)
    return Period(name, since, until, months_before(since, _MONTHS[name]), since - timedelta(days=1))


def free_period(since: date, until: date) -> Period:
    """The days from one to another, which is no earlier, and as many days before them. Raises ValueError for more than MOST_DAYS, and for days before any there can be."""
    days = (until - since).days + 1
    if not 0 < days <= MOST_DAYS or since.toordinal() <= days:
        raise ValueError(f"1 to {MOST_DAYS} days, not {days}")
    return Period(FREE, since, until, since - timedelta(days=days), since - timedelta(days=1))


def months_before(first: date, months: int) -> date:
    """The first of the month that was so many before that of `first`."""
    count = first.year * 12 + first.month - 1 - months
    return date(count // 12, count % 12 + 1, 1)


def _end(first: date) -> date:
    return months_before(first, -1) - timedelta(days=1)
