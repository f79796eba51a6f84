"""The members of every object of the contract, with their types."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

SECRET = {"code", "pin", "redemptionUrl", "secret", "quote"}
_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")


@dataclass(frozen=True)
class Member:
    """A member: its name, the name of its type, and whether it may be null."""

    name: str
    type: str
    is_nullable: bool = False

    def fault(self, item: dict[str, Any]) -> str | None:
        """Returns what is wrong with this member of an object; None if it is right."""
        if self.name not in item:
            return f"`{self.name}` is missing"
        value = item[self.name]
        if value is None:
            return None if self.is_nullable else f"`{self.name}` is null"
        if TYPES[self.type](value):
            return None
        shown = f"a {type(value).__name__}" if self.name in SECRET else repr(value)
        return f"`{self.name}` is {shown}, not {self.described}"

    @property
    def described(self) -> str:
        """Returns the type in words."""
        return f"{self.type} or null" if self.is_nullable else self.type


def _is_integer(bits: int) -> Callable[[Any], bool]:
    def check(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)

    return check


def _is_number(value: Any) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def _is_uuid(value: Any) -> bool:
    try:
        return isinstance(value, str) and str(UUID(value)) == value.lower()
    except ValueError:
        return False


def is_date_time(value: Any) -> bool:
    """Returns whether a value is a time in UTC in the format of RFC 3339."""
    if not isinstance(value, str) or not _DATE_TIME.fullmatch(value):
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def _is_url(value: Any) -> bool:
    return isinstance(value, str) and urlsplit(value).scheme in {"http", "https"} and bool(urlsplit(value).hostname)


TYPES: dict[str, Callable[[Any], bool]] = {
    "a string": lambda value: isinstance(value, str),
    "a text with a character": lambda value: isinstance(value, str) and bool(value.strip()),
    "a boolean": lambda value: isinstance(value, bool),
    "an int32": _is_integer(32),
    "an int64": _is_integer(64),
    "a number": _is_number,
    "an instant in UTC": is_date_time,
    "a UUID": _is_uuid,
    "a web address": _is_url,
    "`production` or `staging`": lambda value: value in ("production", "staging"),
    "`curated` or `custom`": lambda value: value in ("curated", "custom"),
    "`gift` or `gifts`": lambda value: value in ("gift", "gifts"),
    "`send` or `manual`": lambda value: value in ("send", "manual"),
    "a currency code": lambda value: isinstance(value, str) and bool(re.fullmatch(r"[A-Z]{3}", value)),
    "a country code": lambda value: isinstance(value, str) and bool(re.fullmatch(r"[A-Z]{2}", value)),
    "an array of numbers": lambda value: isinstance(value, list) and all(_is_number(one) for one in value),
    "an object of strings": lambda value: (
        isinstance(value, dict) and all(isinstance(one, str) for one in value.values())
    ),
    "an array": lambda value: isinstance(value, list),
    "a member of an error": lambda value: isinstance(value, str),
}


def _members(text: str) -> tuple[Member, ...]:
    """Reads lines of `name: type`, with a question mark if the member may be null."""
    rows = (line.split(": ", 1) for line in text.strip().splitlines())
    return tuple(Member(name.strip().rstrip("?"), kind.strip(), name.strip().endswith("?")) for name, kind in rows)


IDENTITY = _members("""
customerId: an int64
customerName: a text with a character
serviceAccountId: an int64
serviceAccountName: a text with a character
environment: `production` or `staging`
""")
USER = _members("""
id: an int64
name: a string
email: a text with a character
role: a text with a character
isActive: a boolean
creationDate: an instant in UTC
lastLoginDate?: an instant in UTC
label: a text with a character
""")
PRODUCT = _members("""
id: an int32
name: a text with a character
isDigital: a boolean
currency: a currency code
currencyPrefix: a string
totalPrice?: a number
denominations: an array of numbers
denominationChoices: an object of strings
minAmount?: a number
maxAmount?: a number
requiresAmount: a boolean
label: a text with a character
""")
COLLECTION = _members("""
id: an int32
name: a text with a character
kind: `curated` or `custom`
country: a country code
currency: a currency code
currencyPrefix: a string
value?: a number
requiresValue: a boolean
allowCustomValue: a boolean
valuePoints: an array of numbers
valueChoices?: an object of strings
minValue?: a number
maxValue?: a number
label: a text with a character
""")
TEMPLATE = _members("""
id: an int32
name?: a string
giftSelectionType?: `gift` or `gifts`
giftProductId?: an int32
giftsCollectionId?: an int32
giftName?: a string
value: a number
currency?: a currency code
country?: a country code
wrappingKey?: a string
fromName?: a string
message?: a string
expiryAfterDays?: an int32
creationDate: an instant in UTC
""")
ACCOUNT = _members("""
id: an int32
name: a text with a character
isMaster: a boolean
currencyId: an int32
currency: a currency code
balance: a number
label: a text with a character
""")
SEND_RESPONSE = _members("""
reference?: a text with a character
giftSelectionType?: `gift` or `gifts`
value: a number
currency?: a currency code
codeCount: an int32
recipientCount: an int32
totalCost: a number
deliveryMode?: `send` or `manual`
scheduledFor?: an instant in UTC
externalReference?: a string
codes: an array
""")
ISSUED_CODE = _members("""
code: a text with a character
pin: a text with a character
redemptionUrl: a web address
""")
ORDER_RECORD = _members("""
id: an int32
event?: a string
reference?: a text with a character
customerId: an int64
value: a number
currency?: a currency code
country?: a country code
sourceType?: a string
externalReference?: a string
giftSelectionType?: `gift` or `gifts`
giftProductId?: an int32
giftsCollectionId?: an int32
wrappingKey?: a string
fromName?: a string
deliveryMode?: `send` or `manual`
lineCount: an int32
createdBy?: an int64
creationDate: an instant in UTC
""")
SUBSCRIPTION = _members("""
id: a UUID
event?: a string
targetUrl?: a string
secret?: a text with a character
""")
QUOTE = _members("""
value: a number
currency: a currency code
codeCount: an int32
recipientCount: an int32
totalCost: a number
deliveryMode: `send` or `manual`
scheduledFor?: an instant in UTC
balanceAfter?: a number
quote: a text with a character
expiresAt: an instant in UTC
""")
PROBLEM = _members("""
type?: a string
title?: a string
status?: an int32
detail?: a string
instance?: a string
""")
