"""What a caller may ask for: the three send bodies, and the rules that need no database.

Limits that msgspec can hold stand in the types, where the OpenAPI document finds them too. The rest is in
`read_send`, which gives a `Wanted`: the delivery and payment of an order, whatever its gift.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from largesse.base.decoding import decode_part
from largesse.base.email import address_key
from largesse.base.errors import InvalidRequest
from largesse.orders.options import Options, read_options
from largesse.orders.recipients import MAX_CODES, OrderRecipient, Recipient, count_codes
from largesse.orders.texts import read_key

MAX_REFERENCE = 128
MAX_SOURCE = 32
MAX_QUOTE = 256
DEFAULT_SOURCE = "api"
DEFAULT_COUNTRY = "GB"

_INT32 = 2_147_483_647
Id = Annotated[int, Meta(ge=1, le=_INT32)]
# max_length as well, since `$` also matches before a line break at the end.
Country = Annotated[
    str, Meta(pattern="^[A-Za-z]{2}$", max_length=2, description="ISO 3166-1 alpha-2", examples=["GB"])
]

SendAt = (
    Annotated[
        datetime,
        Meta(
            description="When to deliver, in the future; without an offset it is UTC. Ignored for a code batch, "
            "whatever it holds.",
            examples=["2030-12-24T09:00:00Z"],
            extra_json_schema={"format": "date-time"},
        ),
    ]
    | None
)
ExpiryAfterDays = (
    Annotated[
        int,
        Meta(
            ge=1,
            le=36_500,
            description="Days after claiming that gifts expire. Enterprise plans only: below, any number is ignored.",
        ),
    ]
    | None
)
_SEND_AT: msgspec.json.Decoder[datetime | None] = msgspec.json.Decoder(SendAt)
_EXPIRY_AFTER_DAYS: msgspec.json.Decoder[int | None] = msgspec.json.Decoder(ExpiryAfterDays)
_NUMBER = re.compile(rb"[-0-9]")  # what a JSON number begins with
_WORD = re.compile(r"[a-z0-9]+")


if TYPE_CHECKING:
    OptionMembers = msgspec.Struct
else:
    # The options as members of a body.
    OptionMembers = msgspec.defstruct(
        "OptionMembers",
        [(field.name, field.type, field.default) for field in msgspec.structs.fields(Options)],
        kw_only=True,
        rename="camel",
    )


class SendBody(OptionMembers, kw_only=True, rename="camel"):
    """What the three send bodies share: the options, and these."""

    source: (
        Annotated[
            str,
            Meta(
                description="Reporting token, `api` by default; normalised to lower-case letters, digits and "
                "hyphens, at most 32",
                examples=["hr-portal"],
            ),
        ]
        | None
    ) = None
    recipients: (
        Annotated[
            list[Recipient],
            Meta(
                max_length=MAX_CODES,
                description="Who gets the gift by email; at most 5,000 codes in all. Excludes `codeQuantity`.",
            ),
        ]
        | None
    ) = None
    code_quantity: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=MAX_CODES,
                description="Anonymous codes, returned and not emailed. Excludes `recipients`.",
            ),
        ]
        | None
    ) = None
    send_at: Annotated[msgspec.Raw, Meta(extra_json_schema=msgspec.json.schema(SendAt))] | UnsetType = UNSET
    account_id: (
        Annotated[
            int,
            Meta(
                ge=1, le=_INT32, description="Funding account in the order's currency; omitted when invoiced"
            ),
        ]
        | None
    ) = None
    expiry_after_days: (
        Annotated[msgspec.Raw, Meta(extra_json_schema=msgspec.json.schema(ExpiryAfterDays))] | UnsetType
    ) = UNSET
    external_reference: (
        Annotated[
            str,
            Meta(
                description="Idempotency key, at most 128 characters, surrounding blanks trimmed; blank opts out",
                examples=["payroll-2030-12-1138"],
                extra_json_schema={"maxLength": MAX_REFERENCE},
            ),
        ]
        | None
    ) = None
    quote: (
        Annotated[
            str,
            Meta(
                max_length=MAX_QUOTE,
                description="From POST /quote/…: the order is placed only as it was quoted, or else 409. A quote itself ignores it.",
            ),
        ]
        | None
    ) = None


class SendGift(SendBody, kw_only=True, rename="camel"):
    """Body of POST /send/gift."""

    product_id: Annotated[Id, Meta(description="From GET /products", examples=[1])]
    value: (
        Annotated[
            float,
            Meta(
                description="Per-recipient face value; required when the product has `requiresAmount`",
                examples=[10.0],
            ),
        ]
        | None
    ) = None
    country: (
        Annotated[Country, Meta(description="ISO 3166-1 alpha-2; `GB` by default", examples=["GB"])] | None
    ) = None


class SendCollection(SendBody, kw_only=True, rename="camel"):
    """Body of POST /send/collection."""

    collection_id: Annotated[Id, Meta(description="From GET /collections", examples=[1])]
    value: Annotated[float, Meta(description="Curated collections only; ignored for custom ones")] | None = (
        None
    )


class SendTemplate(SendBody, kw_only=True, rename="camel"):
    """Body of POST /send/template; the template supplies gift, value, country and, unless overridden, the rest."""

    template_id: Annotated[Id, Meta(description="From GET /templates", examples=[1])]


class ReferenceOnly(msgspec.Struct, rename="camel"):
    """Reads nothing but the caller's reference, for a body that may be wrong elsewhere."""

    external_reference: str | None = None


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
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
        return "send" if self.recipients else "manual"

    @property
    def recipient_count(self) -> int:
        """Distinct addresses, letter case ignored."""
        return len({address_key(recipient.email) for recipient in self.recipients})

    def or_else(self, options: Options, expiry_after_days: int | None) -> Wanted:
        """The same with what was not said filled in."""
        return msgspec.structs.replace(
            self,
            options=self.options.or_else(options),
            expiry_after_days=self.expiry_after_days or expiry_after_days,
        )


def read_send(body: SendBody, *, plan: str, now: datetime) -> Wanted:
    """Checks what the types could not. Raises InvalidRequest naming the member and the limit.

    The recipients are counted, but not yet read: that may take long, and what else is wrong is told first.
    """
    return Wanted(
        source=read_source(body.source),
        recipients=(),
        code_count=_count_codes(body),
        options=read_options(body),
        scheduled_for=_read_send_at(body.send_at, now) if body.recipients else None,
        account_id=body.account_id,
        expiry_after_days=_read_expiry(body.expiry_after_days, plan),
        external_reference=read_reference(body.external_reference),
    )


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


def _count_codes(body: SendBody) -> int:
    """How many codes are wanted; an empty list of recipients is as if left out."""
    if bool(body.recipients) == (body.code_quantity is not None):
        raise InvalidRequest("Exactly one of `recipients` and `code_quantity` must be given.")
    return count_codes(body.recipients or ()) if body.code_quantity is None else body.code_quantity


def _read_send_at(given: msgspec.Raw | UnsetType, now: datetime) -> datetime | None:
    send_at = None if given is UNSET else decode_part(given, _SEND_AT, "send_at")
    if send_at is None:
        return None
    try:
        instant = send_at.replace(tzinfo=UTC) if send_at.tzinfo is None else send_at.astimezone(UTC)
    except OverflowError:
        raise InvalidRequest("`send_at` is outside the calendar.") from None
    if instant <= now:
        raise InvalidRequest("`send_at` must be in the future.")
    return instant


def _read_expiry(given: msgspec.Raw | UnsetType, plan: str) -> int | None:
    """The days; None below Enterprise, whatever number was given."""
    if given is UNSET or (plan != "enterprise" and _NUMBER.match(given)):
        return None
    return decode_part(given, _EXPIRY_AFTER_DAYS, "expiry_after_days")
