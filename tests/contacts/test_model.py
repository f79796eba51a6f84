"""What a contact's values may be, and what is said of those that may not."""

from datetime import date

import pytest

from largesse.contacts import model


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
    assert model.read_birthday(typed) == birthday


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
    with pytest.raises(model.ContactFault) as refused:
        model.read_birthday(typed)
    assert (refused.value.field, refused.value.kind) == ("birthday", kind)


@pytest.mark.parametrize(
    "typed", ["2 de enero", "1月2日", "2-gen", "2 janeiro", "2 januari", "\N{FULLWIDTH DIGIT TWO}.1."]
)
def test_birthdays_of_other_countries(typed: str) -> None:
    assert model.read_birthday(typed) == 102


@pytest.mark.parametrize("typed", ["1990年1月2日", "平成2年1月2日", "昭和65年 1月 2日", "1990년 1월 2일", "19900102"])
def test_dates_with_eastern_marks_or_none(typed: str) -> None:
    assert model.read_start_date(typed) == date(1990, 1, 2)
    with pytest.raises(model.ContactFault):
        model.read_birthday(typed)
    assert model.read_start_date("令和元年5月1日") == date(2019, 5, 1)


def test_start_dates() -> None:
    assert model.read_start_date("2024-03-01 00:00:00") == date(2024, 3, 1)
    assert model.read_start_date("01/03/2024") == model.read_start_date("1.3.2024") == date(2024, 3, 1)
    words = ("1 March 2024", "1. März 2024", "1er mars 2024", "March 1, 2024", "1-Mar-2024", "2024/03/01", "01-03-2024")
    assert {model.read_start_date(one) for one in words} == {date(2024, 3, 1)}
    for wrong in (
        "2024-02-30",
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
        with pytest.raises(model.ContactFault):
            model.read_start_date(wrong)


def test_countries_and_languages_by_code_and_name() -> None:
    assert [model.read_country(one) for one in ("gb", "UK", "Deutschland", "Österreich", "france")] == [
        "GB",
        "GB",
        "DE",
        "AT",
        "FR",
    ]
    for code, names in {
        "US": ("USA", "U.S.A."),
        "GB": ("GBR", "England"),
        "DE": ("DEU",),
        "AT": ("Oesterreich",),
        "TR": ("Turkey", "Türkiye", "Türkei"),
        "HK": ("Hong Kong", "Hongkong"),
    }.items():
        assert {model.read_country(one) for one in names} == {code}
    assert [model.read_language(one) for one in ("en-GB", "Deutsch", "French", "allemand", "")] == [
        "en",
        "de",
        "fr",
        "de",
        None,
    ]
    assert [model.read_language(one) for one in ("English (UK)", "Deutsch (Schweiz)", "Français (France)")] == [
        "en",
        "de",
        "fr",
    ]
    for reader, wrong in (
        (model.read_country, "Atlantis"),
        (model.read_country, "EU"),
        (model.read_language, "Klingon"),
        (model.read_language, "(en)"),
    ):
        with pytest.raises(model.ContactFault):
            reader(wrong)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"email": "ada"}, "email_no_at"),
        ({"email": "\uff41@example.com"}, "email_sign"),
        ({"email": ""}, "email_missing"),
        ({"name": "x" * 201}, "name_long"),
        ({"name": "a\u202eb"}, "name_wrong"),
        ({"address": "x" * 501}, "address_long"),
        ({"external_id": "x" * 129}, "external_id_long"),
        ({"birthday": 231}, "birthday_none"),
        ({"groups": ("",)}, "groups_wrong"),
        ({"groups": ("x" * 61,)}, "groups_long"),
        ({"groups": tuple(map(str, range(21)))}, "groups_many"),
        ({"fields": {"size": "x" * 201}}, "fields_long"),
        ({"fields": {"nothing": "x"}}, "fields_unknown"),
    ],
)
def test_what_breaks_a_rule_is_refused_by_field(change: dict[str, object], kind: str) -> None:
    with pytest.raises(model.ContactFault) as refused:
        model.checked_change(model.ContactChange(**change), ["size"])  # type: ignore[arg-type]
    assert refused.value.kind == kind
    assert refused.value.field in kind


def test_what_is_right_is_normalised() -> None:
    longest = model.ContactChange(name="x" * 200, groups=tuple("x" * 58 + f"{number:02}" for number in range(20)))
    assert model.checked_change(longest, []) == longest
    assert model.read_email(" Ada@EXAMPLE.com ") == "Ada@example.com"
    change = model.checked_change(
        model.ContactChange(name="  ", address=" 1 High St\r\nLeeds ", fields={"size": " M "}), ["size"]
    )
    assert (change.name, change.address, change.fields) == (None, "1 High St\nLeeds", {"size": "M"})
    assert model.sought("Zoë Ångström", "Zoe@Example.com") == "zoe angstrom zoe@example.com"


def test_blank_lines_among_groups_take_no_time() -> None:
    assert model.read_groups('a\n "b;c" ' + "\r\n" * 200_000 + "d") == ["a", "b;c", "d"]
