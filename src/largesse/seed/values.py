"""The rules for single values, by kind. A rule takes a node and returns its value, or raises InvalidValue.

The rules use the text as written: YAML 1.1 would turn the country NO into a boolean, and an amount into a float.
"""

import re
from collections.abc import Callable, Collection
from decimal import Decimal
from typing import TypeAlias, TypeVar

from largesse.base.email import MAX_EMAIL, EmailError, normalise_email
from largesse.base.i18n.languages import country_codes
from largesse.base.money import MAX_AMOUNT, MAX_BALANCE, AmountError, to_minor
from largesse.base.text import trimmed, unfit
from largesse.seed.nodes import Node, Scalar

Value = TypeVar("Value")
Rule: TypeAlias = Callable[[Node], Value]

# Numbers of YAML 1.1, without octal numbers (leading zero) and underscores.
_NUMBER = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)")
_NUMBER_LENGTH = 24  # Decimal arithmetic rounds beyond 28 digits
_LIKE_A_NUMBER = re.compile(r"[-+]?\.?[0-9][0-9_]*(?:\.[0-9_]*)?")
_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_TRUE = frozenset(("true", "yes", "on"))
_FALSE = frozenset(("false", "no", "off"))
_PERCENT_MAX = 1000
_PERCENT_DECIMALS = 4


class InvalidValue(Exception):
    """A value that breaks its rule. The message follows the value's place."""


def is_null(node: Node) -> bool:
    """Returns whether a value is null."""
    return isinstance(node, Scalar) and node.plain and node.text in _NULLS


def text(most: int, *, line_ends: bool = False) -> Rule[str]:
    """Returns the rule for text of at most `most` characters, without the spaces around it."""

    def rule(node: Node) -> str:
        if not isinstance(node, Scalar):
            raise InvalidValue("must be text")
        if node.plain and (node.text.lower() in {"true", "false"} or _LIKE_A_NUMBER.fullmatch(node.text)):
            raise InvalidValue("must be text: put it in quotes")
        found = node.text.strip()
        if not trimmed(found):
            raise InvalidValue("must not be empty")
        if len(found) > most:
            raise InvalidValue(f"must have at most {most} characters, not {len(found)}")
        if bad := unfit(found, line_breaks=line_ends):
            raise InvalidValue(f"must not contain {bad}")
        return found

    return rule


def email(node: Node) -> str:
    """Returns a normalised e-mail address."""
    try:
        return normalise_email(text(MAX_EMAIL)(node))
    except EmailError as error:
        raise InvalidValue(f"must be an e-mail address: {error}") from None


def choice(options: Collection[str]) -> Rule[str]:
    """Returns the rule for one of `options`, as written."""

    def rule(node: Node) -> str:
        if not isinstance(node, Scalar) or node.text not in options:
            raise InvalidValue(f"must be one of {', '.join(options)}")
        return node.text

    return rule


def currency(node: Node) -> str:
    """Returns an ISO 4217 code in capitals. Loading checks that the database has the currency."""
    return _code(node, 3, "a currency of three letters, as GBP")


def country(node: Node) -> str:
    """Returns an ISO 3166-1 alpha-2 code in capitals."""
    what = "the code of a country in ISO 3166-1, as GB"
    code = _code(node, 2, what)
    if code not in country_codes():
        raise InvalidValue(f"must be {what}")
    return code


def flag(node: Node) -> bool:
    """Returns a boolean."""
    word = node.text.lower() if isinstance(node, Scalar) and node.plain else ""
    if word not in _TRUE and word not in _FALSE:
        is_quoted = isinstance(node, Scalar) and not node.plain and node.text.lower() in _TRUE | _FALSE
        raise InvalidValue(f"must be true or false{', without quotes' if is_quoted else ''}")
    return word in _TRUE


def whole(least: int, most: int) -> Rule[int]:
    """Returns the rule for a whole number from `least` to `most`."""

    def rule(node: Node) -> int:
        number = _number(node)
        if number != int(number) or not least <= number <= most:
            raise InvalidValue(f"must be a whole number from {least} to {most}")
        return int(number)

    return rule


def percent(node: Node) -> Decimal:
    """Returns a percentage from 0 to 1000 with at most 4 decimals."""
    number = _number(node)
    if not 0 <= number <= _PERCENT_MAX:
        raise InvalidValue(f"must be from 0 to {_PERCENT_MAX}")
    if number != round(number, _PERCENT_DECIMALS):
        raise InvalidValue(f"must have at most {_PERCENT_DECIMALS} decimals")
    return number


def balance(currency: str) -> Rule[int | None]:
    """Returns the rule for a balance. Unlike an amount, it may be above the largest amount, as several top-ups may add up to more."""

    def rule(node: Node) -> int | None:
        number = _number(node)
        if number < 0:
            raise InvalidValue("must not be negative")
        if number > MAX_BALANCE:
            raise InvalidValue(f"must be at most {MAX_BALANCE}")
        if not currency:
            return None
        largest, rest = divmod(number, MAX_AMOUNT)
        try:
            return int(largest) * to_minor(MAX_AMOUNT, currency) + to_minor(rest, currency)
        except AmountError as error:
            raise InvalidValue(str(error)) from None

    return rule


def amount(currency: str, *, least: int = 1) -> Rule[int | None]:
    """Returns the rule for an amount of at least `least` (0 or 1) minor units; it returns None if the currency is empty after a mistake."""

    def rule(node: Node) -> int | None:
        number = _number(node)
        if not currency:
            return None
        try:
            minor = to_minor(number, currency)
        except AmountError as error:
            raise InvalidValue(str(error)) from None
        if minor < least:
            raise InvalidValue("must be greater than zero" if least else "must not be negative")
        return minor

    return rule


def _code(node: Node, length: int, what: str) -> str:
    letters = node.text if isinstance(node, Scalar) else ""
    if len(letters) == length and letters.isascii() and letters.isalpha():
        return letters.upper()
    raise InvalidValue(f"must be {what}")


def _number(node: Node) -> Decimal:
    if not isinstance(node, Scalar):
        raise InvalidValue("must be a number")
    is_number = _NUMBER.fullmatch(node.text) is not None
    if node.plain and is_number and len(node.text) <= _NUMBER_LENGTH:
        return Decimal(node.text)
    raise InvalidValue(f"must be a number{', without quotes' if is_number and not node.plain else ''}")
