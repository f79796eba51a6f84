"""The time zones of this machine and of each country (from the CLDR): when a day ends there, and when to send mail.

The calendar ends with the year 9999, and an order may be for its last instant. Times that would lie beyond it become its last time.
"""

from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import cache, lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from babel.core import get_global

_DAY = timedelta(days=1)
# Automatic mail is sent between these hours, everywhere in the recipient's country.
_MORNING, _EVENING = 9, 18
_STEP = timedelta(minutes=15)
_STEPS = 2 * 24 * 4
# A time up to this long before the end of a day counts as its end.
_TOLERANCE = timedelta(minutes=1)


@cache
def known_zones() -> frozenset[str]:
    """Returns the names of all time zones. `ZoneInfo` takes others too, such as `posix/Europe/London`, but other programs may not know them."""
    return frozenset(available_timezones())


@cache
def zones_of(country: str) -> tuple[tzinfo, ...]:
    """Returns the zones of a country (ISO 3166-1 alpha-2), or UTC if it has none."""
    found: list[tzinfo] = []
    for name in get_global("territory_zones").get(country.upper(), ()):
        try:
            found.append(ZoneInfo(name))
        except (ZoneInfoNotFoundError, ValueError):  # this machine has no data for the zone
            continue
    return tuple(found) or (UTC,)


def in_zone(at: datetime, zone: tzinfo) -> datetime:
    """Returns an instant in a zone. Returns the last time of the calendar if the zone's own lies beyond it."""
    try:
        return at.astimezone(zone)
    except OverflowError:
        return datetime.max.replace(tzinfo=zone)


def after(at: datetime, passed: timedelta) -> datetime:
    """Returns the time when `passed` has passed since `at`. Returns the last time of the calendar if that lies beyond it."""
    try:
        return at + passed
    except OverflowError:
        return datetime.max.replace(tzinfo=at.tzinfo)


def last_whole_day(until: datetime, country: str) -> date:
    """Returns the last day that has ended by `until` in all zones of a country."""
    return min(after(in_zone(until, zone), _TOLERANCE).date() for zone in zones_of(country)) - _DAY


def daytime_from(at: datetime, country: str) -> datetime:
    """Returns the first time from `at` on when it is daytime in a country. Returns `at` at the end of the calendar."""
    if is_daytime(at, country):
        return at
    quarter = at.replace(minute=at.minute // 15 * 15, second=0, microsecond=0)
    steps = (after(quarter, _STEP * number) for number in range(1, _STEPS))
    return next((one for one in steps if is_daytime(one, country)), at)


def is_daytime(at: datetime, country: str) -> bool:
    """Returns whether it is between nine and six o'clock everywhere in a country.

    Russia has no such time. There it is daytime while it is in as many zones as possible.
    """
    return _by_day(at, country) >= _most_by_day(country, at.astimezone(UTC).date())


def _by_day(at: datetime, country: str) -> int:
    """Returns in how many zones of a country it is between nine and six o'clock."""
    return sum(_MORNING <= in_zone(at, zone).hour < _EVENING for zone in zones_of(country))


@lru_cache(maxsize=1_000)
def _most_by_day(country: str, day: date) -> int:
    """Returns the largest number of zones of a country in which it is daytime at once, on a day in UTC."""
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return max(_by_day(midnight + _STEP * number, country) for number in range(_DAY // _STEP))
