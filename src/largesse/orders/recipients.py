"""The recipients of an order as callers give them: read, and when any are wrong, all of those told at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from largesse.base.decoding import decode_body, decode_part, refused
from largesse.base.email import MAX_EMAIL, EmailError, normalise_email
from largesse.base.errors import FieldError, InvalidRequest
from largesse.base.slices import Steps
from largesse.orders.texts import read_text

MAX_CODES = 5_000
MAX_QUANTITY = 1_000
# Wrong recipients that a refusal names at most.
MAX_ERRORS = 100


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
    name: (
        Annotated[str, Meta(max_length=200, description="Used to address the gift", examples=["Sam"])] | None
    ) = None
    quantity: (
        Annotated[
            int,
            Meta(ge=1, le=MAX_QUANTITY, description="Codes for this recipient; each is its own order line"),
        ]
        | None
    ) = 1


_RECIPIENT = msgspec.json.Decoder(Recipient)


class OrderRecipient(msgspec.Struct, frozen=True):
    """One recipient as the order keeps it."""

    email: str
    name: str | None
    quantity: int


class _RecipientsOnly(msgspec.Struct):
    """Reads nothing but the recipients, each as it came, of a body that may be wrong elsewhere."""

    recipients: list[msgspec.Raw] | None = None


def count_codes(given: Iterable[Recipient]) -> int:
    """How many codes the recipients get in all. Raises InvalidRequest for more than an order may have."""
    count = sum(1 if one.quantity is None else one.quantity for one in given)
    if count > MAX_CODES:
        raise InvalidRequest(f"`recipients` must ask for at most {MAX_CODES} codes in all, not {count}.")
    return count


def read_recipients(given: Iterable[Recipient | msgspec.Raw]) -> Steps[tuple[OrderRecipient, ...]]:
    """The recipients as the order keeps them, one a step: an address at a domain not of ASCII takes milliseconds.

    Raises InvalidRequest whose `errors` name all that are wrong, or the first MAX_ERRORS; its detail is the first's.
    """
    recipients: list[OrderRecipient] = []
    errors: list[FieldError] = []
    for at, one in enumerate(given):
        try:
            recipients.append(_read_recipient(f"recipients[{at}]", one))
        except InvalidRequest as refusal:
            errors += refusal.errors
            if len(errors) == MAX_ERRORS:
                break
        yield
    if errors:
        raise _refusal(errors)
    return tuple(recipients)


def read_recipients_of(raw: bytes) -> Steps[tuple[OrderRecipient, ...]]:
    """Raises what `read_recipients` does for the recipients of a body of which one is known to be wrong."""
    return read_recipients((decode_body(raw, _RecipientsOnly).recipients or [])[:MAX_CODES])


def _read_recipient(member: str, given: Recipient | msgspec.Raw) -> OrderRecipient:
    one = given if isinstance(given, Recipient) else decode_part(given, _RECIPIENT, member)
    try:
        email = normalise_email(one.email)
    except EmailError as error:
        raise refused(f"{member}.email", f"is not an email address: {str(error).removesuffix('.')}") from None
    return OrderRecipient(
        email, read_text(f"{member}.name", one.name), 1 if one.quantity is None else one.quantity
    )


def _refusal(errors: list[FieldError]) -> InvalidRequest:
    return InvalidRequest(errors[0].detail + count_more(errors), errors=errors)


def count_more(errors: Sequence[FieldError]) -> str:
    """What follows the detail of the first of several errors: how many more there are. Nothing for a single one."""
    more = len(errors) - 1
    if more == 0:
        return ""
    count = (
        f"is {more}" if more == 1 else f"are {more}" if len(errors) < MAX_ERRORS else f"are at least {more}"
    )
    return f" So {count} more: see `errors`."
