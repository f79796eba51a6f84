"""The languages of pages and mail: how to choose one, and how it writes amounts, dates and countries."""

from collections.abc import Iterable
from datetime import date, datetime
from functools import cache, lru_cache

import msgspec
from babel import Locale
from babel.dates import format_date, format_skeleton
from babel.languages import get_official_languages
from babel.numbers import format_decimal, format_percent

from largesse.base.money import exponent, to_decimal, written
from largesse.base.text import folded

_MOST_WANTED = 20
# Codes of the CLDR that are not countries in ISO 3166-1: groups of countries, tests, and islands that belong to a country.
_NO_COUNTRIES = frozenset({"CP", "CQ", "DG", "EA", "EU", "EZ", "IC", "QO", "UN", "XA", "XB", "ZZ"})


class Language(msgspec.Struct, frozen=True):
    """A language that Largesse has texts in. `name` is in the language itself. `locale` formats amounts and dates."""

    tag: str
    name: str
    locale: Locale

    @property
    def direction(self) -> str:
        """`ltr` or `rtl`."""
        return str(self.locale.text_direction)

    def amount(self, minor: int, currency: str) -> str:
        """Returns an amount of minor units as text: `£10.00`, `10,00 €`."""
        return written(minor, currency, self.locale)

    def typed(self, minor: int, currency: str) -> str:
        """Returns an amount for a field of a form, without sign and groups: `10.00`, `10,00`."""
        places = exponent(currency)
        return str(format_decimal(to_decimal(minor, currency), f"0.{'0' * places}" if places else "0", self.locale))

    def day(self, at: datetime | date) -> str:
        """Returns a date as text: `20 November 2026`."""
        return self.as_written(format_date(at, format="long", locale=self.locale))

    def short_day(self, at: datetime | date, *, with_year: bool = True) -> str:
        """Returns a short date: `20 Nov 2026`, `20 Nov`."""
        return self.as_written(str(format_skeleton("yMMMd" if with_year else "MMMd", at, locale=self.locale)))

    def as_written(self, formatted: str) -> str:
        """Returns a date that Babel formatted as people write it: `1er octobre` in French, for which the CLDR has `1 octobre`."""
        return f"1er{formatted[1:]}" if self.tag == "fr" and formatted.startswith("1 ") else formatted

    def number(self, count: int) -> str:
        """Returns a whole number as text: `1,204`, `1.204`."""
        return _number(count, self.locale)

    def counted(self, count: int, most: int) -> str:
        """Returns a number that was counted up to one more than `most`: `1,000+` if there are more."""
        return f"{self.number(most)}+" if count > most else self.number(count)

    def percent(self, share: float, decimals: int = 0) -> str:
        """Returns a share as text, in per cent with at most so many decimals: `82%`, `8,2 %`."""
        return str(format_percent(round(share, 2 + decimals), locale=self.locale, decimal_quantization=False))

    def country(self, code: str) -> str:
        """Returns the name of a country in this language, or its code (ISO 3166-1 alpha-2) if it has none."""
        return str(self.locale.territories.get(code, code))

    def in_order(self, codes: Iterable[str]) -> list[str]:
        """Returns the codes of countries, sorted by name: `Österreich` is among the names with O."""
        return sorted(codes, key=lambda code: (folded(self.country(code)), code))


# The first is the default. British English writes dates that cannot be misread, and dollars as US$.
LANGUAGES = {
    language.tag: language
    for language in (
        Language("en", "English", Locale("en", "GB")),
        Language("fr", "Français", Locale("fr", "FR")),
        Language("de", "Deutsch", Locale("de", "DE")),
    )
}
DEFAULT = LANGUAGES["en"]


@lru_cache(maxsize=10_000)
def _number(count: int, locale: Locale) -> str:
    return str(format_decimal(count, locale=locale))


def chosen_language(asked: str | None, remembered: str | None, accepted: str) -> Language | None:
    """Returns the language chosen on the page, else the remembered one, else the best of `Accept-Language`.

    Returns None if we have none of these languages. Then the country of the gift is the better guess.
    """
    return _first_spoken((asked, remembered, *_by_preference(accepted)))


def language_of(chosen: str | None, country: str) -> Language:
    """Returns the language of a recipient: the one they chose, if any, else the language of their gift's country."""
    return LANGUAGES.get(chosen or "") or language_of_country(country)


@cache
def country_codes() -> frozenset[str]:
    """Returns the codes of the countries that gifts can be sold in (ISO 3166-1 alpha-2). Each has a form for postal addresses."""
    codes = map(str, Locale("en").territories)
    return frozenset(code for code in codes if len(code) == 2 and code.isalpha()) - _NO_COUNTRIES


@cache
def language_of_country(country: str) -> Language:
    """Returns the first official language of a country (ISO 3166-1 alpha-2; languages of the CLDR) that we have."""
    return _first_spoken(get_official_languages(country, de_facto=True)) or DEFAULT


def _first_spoken(tags: Iterable[str | None]) -> Language | None:
    """Returns the first of these languages that we have."""
    for tag in tags:
        language = LANGUAGES.get((tag or "").lower().split("-", 1)[0])
        if language is not None:
            return language
    return None


def _by_preference(accepted: str) -> list[str]:
    """Returns the tags of an Accept-Language header (RFC 9110, section 12.5.4), most preferred first."""
    weighted = []
    for part in accepted.split(",")[:_MOST_WANTED]:
        tag, _, parameter = part.partition(";")
        name, _, value = parameter.strip().partition("=")
        try:
            weight = float(value) if name.strip() == "q" else 1.0
        except ValueError:
            continue
        if tag.strip() and weight > 0:
            weighted.append((-weight, tag.strip()))
    return [tag for _, tag in sorted(weighted, key=lambda pair: pair[0])]


def text(english: str) -> str:
    """Marks a text in the code that is translated later, for its reader."""
    return english
