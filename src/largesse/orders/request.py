"""What a caller may ask for, and the rules on it that need no database.

`read_send` gives a `OrderSpec`: the delivery and payment of an order, whatever its gift.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import islice

import msgspec

from largesse.base.email import email_key
from largesse.base.errors import InvalidRequest
from largesse.customers.principal import Principal
from largesse.customers.restrictions import CODES, require_scope
from largesse.orders.options import Options, check_options, read_key
from largesse.orders.recipients import OrderRecipient, RecipientRequest, count_codes

MAX_REFERENCE = 128
MAX_SOURCE = 32
MAX_QUOTE = 256
DEFAULT_SOURCE = "api"
DEFAULT_COUNTRY = "GB"

_WORD = re.compile(r"[a-z0-9]+")


class ProductChoice(msgspec.Struct, frozen=True):
    """One product, as sold in a country; `value` is in major units."""

    product_id: int
    value: float | None
    country: str


class CollectionChoice(msgspec.Struct, frozen=True):
    """A collection, of which each recipient chooses; `value` is in major units."""

    collection_id: int
    value: float | None


class TemplateChoice(msgspec.Struct, frozen=True):
    """What a template presets."""

    template_id: int


Choice = ProductChoice | CollectionChoice | TemplateChoice


class SendRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller asks for, each part within its own limits but otherwise as it was given."""

    choice: Choice
    source: str | None
    recipients: Sequence[RecipientRequest]
    code_quantity: int | None
    options: Options
    send_at: datetime | None  # none of a code batch
    account_id: int | None
    expiry_after_days: int | None
    external_reference: str | None
    quote: str | None
    reference: str | None = None  # that the order is to have; else one is drawn


class OrderSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The delivery and payment of an order, checked; `recipients` is empty for a code batch, or until they are read."""

    source: str
    recipients: tuple[OrderRecipient, ...]
    code_count: int
    options: Options  # what was not said, only a template may fill
    scheduled_for: datetime | None
    account_id: int | None
    expiry_after_days: int | None
    external_reference: str | None

    @property
    def delivery_mode(self) -> str:
        """`send` where recipients are written to, `manual` where the caller hands the codes out."""
        return "send" if self.recipients else "manual"

    @property
    def recipient_count(self) -> int:
        """Distinct addresses, letter case ignored."""
        return len({email_key(recipient.email) for recipient in self.recipients})

    def or_else(self, options: Options, expiry_after_days: int | None) -> OrderSpec:
        """The same with what was not said filled in."""
        return msgspec.structs.replace(
            self, options=self.options.or_else(options), expiry_after_days=self.expiry_after_days or expiry_after_days
        )


def read_send(asked: SendRequest, *, plan: str, now: datetime) -> OrderSpec:
    """Checks what is asked for by a customer on that plan. Raises InvalidRequest naming what is wrong and the limit.

    The recipients are counted, but not yet read: that may take long, and what else is wrong is told first.
    """
    return OrderSpec(
        source=read_source(asked.source),
        recipients=(),
        code_count=_count_codes(asked),
        options=check_options(asked.options),
        scheduled_for=_read_send_at(asked.send_at, now),
        account_id=asked.account_id,
        expiry_after_days=asked.expiry_after_days if plan == "enterprise" else None,
        external_reference=read_reference(asked.external_reference),
    )


def require_codes(principal: Principal, asked: SendRequest) -> None:
    """Raises ScopeRequired where codes are asked for with a key that may not be given any."""
    if asked.code_quantity is not None:
        require_scope(principal, CODES)


def read_reference(text: str | None) -> str | None:
    """The caller's reference without surrounding blanks; None when it opted out. Raises InvalidRequest."""
    reference = text.strip() if text else ""
    if len(reference) > MAX_REFERENCE:
        raise InvalidRequest(f"`external_reference` must be at most {MAX_REFERENCE} characters.")
    return read_key("external_reference", reference)


def read_source(text: str | None) -> str:
    """The reporting token: lower case, runs of other characters than a-z and 0-9 one hyphen, at most 32."""
    if not text:
        return DEFAULT_SOURCE
    words = (found[0] for found in _WORD.finditer(text.lower()))
    return "-".join(islice(words, MAX_SOURCE))[:MAX_SOURCE].strip("-") or DEFAULT_SOURCE


def _count_codes(asked: SendRequest) -> int:
    """How many codes are wanted; an empty list of recipients is as if left out."""
    if bool(asked.recipients) == (asked.code_quantity is not None):
        raise InvalidRequest("Exactly one of `recipients` and `code_quantity` must be given.")
    return count_codes(asked.recipients) if asked.code_quantity is None else asked.code_quantity


def _read_send_at(send_at: datetime | None, now: datetime) -> datetime | None:
    if send_at is None:
        return None
    try:
        instant = send_at.replace(tzinfo=UTC) if send_at.tzinfo is None else send_at.astimezone(UTC)
    except OverflowError:
        raise InvalidRequest("`send_at` is outside the calendar.") from None
    if instant <= now:
        raise InvalidRequest("`send_at` must be in the future.")
    return instant
