"""Requests to send, and their rules that need no database.

`SendRequest` is the body of a send. The web application makes one from a draft. `read_send` checks it and returns an `OrderSpec`.
Limits that msgspec can check are in the types, from which the OpenAPI document takes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from largesse.base.decoding import decode_body, decode_part
from largesse.base.email import email_key
from largesse.base.errors import InvalidRequest
from largesse.customers.principal import Principal
from largesse.customers.restrictions import CODES, require_scope
from largesse.orders.follow_ups import MAX_CLAIM_BY_DAYS, ReminderDays, read_claim_by, read_reminder_days
from largesse.orders.options import Options, check_options, options_of, read_key
from largesse.orders.recipients import MAX_CODES, OrderRecipient, Recipient, count_codes

MAX_REFERENCE = 128
MAX_SOURCE = 32
MAX_QUOTE = 256
DEFAULT_SOURCE = "api"
DEFAULT_COUNTRY = "GB"

_WORD = re.compile(r"[a-z0-9]+")
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
_NUMBER = re.compile(rb"[-0-9]")  # the start of a JSON number
_RECIPIENT = msgspec.json.Decoder(Recipient)


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
    """A template, which presets the gift and the rest."""

    template_id: int


class TextedTemplateChoice(TemplateChoice, frozen=True):
    """A template whose texts a person has seen in a form: those that they left empty stay empty."""


Choice = ProductChoice | CollectionChoice | TemplateChoice


if TYPE_CHECKING:
    OptionMembers = msgspec.Struct
else:
    # The optional texts as members of a body.
    OptionMembers = msgspec.defstruct(
        "OptionMembers",
        [(field.name, field.type, field.default) for field in msgspec.structs.fields(Options)],
        frozen=True,
        kw_only=True,
        rename="camel",
    )


class SendRequest(OptionMembers, frozen=True, kw_only=True, rename="camel"):
    """The request of a caller: the optional texts of an order, and these members. Each is within its own limits, and not checked further.

    `send_at` and `expiry_after_days` are not decoded yet: whether they are used depends on the rest of the request and the plan.
    """

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
    claim_by: (
        Annotated[
            datetime,
            Meta(
                description="What nobody has claimed by then is cancelled by itself, and refunded in full to where the order was paid "
                f"from; after `sendAt`, at most {MAX_CLAIM_BY_DAYS:,} days. Without an offset it is UTC. Without it, gifts wait for ever, "
                "unless the customer has set a default for orders of the API.",
                examples=["2031-01-31T23:59:59Z"],
                extra_json_schema={"format": "date-time"},
            ),
        ]
        | None
    ) = None
    reminder_days: ReminderDays = None
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
    placeholders: (
        Annotated[
            bool,
            Meta(
                description="Whether `message` has placeholders, such as `{first_name|there}`, which are filled in for each recipient; by default it "
                "is literal."
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

    @property
    def choice(self) -> Choice:
        """The choice of the gift."""
        raise NotImplementedError


class SendGift(SendRequest, frozen=True, kw_only=True, rename="camel"):
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

    @property
    def choice(self) -> Choice:
        """The product, and the country it is sold in."""
        return ProductChoice(self.product_id, self.value, self.country or DEFAULT_COUNTRY)


class SendCollection(SendRequest, frozen=True, kw_only=True, rename="camel"):
    """Body of POST /send/collection."""

    collection_id: Annotated[Id, Meta(description="From GET /collections", examples=[1])]
    value: Annotated[float, Meta(description="Curated collections only; ignored for custom ones")] | None = None

    @property
    def choice(self) -> Choice:
        """The collection."""
        return CollectionChoice(self.collection_id, self.value)


class SendTemplate(SendRequest, frozen=True, kw_only=True, rename="camel"):
    """Body of POST /send/template; the template supplies gift, value, country and, unless overridden, the rest."""

    template_id: Annotated[Id, Meta(description="From GET /templates", examples=[1])]

    @property
    def choice(self) -> Choice:
        """The template."""
        return TemplateChoice(self.template_id)


class SendTextedTemplate(SendTemplate, frozen=True, kw_only=True, rename="camel"):
    """A person's request, with all its texts. Callers of the API cannot send it."""

    @property
    def choice(self) -> Choice:
        """The template, without its texts."""
        return TextedTemplateChoice(self.template_id)


def send_request(choice: Choice, send_at: datetime | None, **members: Any) -> SendRequest:
    """Returns the request to send `choice` at `send_at`, with these other members."""
    kinds: dict[type[Choice], type[SendRequest]] = {
        ProductChoice: SendGift,
        CollectionChoice: SendCollection,
        TemplateChoice: SendTemplate,
        TextedTemplateChoice: SendTextedTemplate,
    }
    undecoded = msgspec.Raw(msgspec.json.encode(send_at))
    return kinds[type(choice)](**msgspec.structs.asdict(choice), send_at=undecoded, **members)


class _ReferenceOnly(msgspec.Struct, rename="camel"):
    """Decodes only the caller's reference, as the rest of the body may be wrong."""

    external_reference: str | None = None


class _RecipientsOnly(msgspec.Struct):
    """Decodes only the list of recipients, as the rest of the body may be wrong."""

    recipients: list[msgspec.Raw] | None = None


def reference_in(raw: bytes) -> str | None:
    """Returns the caller's reference in a body whose rest may be wrong. Raises InvalidRequest if it is not text."""
    return decode_body(raw, _ReferenceOnly).external_reference


def recipients_in(raw: bytes) -> Iterator[Recipient | InvalidRequest]:
    """Yields the recipients of a body that may be wrong, at most MAX_CODES. For one that cannot be decoded, yields its error."""
    for at, one in enumerate((decode_body(raw, _RecipientsOnly).recipients or [])[:MAX_CODES]):
        try:
            yield decode_part(one, _RECIPIENT, f"recipients[{at}]")
        except InvalidRequest as refusal:
            yield refusal


class OrderSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The checked meaning of a request: delivery and payment. `recipients` is empty for a code batch, and until they are read."""

    source: str
    recipients: tuple[OrderRecipient, ...]
    code_count: int
    options: Options  # a template may fill in the ones left out
    scheduled_for: datetime | None
    account_id: int | None
    expiry_after_days: int | None
    external_reference: str | None
    # The hash of a quote leaves these two out if they are None.
    claim_by: datetime | None = None
    reminder_days: tuple[int, ...] | None = None  # None for the customer's default

    @property
    def delivery_mode(self) -> str:
        """`send` when recipients get mail, `manual` when the caller hands out the codes."""
        return "send" if self.recipients else "manual"

    @property
    def recipient_count(self) -> int:
        """The number of distinct addresses. Letter case is ignored."""
        return len({email_key(recipient.email) for recipient in self.recipients})


def read_send(request: SendRequest, principal: Principal, now: datetime) -> OrderSpec:
    """Returns what a request means for its caller. Raises InvalidRequest naming what is wrong and the limit, and ScopeRequired.

    Counts the recipients, but does not read them yet: that may take long, and other errors are reported first.
    """
    send_at = _read_send_at(request)
    expiry_after_days = _read_expiry(request.expiry_after_days, principal.plan)
    scheduled_for = _future(send_at, now)
    claim_by = read_claim_by(request.claim_by, scheduled_for, now)
    reminder_days = None
    if request.recipients:  # a code batch has nobody to remind
        # The quote has checked these days. If it is sent later, for example after an approval, reminders that are too late are left out.
        before = claim_by if request.quote is None else None
        reminder_days = read_reminder_days(request.reminder_days, scheduled_for or now, before)
    if request.code_quantity is not None:
        require_scope(principal, CODES)
    return OrderSpec(
        source=read_source(request.source),
        recipients=(),
        code_count=_count_codes(request),
        options=check_options(options_of(request)),
        scheduled_for=scheduled_for,
        account_id=request.account_id,
        expiry_after_days=expiry_after_days if principal.plan == "enterprise" else None,
        external_reference=read_reference(request.external_reference),
        claim_by=claim_by,
        reminder_days=reminder_days,
    )


def read_reference(text: str | None) -> str | None:
    """Returns the caller's reference without surrounding blanks, or None if it is blank. Raises InvalidRequest."""
    reference = text.strip() if text else ""
    if len(reference) > MAX_REFERENCE:
        raise InvalidRequest(f"`external_reference` must have at most {MAX_REFERENCE} characters.")
    return read_key("external_reference", reference)


def read_source(text: str | None) -> str:
    """Returns the reporting token: lower case, one hyphen for each run of other characters than a-z and 0-9, at most 32 characters."""
    if not text:
        return DEFAULT_SOURCE
    words = (found[0] for found in _WORD.finditer(text.lower()))
    return "-".join(islice(words, MAX_SOURCE))[:MAX_SOURCE].strip("-") or DEFAULT_SOURCE


def _count_codes(request: SendRequest) -> int:
    """Returns the number of codes. An empty list of recipients counts as left out."""
    if bool(request.recipients) == (request.code_quantity is not None):
        raise InvalidRequest("Exactly one of `recipients` and `code_quantity` must be given.")
    return count_codes(request.recipients or ()) if request.code_quantity is None else request.code_quantity


def _read_send_at(request: SendRequest) -> datetime | None:
    """Returns `send_at`; None if it was left out, and always for a code batch."""
    if not request.recipients or request.send_at is UNSET:
        return None
    return decode_part(request.send_at, _SEND_AT, "sendAt")


def _read_expiry(given: msgspec.Raw | UnsetType, plan: str) -> int | None:
    """Returns the days after which gifts expire; None if they were left out, and for any number on a plan below Enterprise."""
    if given is UNSET or (plan != "enterprise" and _NUMBER.match(given)):
        return None
    return decode_part(given, _EXPIRY_AFTER_DAYS, "expiryAfterDays")


def _future(send_at: datetime | None, now: datetime) -> datetime | None:
    if send_at is None:
        return None
    try:
        instant = send_at.replace(tzinfo=UTC) if send_at.tzinfo is None else send_at.astimezone(UTC)
    except OverflowError:
        raise InvalidRequest("`send_at` is outside the calendar.") from None
    if instant <= now:
        raise InvalidRequest("`send_at` must be in the future.")
    return instant
