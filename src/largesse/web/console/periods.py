"""Periods of reports.

A period is the last 30 days, whole months up to today, or days that the reader chooses. Reports open with the last 30 days, as a new month is empty.
"""

from datetime import date, timedelta

import msgspec
from msgspec.structs import replace

from largesse.base.i18n.languages import text

RECENT, FREE = "30-days", "days"
PERIODS = {
    RECENT: text("Last 30 days"),
    "this-month": text("This month"),
    "last-month": text("Last month"),
    "3-months": text("Three months"),
    "12-months": text("Twelve months"),
    FREE: text("Custom period"),
}
BEFORE_FIRST = text("Choose a day that is not before the first one.")
MOST_DAYS = 5 * 366  # the longest period that the reader may choose
_RECENT_DAYS = 30
_DAYS_DRAWN = 62  # longer periods are drawn by month
_MONTHS = {"this-month": 1, "last-month": 1, "3-months": 3, "12-months": 12}


class Period(msgspec.Struct, frozen=True):
    """Days from `since` to `until`, both included, and the earlier days to compare them with."""

    name: str
    since: date
    until: date
    before_since: date
    before_until: date

    @property
    def grain(self) -> str:
        """The unit of its chart: `day` or `month`."""
        if self.name in _MONTHS:
            return "day" if _MONTHS[self.name] == 1 else "month"
        return "day" if (self.until - self.since).days < _DAYS_DRAWN else "month"

    def steps(self) -> list[date]:
        """Returns the first day of each unit; for the current month, all its days."""
        if self.grain == "month":
            first, last = self.since.replace(day=1), self.until.replace(day=1)
            count = (last.year - first.year) * 12 + last.month - first.month
            return [months_before(last, back) for back in reversed(range(count + 1))]
        last = _end(self.since) if self.name in _MONTHS else self.until
        return [self.since + timedelta(days=at) for at in range((last - self.since).days + 1)]


def period_of(name: str, today: date) -> Period:
    """Returns the period with that name; the last 30 days if unknown. Months are compared with as many months before, the last up to the same day."""
    if name not in _MONTHS:
        return replace(free_period(today - timedelta(days=_RECENT_DAYS - 1), today), name=RECENT)
    last = months_before(today.replace(day=1), 1 if name == "last-month" else 0)
    since = months_before(last, _MONTHS[name] - 1)
    until = today if name != "last-month" else _end(last)
    last_before = months_before(last, _MONTHS[name])
    end_before = _end(last_before)
    before_until = end_before if name == "last-month" else min(last_before + timedelta(days=today.day - 1), end_before)
    return Period(name, since, until, months_before(since, _MONTHS[name]), before_until)


def free_period(since: date, until: date) -> Period:
    """Returns the period of chosen days, compared with as many days before. Raises ValueError below 1 or above MOST_DAYS days, and if the calendar has too few days before."""
    days = (until - since).days + 1
    if not 0 < days <= MOST_DAYS or since.toordinal() <= days:
        raise ValueError(f"1 to {MOST_DAYS} days, not {days}")
    return Period(FREE, since, until, since - timedelta(days=days), since - timedelta(days=1))


def months_before(first: date, months: int) -> date:
    """Returns the first day of the month that is `months` before `first`."""
    count = first.year * 12 + first.month - 1 - months
    return date(count // 12, count % 12 + 1, 1)


def _end(first: date) -> date:
    return months_before(first, -1) - timedelta(days=1)
