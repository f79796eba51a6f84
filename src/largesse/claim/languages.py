"""The languages of the recipient's pages: which one a request wants, and its texts, amounts and dates."""

from __future__ import annotations

import gettext
import io
import re
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path

from babel import Locale
from babel.dates import format_date
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_currency

from largesse.money import exponent

CATALOGUES = Path(__file__).parent / "locale"
COOKIE = "language"
_LETTER_THEN_DIGIT = re.compile(r"(?<=[^\W\d_])(?=\d)")
_MOST_WANTED = 20


@dataclass(frozen=True, slots=True)
class Language:
    """A language the pages speak: how its speakers call it, and the locale its amounts and dates follow."""

    tag: str
    name: str
    locale: Locale

    @property
    def direction(self) -> str:
        """`ltr` or `rtl`."""
        return str(self.locale.text_direction)

    def amount(self, minor: int, currency: str) -> str:
        """An amount of minor units for its readers: `£10.00`, `10,00 €`."""
        text = format_currency(Decimal(minor).scaleb(-exponent(currency)), currency, locale=self.locale)
        # The CLDR sets a symbol of letters apart from the digits, Babel does not.
        return _LETTER_THEN_DIGIT.sub("\N{NO-BREAK SPACE}", text, count=1)

    def day(self, at: datetime | date) -> str:
        """A date for its readers: `20 November 2026`."""
        return format_date(at, format="long", locale=self.locale)

    def country(self, code: str) -> str:
        return str(self.locale.territories.get(code, code))


# The first is for those who want none of them. British English writes dates without doubt, and dollars as US$.
LANGUAGES = {
    language.tag: language
    for language in (
        Language("en", "English", Locale("en", "GB")),
        Language("fr", "Français", Locale("fr", "FR")),
        Language("de", "Deutsch", Locale("de", "DE")),
    )
}
DEFAULT = LANGUAGES["en"]


def choose_language(asked: str | None, remembered: str | None, accepted: str) -> Language:
    """The language asked for by the switch, else the remembered one, else the best of `Accept-Language`."""
    for tag in (asked, remembered, *_by_preference(accepted)):
        language = LANGUAGES.get((tag or "").lower().split("-", 1)[0])
        if language is not None:
            return language
    return DEFAULT


@cache
def translations(tag: str) -> gettext.NullTranslations:
    """The texts of a language, read from its catalogue; English is what the templates say."""
    path = CATALOGUES / f"{tag}.po"
    if not path.exists():
        return gettext.NullTranslations()
    with path.open("rb") as file:
        catalogue = read_po(file, locale=tag)
    compiled = io.BytesIO()
    write_mo(compiled, catalogue)
    compiled.seek(0)
    return gettext.GNUTranslations(compiled)


def _by_preference(accepted: str) -> list[str]:
    """The tags of an Accept-Language header (RFC 9110, section 12.5.4), most wanted first."""
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
