"""The days of contacts, by plain rules."""

from datetime import date

import pytest

from largesse.automations import model
from largesse.automations.model import AutomationRule, Days, gives_twice, has_day, keys_of, send_day
from largesse.base.i18n.languages import DEFAULT
from largesse.mail.people.automation_words import why

RULE = AutomationRule(name="A", occasion="birthday", group_id=None, template_id=1, account_id=1, zone="UTC")


def changed(**changes: object) -> AutomationRule:
    return AutomationRule(**{name: getattr(RULE, name) for name in RULE.__struct_fields__} | changes)


def days(**changes: object) -> Days:
    return Days(**{"birthday": None, "start_date": None, "joined_on": None, "is_active": True, **changes})


@pytest.mark.parametrize(
    ("day", "before", "after"),
    [
        (date(2027, 2, 28), {228, 229}, {228}),
        (date(2027, 3, 1), {301}, {301, 229}),
        (date(2028, 2, 28), {228}, {228}),
        (date(2028, 2, 29), {229}, {229}),
        (date(2028, 3, 1), {301}, {301}),
        (date(2100, 2, 28), {228, 229}, {228}),
    ],
)
def test_29_february_is_kept_on_the_day_before_or_after(day: date, before: set[int], after: set[int]) -> None:
    assert (set(keys_of(day, "before")), set(keys_of(day, "after"))) == (before, after)


@pytest.mark.parametrize(("weekend", "saturday", "sunday"), [("keep", 14, 15), ("before", 13, 13), ("after", 16, 16)])
def test_a_day_at_a_weekend_is_kept_by_rule(weekend: str, saturday: int, sunday: int) -> None:
    assert date(2026, 11, 14).isoweekday() == 6
    assert send_day(date(2026, 11, 14), weekend) == date(2026, 11, saturday)
    assert send_day(date(2026, 11, 15), weekend) == date(2026, 11, sunday)
    assert send_day(date(2026, 11, 13), weekend) == date(2026, 11, 13)
    assert send_day(date(2026, 11, 16), weekend) == date(2026, 11, 16)


def test_an_anniversary_is_of_the_years_that_the_rule_names() -> None:
    one = days(start_date=date(2020, 5, 4))
    every, some = changed(occasion="anniversary"), changed(occasion="anniversary", years=(1, 5))
    assert [year for year in range(2019, 2030) if has_day(every, one, date(year, 5, 4))] == list(range(2021, 2030))
    assert [year for year in range(2019, 2030) if has_day(some, one, date(year, 5, 4))] == [2021, 2025]
    assert not has_day(every, one, date(2021, 5, 5))


def test_the_first_day_is_one_day() -> None:
    one, first = days(start_date=date(2028, 2, 29)), changed(occasion="first_day")
    assert has_day(first, one, date(2028, 2, 29))
    assert not has_day(first, one, date(2029, 2, 28))


def test_who_joins_has_a_day_after_so_many_days() -> None:
    joined = changed(occasion="joined", group_id=7, days=0)
    assert has_day(joined, days(joined_on=date(2026, 1, 1)), date(2026, 1, 1))
    assert has_day(changed(occasion="joined", group_id=7, days=31), days(joined_on=date(2026, 1, 1)), date(2026, 2, 1))
    assert not has_day(joined, days(), date(2026, 1, 1))


def test_who_left_or_is_not_in_the_group_has_none() -> None:
    assert has_day(RULE, days(birthday=101), date(2026, 1, 1))
    assert not has_day(RULE, days(birthday=101, is_active=False), date(2026, 1, 1))
    assert not has_day(changed(group_id=7), days(birthday=101), date(2026, 1, 1))
    assert has_day(changed(group_id=7), days(birthday=101, joined_on=date(2020, 1, 1)), date(2026, 1, 1))


@pytest.mark.parametrize(
    ("one", "other", "twice"),
    [
        ({}, {"template_id": 2, "weekend": "after"}, True),
        ({}, {"occasion": "first_day"}, False),
        ({"occasion": "anniversary", "years": (1, 5)}, {"occasion": "anniversary", "years": (10,)}, False),
        ({"occasion": "anniversary", "years": (1, 5)}, {"occasion": "anniversary", "years": (5, 10)}, True),
        ({"occasion": "anniversary", "years": (1, 5)}, {"occasion": "anniversary"}, True),
        ({"occasion": "joined", "group_id": 1, "days": 0}, {"occasion": "joined", "group_id": 1, "days": 30}, False),
        ({"occasion": "joined", "group_id": 1, "days": 0}, {"occasion": "joined", "group_id": 2, "days": 0}, False),
        ({"occasion": "joined", "group_id": 1, "days": 0}, {"occasion": "joined", "group_id": 1, "days": 0}, True),
    ],
)
def test_two_automations_give_twice_for_the_same_day(
    one: dict[str, object], other: dict[str, object], twice: bool
) -> None:
    assert gives_twice(changed(**one), changed(**other)) is twice


@pytest.mark.parametrize(
    "reason",
    [
        *(
            model.BY_PERSON,
            model.PAUSED,
            model.CAP,
            model.LEFT,
            model.CHANGED,
            model.AGAIN,
            model.NOT_APPROVED,
            model.BALANCE,
        ),
        *(f"{kind}:GBP:1500:Birthdays" for kind in (model.BUDGET, model.PER_GIFT)),
        f"{model.APPROVAL}:Above £500",
    ],
)
def test_each_reason_has_words(reason: str) -> None:
    said = {why(reason, lambda text, **values: text % values, DEFAULT, is_failed) for is_failed in (False, True)}
    assert reason not in said
    assert len(said) == 1 + (reason == model.NOT_APPROVED)
