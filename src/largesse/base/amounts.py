"""Reads an amount that a person typed or a file contains, in the number format of its language.

An amount is accepted only if it has one meaning. A mark between digits is a decimal mark or separates thousands. If both are possible
(`1,000`), the language decides. If the language does not decide either, the amount is refused.
Babel's `parse_decimal` is not used: it reads `1,000` in German as 1, takes `1.0.0` and exponents.
"""

import re
from decimal import Decimal
from functools import cache

import msgspec
from babel.numbers import format_decimal, get_currency_name, get_currency_symbol, get_decimal_symbol, get_group_symbol

from largesse.base.i18n.languages import DEFAULT, LANGUAGES, Language, text
from largesse.base.money import MAX_AMOUNT, AmountError, exponent, to_minor
from largesse.base.text import plain_digits, trimmed

# Characters of the longest amount that is read. MAX_AMOUNT with decimals, spaces and the longest sign has fewer.
LONGEST_AMOUNT = 40
ANY_CURRENCY = "XXX"  # ISO 4217's code for no currency, for amounts that are compared with amounts in any currency
_CROWN = ("kr", "krone", "kroner", "krona", "kronor")
_RUPEE, _DINAR = ("Rs", "rupee", "rupees"), ("dinar", "dinars")
# What people call a currency, in addition to its name in the CLDR, such as `US Dollar`.
_SHORT_NAMES = {
    **dict.fromkeys(("SEK", "NOK", "DKK", "ISK"), _CROWN),
    **dict.fromkeys(("INR", "PKR", "LKR", "NPR", "MUR"), _RUPEE),
    "USD": ("$", "dollar", "dollars"),  # not of other dollars: there, it may mean this one
    "CAD": ("C$",),
    "SGD": ("S$",),
    "KWD": ("KD", *_DINAR),
    "BHD": ("BD", *_DINAR),
    "JOD": ("JD", *_DINAR),
    "GBP": ("pound", "pounds", "Pfund", "livre", "livres"),
    "CHF": ("Fr", "SFr", "franc", "francs", "Franken"),
    "JPY": ("\N{YEN SIGN}", "yen", "yens", "円"),
    "CNY": ("\N{YEN SIGN}", "RMB", "yuan", "元"),
    "PLN": ("zł", "zl", "złoty", "zloty"),
    "CZK": ("Kč",),
    "HUF": ("Ft", "forint"),
    "RON": ("leu", "lei"),
    "TRY": ("₺", "TL", "lira"),
    "ZAR": ("R", "rand"),
    "AED": ("Dh", "Dhs", "dirham", "dirhams"),
    "SAR": ("SR", "riyal", "riyals"),
    "MYR": ("RM", "ringgit"),
    "IDR": ("Rp", "rupiah"),
    "THB": ("baht",),
    "KRW": ("won", "원"),
    "ILS": ("shekel", "shekels"),
}
# A person who types one of these means the account's currency. In a file, it may mean another currency.
_SHARED = frozenset(
    one.casefold() for one in (*_CROWN, *_RUPEE, *_DINAR, *_SHORT_NAMES["USD"], "\N{YEN SIGN}", "Fr", "franc", "francs")
)
# Two decimals are read in every currency, so that `500.00` is 500 yen, as the contract writes it.
_USUAL_DECIMALS = 2

_MISSING = text("Type an amount, such as %(example)s.")
_NO_AMOUNT = text("“%(typed)s” is not an amount. Type an amount such as %(example)s, with the digits 0 to 9.")
_NOT_POSITIVE = text("“%(typed)s” is not above zero. Type an amount such as %(example)s.")
_TOO_LARGE = text("“%(typed)s” is more than %(most)s, the largest amount.")
_TOO_FINE = text("“%(typed)s” has more decimals than %(currency)s allows. Type an amount such as %(example)s.")
_UNCLEAR = text("“%(typed)s” can mean %(large)s or %(small)s. If you mean %(large)s, type %(plain)s.")
_OTHER_SIGN = text(
    "“%(found)s” does not belong in an amount in %(currency)s. Type the amount in digits, such as %(example)s."
)

_GROUPS = r"[1-9][0-9]{0,2}(?:(?P<mark>[.,' ])[0-9]{3})(?:(?P=mark)[0-9]{3})*"
_WHOLE = re.compile(rf"[0-9]+|{_GROUPS}")
_WITH_DECIMALS = re.compile(rf"(?P<whole>[0-9]+|{_GROUPS})(?P<decimal>[.,])(?P<decimals>[0-9]+)")
# Characters other than digits may surround the number. `25,-` is a whole amount in German and in Swiss French.
# A sign may end with a full stop: `Fr. 25`, `25 kr.`.
_SIGN = r"[^0-9.,']*(?:(?<=[^\W\d_])\.\s*)?"
_TYPED = re.compile(
    rf"(?P<before>{_SIGN})(?P<number>[0-9](?:[0-9.,' ]*[0-9])?)(?:[.,][-\u2013\u2014]{{1,2}})?(?P<after>{_SIGN})"
)
_SPACES = re.compile(r"\s")
_FULL_WIDTH = str.maketrans(
    "\uff0c\uff0e\uff0d\uffe5", ",.-\N{YEN SIGN}"
)  # as Japanese and Chinese keyboards write them
_APOSTROPHES = re.compile("[\N{RIGHT SINGLE QUOTATION MARK}\N{MODIFIER LETTER APOSTROPHE}]")
_MINUS = re.compile("[-\N{MINUS SIGN}\N{EN DASH}()]")


class UnreadableAmount(AmountError):
    """An amount was not understood. `english`, with its `values`, says how it was read and what to type."""

    def __init__(self, english: str, **values: str) -> None:
        super().__init__(english % values)
        self.english = english
        self.values = values


class Readings(msgspec.Struct, frozen=True):
    """The two possible values of digits and marks: every mark separates thousands, or the last one is a decimal mark."""

    whole: Decimal | None
    with_decimals: Decimal | None
    mark: str  # the last mark; empty if there is none


_NOTHING = Readings(None, None, "")


def readings(number: str) -> Readings:
    """Returns the possible values of digits and marks. Both are None if the text is not a number."""
    grouped, pointed = _WHOLE.fullmatch(number), _WITH_DECIMALS.fullmatch(number)
    if pointed and pointed["mark"] == pointed["decimal"]:
        pointed = None
    return Readings(
        Decimal(_digits(number)) if grouped else None,
        Decimal(f"{_digits(pointed['whole'])}.{pointed['decimals']}") if pointed else None,
        (pointed["decimal"] if pointed else grouped["mark"] if grouped else "") or "",
    )


def normal_marks(typed: str) -> str:
    """Returns a text without the blanks and invisible marks around it, and with one kind of space and of apostrophe."""
    return _APOSTROPHES.sub("'", _SPACES.sub(" ", trimmed(typed)))


def number_in(typed: str, currency: str) -> str:
    """Returns the digits and marks of an amount in `currency`, without its sign or code. Raises ValueError."""
    found = _TYPED.fullmatch(normal_marks(typed))
    if found is None or len(typed) > LONGEST_AMOUNT:
        raise ValueError(f"{typed[:LONGEST_AMOUNT]!r} is not an amount")
    for sign in (found["before"].strip(), found["after"].strip()):
        if sign and not is_sign(sign, currency):
            raise ValueError(sign)
    return found["number"]


def is_sign(text: str, currency: str) -> bool:
    """Returns whether a text is the code of a currency, or its sign or name in one of our languages, such as `kr` or `Fr.`."""
    return text.casefold().rstrip(".") in _currency_signs(currency)


def is_shared_sign(text: str) -> bool:
    """Returns whether a text is a sign or name of several currencies, such as `$` of US, Canadian and Australian dollars."""
    return text.casefold().rstrip(".") in _SHARED


def read_amount(typed: str, currency: str, language: Language = DEFAULT) -> int:
    """Returns the minor units of `currency` that `typed` means in a language. They are always above zero. Raises UnreadableAmount."""
    example, typed = example_amount(currency, language), trimmed(typed)
    if not typed:
        raise UnreadableAmount(_MISSING, example=example)
    shown = typed if len(typed) <= LONGEST_AMOUNT else f"{typed[:LONGEST_AMOUNT]}…"
    parts = _TYPED.fullmatch(normal_marks(plain_digits(typed).translate(_FULL_WIDTH)))
    read = readings(parts["number"]) if parts and len(typed) <= LONGEST_AMOUNT else _NOTHING
    if parts is None or read == _NOTHING:
        raise UnreadableAmount(_NO_AMOUNT, typed=shown, example=example)
    for sign in (parts["before"].strip(), parts["after"].strip()):
        if _MINUS.search(sign):
            raise UnreadableAmount(_NOT_POSITIVE, typed=shown, example=example)
        if sign and currency == ANY_CURRENCY:
            raise UnreadableAmount(_NO_AMOUNT, typed=shown, example=example)
        if sign and not is_sign(sign, currency):
            raise UnreadableAmount(_OTHER_SIGN, found=sign, currency=currency, example=example)
    amount = _decided(read, shown, currency, language)
    if amount > MAX_AMOUNT:
        most = language.amount(to_minor(MAX_AMOUNT, currency), currency)
        raise UnreadableAmount(_TOO_LARGE, typed=shown, most=most)
    if _decimals(amount) > max(exponent(currency), _USUAL_DECIMALS) or not _is_exact(amount, currency):
        raise UnreadableAmount(_TOO_FINE, typed=shown, currency=currency, example=example)
    if not amount:
        raise UnreadableAmount(_NOT_POSITIVE, typed=shown, example=example)
    return to_minor(amount, currency)


def example_amount(currency: str, language: Language) -> str:
    """Returns an example of an amount to type, with a thousands mark, and with decimals if the currency has them."""
    places = exponent(currency)
    form = f"#,##0.{'0' * places}" if places else "#,##0"
    return str(format_decimal(Decimal("1000.5") if places else 1000, form, language.locale))


def _digits(number: str) -> str:
    return re.sub(r"[^0-9]", "", number)


@cache
def _currency_signs(currency: str) -> frozenset[str]:
    """Returns the code of a currency, and its signs and names in each of our languages."""
    locales = {one for language in LANGUAGES.values() for one in (language.locale, language.tag)}
    signs = {get_currency_symbol(currency, one) for one in locales}
    names = {get_currency_name(currency, count, one) for one in locales for count in (1, 2)}
    return frozenset(one.casefold() for one in {currency, *signs, *names, *_SHORT_NAMES.get(currency, ())})


def _decided(read: Readings, shown: str, currency: str, language: Language) -> Decimal:
    """Returns the amount that is meant. Raises UnreadableAmount if two are possible."""
    if read.with_decimals is None or read.whole is None:
        found = read.whole if read.with_decimals is None else read.with_decimals
        assert found is not None, "one of the two was read"
        return found
    if read.mark == normal_marks(get_group_symbol(language.locale)):
        return read.whole
    if read.mark == get_decimal_symbol(language.locale) and exponent(currency) > _USUAL_DECIMALS:
        return read.with_decimals
    large = to_minor(read.whole, currency)
    small = f"{format_decimal(read.with_decimals, '0.000', language.locale)} {currency}"
    if _is_exact(read.with_decimals, currency):
        small = language.amount(to_minor(read.with_decimals, currency), currency)
    raise UnreadableAmount(
        _UNCLEAR,
        typed=shown,
        large=language.amount(large, currency),
        small=small,
        plain=language.typed(large, currency),
    )


def _decimals(amount: Decimal) -> int:
    """Returns how many decimals were typed."""
    return -int(amount.as_tuple().exponent)


def _is_exact(amount: Decimal, currency: str) -> bool:
    """Returns whether an amount has at most the decimals of its currency."""
    return amount == amount.quantize(Decimal(1).scaleb(-exponent(currency)))
