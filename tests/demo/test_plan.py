"""The plan of the demo's history: the same each time, and of every kind that pages show."""

from __future__ import annotations

from datetime import UTC, datetime

from largesse.demo.plan import DAYS, sendings
from largesse.demo.timeline import working_days


def test_the_plan_is_the_same_each_time_and_in_order() -> None:
    orders = sendings()
    assert orders == sendings()
    assert [(one.day, one.minute) for one in orders] == sorted((one.day, one.minute) for one in orders)
    assert {0, DAYS - 1} <= {one.day for one in orders} <= set(range(DAYS))


def test_the_plan_has_every_kind_of_order() -> None:
    orders = sendings()
    assert len({one.sender for one in orders}) == 5, "people and service accounts"
    assert all(sum(what is not None for what in (one.product, one.collection, one.template)) == 1 for one in orders)
    for some in (
        [one for one in orders if one.codes],
        [one for one in orders if one.in_days],
        [one for one in orders if one.cancelled_after],
        [one for one in orders if one.resent_after],
        [one for one in orders if any(guest.mended_after for guest in one.guests)],
        [one for one in orders if any(guest.is_mistyped and guest.mended_after is None for guest in one.guests)],
        [one for one in orders if len(one.guests) > 50],
    ):
        assert some
    references = [one.reference for one in orders if one.reference]
    assert len(references) == len(set(references))


def test_mistyped_addresses_are_nobody_elses() -> None:
    guests = [guest for one in sendings() for guest in one.guests]
    typed = {guest.typed for guest in guests if guest.is_mistyped}
    assert not typed & {guest.email for guest in guests}


def test_working_days_end_before_today_and_leave_weekends_out() -> None:
    monday = datetime(2030, 1, 7, 15, 30, tzinfo=UTC)
    assert working_days(monday, 6) == [
        *(datetime(2029, 12, day, tzinfo=UTC) for day in (28, 31)),
        *(datetime(2030, 1, day, tzinfo=UTC) for day in (1, 2, 3, 4)),
    ]
