"""Reads and checks the recipients that callers give. Reports all wrong recipients at once."""

from collections.abc import Iterable, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from largesse.base.cooperative import Steps
from largesse.base.decoding import refused
from largesse.base.email import MAX_EMAIL, EmailError, behaviour_of, normalise_email
from largesse.base.errors import FieldError, InvalidRequest
from largesse.orders.options import read_text

MAX_CODES = 5_000
MAX_QUANTITY = 1_000
MAX_NAME = 200  # characters
# Wrong recipients that a refusal names at most.
MAX_ERRORS = 100


class Recipient(msgspec.Struct, frozen=True, rename="camel", gc=False):
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


class OrderRecipient(Recipient, frozen=True):
    """One recipient, checked."""

    quantity: int = 1


def count_codes(given: Iterable[Recipient]) -> int:
    """Returns how many codes the recipients get in all. Raises InvalidRequest for more than an order may have."""
    count = 0
    for one in given:
        count += 1 if one.quantity is None else one.quantity
    if count > MAX_CODES:
        raise InvalidRequest(f"`recipients` must ask for at most {MAX_CODES} codes in all, not {count}.")
    return count


def read_recipients(
    given: Iterable[Recipient | InvalidRequest], *, is_lab: bool = False
) -> Steps[tuple[OrderRecipient, ...]]:
    """Returns the checked recipients, one per step: an address at a domain beyond ASCII takes milliseconds.

    A recipient that could not be decoded is given as its error. Raises InvalidRequest with all errors, or the first MAX_ERRORS, in
    `errors`; its detail is the first of them. In staging, which has the test lab, its addresses are accepted (`is_lab`).
    """
    recipients: list[OrderRecipient] = []
    errors: list[FieldError] = []
    for at, one in enumerate(given):
        try:
            if isinstance(one, InvalidRequest):
                raise one
            recipients.append(check_recipient(one.email, one.name, one.quantity, at, is_lab=is_lab))
        except InvalidRequest as refusal:
            errors += refusal.errors
            if len(errors) == MAX_ERRORS:
                break
        yield
    if errors:
        raise _refusal(errors)
    return tuple(recipients)


def check_recipient(
    email: str, name: str | None, quantity: int | None, at: int = 0, *, is_lab: bool = False
) -> OrderRecipient:
    """Returns one checked recipient. Raises InvalidRequest, which names the wrong member of recipient `at`."""
    try:
        normal = email.lower() if is_lab and behaviour_of(email) else normalise_email(email)
    except EmailError as error:
        raise refused(f"recipients[{at}].email", f"is not an email address: {str(error).removesuffix('.')}") from None
    checked = None if name is None else read_text(f"recipients[{at}].name", name)
    return OrderRecipient(normal, checked, 1 if quantity is None else quantity)


def _refusal(errors: list[FieldError]) -> InvalidRequest:
    return InvalidRequest(errors[0].detail + count_more(errors), errors=errors)


def count_more(errors: Sequence[FieldError]) -> str:
    """Returns the sentence that says how many more errors there are. Empty for a single one."""
    more = len(errors) - 1
    if more == 0:
        return ""
    count = f"{more}" if len(errors) < MAX_ERRORS else f"At least {more}"
    return f" {count} more {'is' if more == 1 else 'are'} wrong: see `errors`."
