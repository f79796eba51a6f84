"""Dates as people and other programs write them."""

from datetime import date

import pytest

from largesse.contacts.dates import either_first, month_lead, read_birthday, read_start_date, with_day_first
from largesse.contacts.model import ContactFault


@pytest.mark.parametrize(
    ("typed", "birthday"),
    [
        ("14/03", 314), ("14.03.", 314), ("14. 3.", 314), ("03-14", 314), ("--03-14", 314), ("29/02", 229), ("", None),
        ("19 Mar", 319), ("29 February", 229), ("19 mars", 319), ("19. März", 319), ("1er août", 801), ("3rd Sep.", 903),
        ("2 juil.", 702), ("19Mar", 319), ("24. DEZ", 1224),
        ("14-Mar", 314), ("14. Mrz", 314), ("March 14", 314), ("Dec. 25th", 1225), ("14 / 03", 314), ("\u200e14/03\u200e", 314),
    ],
)  # fmt: skip
def test_birthdays_are_a_day_and_a_month(typed: str, birthday: int | None) -> None:
    assert read_birthday(typed) == birthday


@pytest.mark.parametrize(
    ("typed", "kind"),
    [
        ("31/02", "birthday_none"),
        ("30/02", "birthday_none"),
        ("31/04", "birthday_none"),
        ("00/03", "birthday_none"),
        ("01/13", "birthday_none"),
        ("1990-03-14", "birthday_year"),
        ("1990-03-14 00:00:00", "birthday_year"),
        ("14/03/1990", "birthday_year"),
        ("14.3.90", "birthday_year"),
        ("spring", "birthday_wrong"),
        ("19 Mar 1990", "birthday_year"),
        ("19. März 90", "birthday_year"),
        ("30 February", "birthday_none"),
        ("0 March", "birthday_none"),
        ("2 jui", "birthday_wrong"),
        ("14-Mar-90", "birthday_year"),
        ("March 14, 1990", "birthday_year"),
        ("Mar-14", "birthday_wrong"),
        ("2 Spring", "birthday_wrong"),
    ],
)
def test_other_birthdays_are_refused(typed: str, kind: str) -> None:
    with pytest.raises(ContactFault) as refused:
        read_birthday(typed)
    assert (refused.value.field, refused.value.kind) == ("birthday", kind)


@pytest.mark.parametrize(
    "typed", ["2 de enero", "1月2日", "2-gen", "2 janeiro", "2 januari", "\N{FULLWIDTH DIGIT TWO}.1."]
)
def test_birthdays_of_other_countries(typed: str) -> None:
    assert read_birthday(typed) == 102


@pytest.mark.parametrize("typed", ["1990年1月2日", "平成2年1月2日", "昭和65年 1月 2日", "1990년 1월 2일", "19900102"])
def test_dates_with_eastern_marks_or_none(typed: str) -> None:
    assert read_start_date(typed) == date(1990, 1, 2)
    with pytest.raises(ContactFault):
        read_birthday(typed)
    assert read_start_date("令和元年5月1日") == date(2019, 5, 1)


def test_start_dates() -> None:
    assert read_start_date("2024-03-01 00:00:00") == date(2024, 3, 1)
    assert read_start_date("01/03/2024") == read_start_date("1.3.2024") == date(2024, 3, 1)
    words = ("1 March 2024", "1. März 2024", "1er mars 2024", "March 1, 2024", "1-Mar-2024", "2024/03/01", "01-03-2024")
    assert {read_start_date(one) for one in words} == {date(2024, 3, 1)}
    after_weekdays = (
        "Friday, 1 March 2024",
        "Fr., 1.3.2024",
        "vendredi 1er mars 2024",
        "sexta-feira, 1 de março de 2024",
        "2024年3月1日(金)",
    )
    assert {read_start_date(one) for one in after_weekdays} == {date(2024, 3, 1)}
    for wrong in (
        "2024-02-30",
        "Freunde 1.3.2024",
        "soon",
        "01/03",
        "1 March",
        "1-Mar-24",
        "2024-03/01",
        "30 February 2024",
        "01/03/0024",
        "31/12/1899",
        "02011990",
        "平成2年13月2日",
    ):
        with pytest.raises(ContactFault):
            read_start_date(wrong)


def test_the_order_of_day_and_month_is_found_after_a_weekday_too() -> None:
    assert (month_lead(["Thu 12/31/2026"]), month_lead(["Thu 31/12/2026"])) == (1, -1)
    assert either_first(["Thu 03/04/2026"]) == "Thu 03/04/2026"
    assert with_day_first("Thu 12/31/2026") == "31/12/2026"


def test_a_million_blanks_after_a_word_are_read_once_and_not_for_each_blank() -> None:
    with pytest.raises(ContactFault):
        read_start_date(f"Do.{' ' * 1_000_000}!")
