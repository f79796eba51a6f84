"""What a contact's values may be, and what is said of those that may not."""

import pytest

from largesse.contacts import model


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
