"""Checks arguments before anything is sent.

Each function returns the argument as it is sent, or raises InvalidArgument with its name. `Faults` collects the errors of several arguments.
Only the service checks what depends on its data, such as the amounts of a product.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import TypeVar
from uuid import UUID

from largesse_client.errors import InvalidArgument
from largesse_client.models import Recipient

T = TypeVar("T")

MAX_CODES = 5_000
MAX_QUANTITY = 1_000
MAX_PAGE = 200
_INT32 = 2_147_483_647
_REFERENCE = re.compile(r"[0-9A-Za-z]{1,64}", re.ASCII)
_COUNTRY = re.compile(r"[A-Za-z]{2}")
_CURRENCY = re.compile(r"[A-Za-z]{3}")

refused = InvalidArgument.of


class Faults:
    """Collects the errors of several arguments, so that all are reported at once."""

    def __init__(self) -> None:
        self._found: list[InvalidArgument] = []

    def check(self, check: Callable[[str, object], T], argument: str, value: object) -> T | None:
        """Returns the argument as `check` returns it. If `check` refuses it, adds the error and returns None."""
        try:
            return check(argument, value)
        except InvalidArgument as error:
            self.add(error)
            return None

    def add(self, error: InvalidArgument) -> None:
        """Adds an error."""
        self._found += error.errors or (error,)

    def end(self) -> None:
        """Raises InvalidArgument with all errors, if there are any."""
        if self._found:
            raise InvalidArgument.of_all(self._found)


def number(argument: str, value: object, least: int = 1, most: int = _INT32) -> int:
    """Accepts a whole number from `least` to `most`."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise refused(argument, f"must be an int, not {type(value).__name__}.")
    if not least <= value <= most:
        raise refused(argument, f"must be from {least} to {most}, not {value}.")
    return value


def flag(argument: str, value: object) -> bool:
    """Accepts True or False."""
    if not isinstance(value, bool):
        raise refused(argument, f"must be a bool, not {type(value).__name__}.")
    return value


def reminder_days(argument: str, value: object) -> list[int]:
    """Accepts at most three whole numbers of days from 1 to 365, ascending. An empty list means no reminders."""
    if not isinstance(value, list | tuple):
        raise refused(argument, f"must be a list of ints, not {type(value).__name__}.")
    days = [number(argument, one, most=365) for one in value]
    if len(days) > 3 or sorted(set(days)) != days:
        raise refused(argument, "must be at most 3 numbers, ascending.")
    return days


def money(argument: str, value: object, *, least: Decimal | None = None) -> Decimal:
    """Accepts an exact amount in major units, above zero or from `least`."""
    if isinstance(value, float):
        raise refused(argument, f'must be exact, not a float: pass Decimal("{value}").')
    if not isinstance(value, int | Decimal) or isinstance(value, bool):
        raise refused(argument, f"must be a Decimal or an int, not {type(value).__name__}.")
    amount = Decimal(value)
    if not amount.is_finite() or (amount <= 0 if least is None else amount < least):
        raise refused(argument, f"must be {'above 0' if least is None else f'at least {least}'}, not {value}.")
    return amount


def instant(argument: str, value: object) -> datetime:
    """Accepts a datetime with a time zone."""
    if not isinstance(value, datetime):
        raise refused(argument, f"must be a datetime, not {type(value).__name__}.")
    if value.utcoffset() is None:
        raise refused(
            argument,
            "must have a time zone: a naive datetime is not a point in time. For UTC, pass tzinfo=datetime.UTC.",
        )
    return value


def text(argument: str, value: object, longest: int, *, is_required: bool = False) -> str:
    """Accepts a text that is not blank."""
    if not isinstance(value, str):
        raise refused(argument, f"must be a str, not {type(value).__name__}.")
    if not value.strip():
        raise refused(argument, "is required." if is_required else "is blank: leave it out.")
    if len(value.strip()) > longest:
        raise refused(argument, f"must have at most {longest} characters, not {len(value.strip())}.")
    return _encodable(argument, value)


def _encodable(argument: str, value: object) -> str:
    """Accepts a text that JSON can hold."""
    try:
        str(value).encode()
    except UnicodeEncodeError:
        raise refused(argument, "has a surrogate, which is only half of a character.") from None
    return str(value)


def texts(argument: str, value: object, longest: int) -> list[str]:
    """Accepts texts that are not blank, at least one."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise refused(argument, f"must be a list of str, not {type(value).__name__}.")
    if not value:
        raise refused(argument, "is empty.")
    return [text(f"{argument}[{at}]", one, longest) for at, one in enumerate(value)]


def country(argument: str, value: object) -> str:
    """Accepts the two letters of a country."""
    return _letters(argument, value, _COUNTRY, "the two letters of a country, such as GB")


def currency(argument: str, value: object) -> str:
    """Accepts the three letters of a currency."""
    return _letters(argument, value, _CURRENCY, "the three letters of a currency, such as GBP")


def order_reference(argument: str, value: object) -> str:
    """Accepts the reference that the service gave an order."""
    return _letters(argument, value, _REFERENCE, "an order's reference, letters and digits")


def uuid(argument: str, value: object) -> UUID:
    """Accepts a UUID or its text."""
    try:
        return value if isinstance(value, UUID) else UUID(str(value))
    except ValueError:
        raise refused(argument, "must be a UUID.") from None


def recipients(argument: str, value: object) -> list[Recipient]:
    """Accepts recipients; an address alone gets one code. At least one recipient, and at most MAX_CODES codes in all."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise refused(argument, f"must be a list of Recipient or addresses, not {type(value).__name__}.")
    faults = Faults()
    checked = [faults.check(_recipient, f"{argument}[{at}]", one) for at, one in enumerate(value)]
    faults.end()
    found = [one for one in checked if one is not None]
    if not found:
        raise refused(argument, "is empty.")
    if (count := sum(one.quantity for one in found)) > MAX_CODES:
        raise refused(argument, f"must ask for at most {MAX_CODES} codes in all, not {count}.")
    return found


def _recipient(argument: str, value: object) -> Recipient:
    one = Recipient(email=value) if isinstance(value, str) else value
    if not isinstance(one, Recipient):
        raise refused(argument, f"must be a Recipient or an address, not {type(value).__name__}.")
    faults = Faults()
    # Only the service knows what an address is: it names all wrong ones at once.
    faults.check(partial(text, longest=254, is_required=True), f"{argument}.email", one.email)
    name: object = one.name
    if isinstance(name, str):
        faults.check(_encodable, f"{argument}.name", name)
    elif name is not None:
        faults.add(refused(f"{argument}.name", f"must be a str, not {type(name).__name__}."))
    faults.check(partial(number, most=MAX_QUANTITY), f"{argument}.quantity", one.quantity)
    faults.end()
    return one


def _letters(argument: str, value: object, pattern: re.Pattern[str], what: str) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise refused(argument, f"must be {what}.")
    return value
