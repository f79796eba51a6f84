"""Which language somebody gets, and how it writes amounts and numbers."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from largesse.base.i18n.languages import LANGUAGES, chosen_language, language_of
from largesse.base.i18n.templates import template_environment
from largesse.web.console.layout import moment_of


@pytest.mark.parametrize(
    ("asked", "remembered", "accepted", "tag"),
    [
        ("de", "fr", "en", "de"),
        ("xx", "fr", "en", "fr"),
        (None, None, "fr;q=0.2, de;q=0.9", "de"),
        (None, None, "FR-ca", "fr"),
        (None, None, "ar", None),
        (None, None, ",".join(["ja"] * 50 + ["de"]), None),
    ],
)
def test_the_language_of_a_request(asked: str | None, remembered: str | None, accepted: str, tag: str | None) -> None:
    assert chosen_language(asked, remembered, accepted) is LANGUAGES.get(tag or "")


@pytest.mark.parametrize(
    ("tag", "minor", "currency", "text"),
    [
        ("en", 1000, "GBP", "£10.00"),
        ("en", 2500, "USD", "US$25.00"),
        ("en", 1250, "KWD", "KWD\N{NO-BREAK SPACE}1.250"),
        ("de", 123456, "EUR", "1.234,56\N{NO-BREAK SPACE}€"),
        ("fr", 123456, "EUR", "1\N{NARROW NO-BREAK SPACE}234,56\N{NO-BREAK SPACE}€"),
        ("de", 500, "JPY", "500\N{NO-BREAK SPACE}¥"),
    ],
)
def test_amounts_for_their_readers(tag: str, minor: int, currency: str, text: str) -> None:
    assert LANGUAGES[tag].amount(minor, currency) == text


@pytest.mark.parametrize(
    ("tag", "day", "written"),
    [
        ("fr", 1, ("1er octobre 2026", "1er oct. 2026", "1er oct.", "1er oct. 2026, 09:30:00")),
        ("fr", 11, ("11 octobre 2026", "11 oct. 2026", "11 oct.", "11 oct. 2026, 09:30:00")),
        ("de", 1, ("1. Oktober 2026", "1. Okt. 2026", "1. Okt.", "01.10.2026, 09:30:00")),
        ("en", 1, ("1 October 2026", "1 Oct 2026", "1 Oct", "1 Oct 2026, 09:30:00")),
    ],
)
def test_dates_for_their_readers(tag: str, day: int, written: tuple[str, ...]) -> None:
    language, at = LANGUAGES[tag], datetime(2026, 10, day, 9, 30, tzinfo=UTC)
    short = language.short_day(at, with_year=False)
    assert (language.day(at), language.short_day(at.date()), short, moment_of(at, language, UTC)) == written


@pytest.mark.parametrize(
    ("chosen", "country", "tag"),
    [
        (None, "GB", "en"),
        (None, "FR", "fr"),
        (None, "DE", "de"),
        (None, "AT", "de"),
        (None, "CH", "de"),
        (None, "BE", "fr"),  # Dutch comes first there, which we do not speak
        (None, "CA", "en"),
        (None, "IN", "en"),
        (None, "JP", "en"),
        (None, "XX", "en"),
        ("fr", "DE", "fr"),
        ("en", "FR", "en"),
        ("xx", "FR", "fr"),  # a language dropped since
    ],
)
def test_a_recipient_reads_the_language_they_chose_else_that_of_their_country(
    chosen: str | None, country: str, tag: str
) -> None:
    assert language_of(chosen, country) is LANGUAGES[tag]


@pytest.mark.parametrize(
    ("tag", "codes"),
    [
        ("en", ["AU", "AT", "DE", "CH", "AE"]),
        ("de", ["AU", "DE", "AT", "CH", "AE"]),
        ("fr", ["DE", "AU", "AT", "AE", "CH"]),
    ],
)
def test_countries_are_in_the_order_of_their_names(tag: str, codes: list[str]) -> None:
    assert LANGUAGES[tag].in_order(["AE", "AT", "AU", "CH", "DE"]) == codes


SAID = "{% trans count=count, name=name %}{{ count }} gift of {{ name }}{% pluralize %}{{ count }} gifts of {{ name }}{% endtrans %}"


@pytest.mark.parametrize(("tag", "written"), [("en", "1,204"), ("de", "1.204"), ("fr", "1\u202f204")])
def test_a_count_is_written_as_the_language_does(tmp_path: Path, tag: str, written: str) -> None:
    (tmp_path / "one.html").write_text(SAID)
    (tmp_path / "one.txt").write_text(SAID)
    environment = template_environment(tmp_path, tag)
    assert environment.get_template("one.html").render(count=1204, name="<b>") == f"{written} gifts of &lt;b&gt;"
    assert environment.get_template("one.txt").render(count=1, name="<b>") == "1 gift of <b>"
