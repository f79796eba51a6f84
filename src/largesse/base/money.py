"""Money: whole minor units inside, JSON numbers and labels outside.

An amount is an `int` of minor units of a currency (pence of GBP, yen of JPY), except in requests, responses and pages.
Exponents and symbols come from the CLDR through Babel.
"""

import math
import re
from decimal import Context, Decimal, Inexact
from functools import cache, lru_cache

from babel import Locale
from babel.numbers import format_currency, get_currency_precision, get_currency_symbol

# The largest amount, in major units. Multiplied by the 5,000 codes of the largest order and the 1,000 minor units
# of the finest currency, it is still exact as a JSON double (below 2**53).
MAX_AMOUNT = 1_000_000_000
MAX_BALANCE = 5_000 * MAX_AMOUNT
# Orders are refused beyond this sum in an account, in minor units. Refunds and corrections after them still fit into 64 bits.
MAX_HELD_MINOR = 9 * 10**18

# Arithmetic that fails instead of rounding.
_EXACT = Context(traps=[Inexact])
_LETTER_THEN_DIGIT = re.compile(r"(?<=[^\W\d_])(?=\d)")


class AmountError(ValueError):
    """An invalid amount for its currency. The text completes "`value` …"."""


@cache
def exponent(currency: str) -> int:
    """Returns how many decimals `currency` (ISO 4217) has: 2 for GBP, 0 for JPY, 3 for KWD."""
    return get_currency_precision(currency)


@cache
def _scale(currency: str) -> int:
    return int(10 ** exponent(currency))


def to_minor(amount: float | Decimal, currency: str) -> int:
    """Returns the minor units of `amount` major units of `currency`.

    Raises AmountError if it is not finite, is finer than the minor unit, or exceeds MAX_AMOUNT.
    """
    if isinstance(amount, Decimal) and not amount.is_finite():  # the cache cannot hash a signalling NaN
        raise AmountError("must be a finite number")
    return _read_minor(amount, currency)


@lru_cache(maxsize=10_000)  # Decimals take microseconds, and gifts have few values
def _read_minor(amount: float | Decimal, currency: str) -> int:
    scale = _scale(currency)
    if isinstance(amount, int):
        if abs(amount) > MAX_AMOUNT:
            raise AmountError(f"must be at most {MAX_AMOUNT}")
        return amount * scale
    if isinstance(amount, float) and not math.isfinite(amount):
        raise AmountError("must be a finite number")
    exact = amount if isinstance(amount, Decimal) else Decimal(repr(amount))
    if exact.copy_abs() > MAX_AMOUNT:
        raise AmountError(f"must be at most {MAX_AMOUNT}")
    try:
        minor = _EXACT.multiply(exact, Decimal(scale))
        if minor == int(minor):
            return int(minor)
    except Inexact:
        pass
    raise AmountError(f"must have {_decimals(currency)} in {currency}")


def _decimals(currency: str) -> str:
    return f"at most {exponent(currency)} decimals" if exponent(currency) else "no decimals"


def to_number(minor: int, currency: str) -> float:
    """Returns the JSON number (double, major units) of `minor` units of `currency`."""
    return minor / _scale(currency)


def to_decimal(minor: int, currency: str) -> Decimal:
    """Returns the exact amount in major units, with all the decimals that `currency` has: `10.00`, `500`."""
    return Decimal(minor).scaleb(-exponent(currency))


def canonical(minor: int, currency: str) -> str:
    """Returns the canonical text of an amount: two decimals, or more if the amount needs them: `10.00`, `1.125`."""
    places = exponent(currency)
    while places > 2 and minor % 10 == 0:
        minor //= 10
        places -= 1
    return f"{Decimal(minor).scaleb(-places):.{max(2, places)}f}"


@cache
def prefix(currency: str) -> str:
    """Returns the display prefix of `currency`: `£`, `€`, `¥`, `CHF`."""
    return str(get_currency_symbol(currency, locale="en"))


@lru_cache(maxsize=10_000)
def written(minor: int, currency: str, locale: Locale | str) -> str:
    """Returns an amount in the format of a locale: `£10.00`, `10,00 €` with a no-break space."""
    return spaced(format_currency(Decimal(minor) / _scale(currency), currency, locale=locale))


def spaced(text: str) -> str:
    """Returns an amount that Babel wrote, with the space that the CLDR wants between a symbol of letters and the digits."""
    return _LETTER_THEN_DIGIT.sub("\N{NO-BREAK SPACE}", text, count=1)


@lru_cache(maxsize=10_000)
def label(minor: int, currency: str) -> str:
    """Returns an amount with its prefix: `£10.00`, `¥500`, `CHF 10.00`."""
    return written(minor, currency, "en").replace("\N{NO-BREAK SPACE}", " ")
