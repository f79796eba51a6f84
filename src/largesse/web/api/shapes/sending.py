"""The bodies of sends, and what they ask for.

Limits that msgspec can hold stand in the types, where the OpenAPI document finds them too; `largesse.orders` holds the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from largesse.base.decoding import decode_body, decode_part
from largesse.base.email import MAX_EMAIL
from largesse.base.errors import InvalidRequest
from largesse.orders.options import Options, options_of
from largesse.orders.recipients import MAX_CODES, MAX_NAME, MAX_QUANTITY
from largesse.orders.request import (
    DEFAULT_COUNTRY,
    MAX_QUOTE,
    MAX_REFERENCE,
    Choice,
    CollectionChoice,
    ProductChoice,
    SendRequest,
    TemplateChoice,
)

_INT32 = 2_147_483_647
Id = Annotated[int, Meta(ge=1, le=_INT32)]
# max_length as well, since `$` also matches before a line break at the end.
Country = Annotated[str, Meta(pattern="^[A-Za-z]{2}$", max_length=2, description="ISO 3166-1 alpha-2", examples=["GB"])]

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


class Recipient(msgspec.Struct, kw_only=True, rename="camel"):
    """One address and how many codes it gets."""

    email: Annotated[
        str,
        Meta(
            max_length=MAX_EMAIL,
            description="Address the gift is emailed to",
            examples=["sam@example.com"],
            extra_json_schema={"format": "email"},
        ),
    ]
    name: Annotated[str, Meta(max_length=MAX_NAME, description="Used to address the gift", examples=["Sam"])] | None = (
        None
    )
    quantity: (
        Annotated[int, Meta(ge=1, le=MAX_QUANTITY, description="Codes for this recipient; each is its own order line")]
        | None
    ) = 1


_RECIPIENT = msgspec.json.Decoder(Recipient)

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
            Meta(ge=1, le=MAX_CODES, description="Anonymous codes, returned and not emailed. Excludes `recipients`."),
        ]
        | None
    ) = None
    send_at: Annotated[msgspec.Raw, Meta(extra_json_schema=msgspec.json.schema(SendAt))] | UnsetType = UNSET
    account_id: (
        Annotated[
            int, Meta(ge=1, le=_INT32, description="Funding account in the order's currency; omitted when invoiced")
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

    def choice(self) -> Choice:
        """What is to be sent."""
        raise NotImplementedError

    def asked(self, plan: str) -> SendRequest:
        """What is asked for, for a customer on that plan. Raises InvalidRequest."""
        return SendRequest(
            choice=self.choice(),
            source=self.source,
            recipients=self.recipients or (),
            code_quantity=self.code_quantity,
            options=options_of(self),
            send_at=_read_send_at(self.send_at) if self.recipients else None,
            account_id=self.account_id,
            expiry_after_days=_read_expiry(self.expiry_after_days, plan),
            external_reference=self.external_reference,
            quote=self.quote,
        )


class SendGift(SendBody, kw_only=True, rename="camel"):
    """Body of POST /send/gift."""

    product_id: Annotated[Id, Meta(description="From GET /products", examples=[1])]
    value: (
        Annotated[
            float,
            Meta(
                description="Per-recipient face value; required when the product has `requiresAmount`", examples=[10.0]
            ),
        ]
        | None
    ) = None
    country: Annotated[Country, Meta(description="ISO 3166-1 alpha-2; `GB` by default", examples=["GB"])] | None = None

    def choice(self) -> Choice:
        """The product, in a country."""
        return ProductChoice(self.product_id, self.value, self.country or DEFAULT_COUNTRY)


class SendCollection(SendBody, kw_only=True, rename="camel"):
    """Body of POST /send/collection."""

    collection_id: Annotated[Id, Meta(description="From GET /collections", examples=[1])]
    value: Annotated[float, Meta(description="Curated collections only; ignored for custom ones")] | None = None

    def choice(self) -> Choice:
        """The collection."""
        return CollectionChoice(self.collection_id, self.value)


class SendTemplate(SendBody, kw_only=True, rename="camel"):
    """Body of POST /send/template; the template supplies gift, value, country and, unless overridden, the rest."""

    template_id: Annotated[Id, Meta(description="From GET /templates", examples=[1])]

    def choice(self) -> Choice:
        """The template."""
        return TemplateChoice(self.template_id)


class _ReferenceOnly(msgspec.Struct, rename="camel"):
    """Reads nothing but the caller's reference, for a body that may be wrong elsewhere."""

    external_reference: str | None = None


class _RecipientsOnly(msgspec.Struct):
    """Reads nothing but the recipients, each as it came, of a body that may be wrong elsewhere."""

    recipients: list[msgspec.Raw] | None = None


def reference_in(raw: bytes) -> str | None:
    """The caller's reference in a body that may be wrong elsewhere. Raises InvalidRequest when it is no text."""
    return decode_body(raw, _ReferenceOnly).external_reference


def recipients_in(raw: bytes) -> Iterator[Recipient | InvalidRequest]:
    """The recipients of a body that may be wrong, those that cannot be read as what is wrong with them; as many as an order may have."""
    for at, one in enumerate((decode_body(raw, _RecipientsOnly).recipients or [])[:MAX_CODES]):
        try:
            yield decode_part(one, _RECIPIENT, f"recipients[{at}]")
        except InvalidRequest as refusal:
            yield refusal


def _read_send_at(given: msgspec.Raw | UnsetType) -> datetime | None:
    return None if given is UNSET else decode_part(given, _SEND_AT, "sendAt")


def _read_expiry(given: msgspec.Raw | UnsetType, plan: str) -> int | None:
    """The days; None below Enterprise, whatever number was given."""
    if given is UNSET or (plan != "enterprise" and _NUMBER.match(given)):
        return None
    return decode_part(given, _EXPIRY_AFTER_DAYS, "expiryAfterDays")
