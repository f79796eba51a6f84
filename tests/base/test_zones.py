"""Days and daytime in the zones of a country."""

from datetime import UTC, date, datetime, timedelta

import pytest

from largesse.base.zones import after, daytime_from, in_zone, is_daytime, last_whole_day, zones_of


@pytest.mark.parametrize(
    ("until", "country", "day"),
    [
        (datetime(2027, 3, 3, 23, 59, 59, tzinfo=UTC), "GB", date(2027, 3, 3)),
        (datetime(2027, 3, 3, 23, 59, 59, tzinfo=UTC), "DE", date(2027, 3, 3)),
        (datetime(2027, 3, 3, 23, 59, 59, tzinfo=UTC), "US", date(2027, 3, 2)),
        (datetime(2027, 3, 4, 18, tzinfo=UTC), "GB", date(2027, 3, 3)),
        (datetime(2027, 7, 3, 22, 59, 59, tzinfo=UTC), "GB", date(2027, 7, 3)),
        (datetime(2027, 3, 3, 23, 59, 59, tzinfo=UTC), "XX", date(2027, 3, 3)),
    ],
)
def test_the_last_whole_day_ends_everywhere_in_the_country(until: datetime, country: str, day: date) -> None:
    assert last_whole_day(until, country) == day


@pytest.mark.parametrize(
    ("at", "country", "leaves"),
    [
        (datetime(2027, 1, 4, 10, 7, tzinfo=UTC), "GB", datetime(2027, 1, 4, 10, 7, tzinfo=UTC)),
        (datetime(2027, 1, 4, 3, 7, tzinfo=UTC), "GB", datetime(2027, 1, 4, 9, tzinfo=UTC)),
        (datetime(2027, 1, 4, 18, tzinfo=UTC), "GB", datetime(2027, 1, 5, 9, tzinfo=UTC)),
        (datetime(2027, 7, 5, 3, tzinfo=UTC), "FR", datetime(2027, 7, 5, 7, tzinfo=UTC)),
        (datetime(2027, 1, 4, 3, tzinfo=UTC), "IN", datetime(2027, 1, 4, 3, 30, tzinfo=UTC)),
        (datetime(2027, 1, 4, 20, 59, tzinfo=UTC), "RU", datetime(2027, 1, 5, 6, tzinfo=UTC)),
    ],
)
def test_mail_leaves_by_day(at: datetime, country: str, leaves: datetime) -> None:
    assert daytime_from(at, country) == leaves


@pytest.mark.parametrize("country", ["US", "AU", "BR", "CA", "CL", "ES", "ID", "MX", "NZ", "PT"])
def test_it_is_day_in_all_zones_of_a_country_at_once(country: str) -> None:
    at = daytime_from(datetime(2027, 1, 4, 3, tzinfo=UTC), country)
    assert is_daytime(at, country)
    assert len(zones_of(country)) > 1
    assert all(9 <= at.astimezone(zone).hour < 18 for zone in zones_of(country))


def test_where_it_is_never_day_everywhere_it_is_day_in_most_zones_for_a_while() -> None:
    at = daytime_from(datetime(2027, 1, 4, 20, 59, tzinfo=UTC), "RU")
    assert all(is_daytime(at + timedelta(minutes=minutes), "RU") for minutes in range(15)), (
        "a worker may come a little later"
    )
    hours = [at.astimezone(zone).hour for zone in zones_of("RU")]
    assert sum(9 <= hour < 18 for hour in hours) > len(hours) * 0.8
    assert all(8 <= hour < 20 for hour in hours)


@pytest.mark.parametrize("country", ["GB", "NZ", "US", "XX"])
def test_the_last_instants_of_the_calendar_stay_in_it(country: str) -> None:
    last = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert all(in_zone(last, zone).year == 9999 for zone in zones_of(country))
    assert after(last, timedelta(days=365)) == datetime.max.replace(tzinfo=UTC)
    assert daytime_from(last, country) >= last
    assert last_whole_day(last, country).year == 9999
