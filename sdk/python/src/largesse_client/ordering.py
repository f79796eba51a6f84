"""The arguments of an order, with their checks, and the requests to place or quote it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any, TypedDict, TypeVar

from largesse_client import arguments
from largesse_client.arguments import Faults, refused
from largesse_client.calls import Call, post
from largesse_client.models import Order, Quote, Recipient
from largesse_client.recovery import recover

T = TypeVar("T")

# The members of a JSON body, by their names in JSON.
Body = dict[str, Any]


class Ordering(TypedDict, total=False):
    """The arguments of any send, beside the gift.

    recipients            who is emailed: Recipient, or only an address; give this or code_quantity
    code_quantity         how many anonymous codes the answer has, 1 to 5,000
    account_id            the funding account that pays; left out when invoiced
    external_reference    your own name for the order: with it, a request is repeated until it is answered, and placed only once
    send_at               when to email, an aware datetime in the future
    wrapping_key, from_name, message    the wrapping, the sender's name and the text of the mail
    placeholders          whether the message has placeholders, such as {first_name|there}
    expiry_after_days     days after claiming that gifts expire (Enterprise)
    reminder_days         days after the gifts leave at which recipients who have not claimed are reminded: at most three, ascending
    claim_by              when unclaimed gifts are cancelled and refunded automatically, an aware datetime after send_at
    source                a token for reports
    """

    recipients: Sequence[Recipient | str] | None
    code_quantity: int | None
    placeholders: bool | None
    account_id: int | None
    external_reference: str | None
    send_at: datetime | None
    wrapping_key: str | None
    from_name: str | None
    message: str | None
    expiry_after_days: int | None
    claim_by: datetime | None
    reminder_days: Sequence[int] | None
    source: str | None


_Check = Callable[[str, object], object]
_Given = tuple[str, str, _Check, object]  # a member, its argument, the check of the argument, and its value
_CHECKS: dict[str, tuple[str, _Check]] = {
    "recipients": ("recipients", arguments.recipients),
    "code_quantity": ("codeQuantity", partial(arguments.number, most=arguments.MAX_CODES)),
    "account_id": ("accountId", arguments.number),
    "external_reference": ("externalReference", partial(arguments.text, longest=128)),
    "send_at": ("sendAt", arguments.instant),
    "wrapping_key": ("wrappingKey", partial(arguments.text, longest=64)),
    "from_name": ("fromName", partial(arguments.text, longest=32)),
    "message": ("message", partial(arguments.text, longest=256)),
    "placeholders": ("placeholders", arguments.flag),
    "expiry_after_days": ("expiryAfterDays", partial(arguments.number, most=36_500)),
    "claim_by": ("claimBy", arguments.instant),
    "reminder_days": ("reminderDays", arguments.reminder_days),
    "source": ("source", partial(arguments.text, longest=256)),
}


def gift_body(product_id: int, value: Decimal | int | None, country: str | None, order: Ordering) -> Body:
    """Returns the body for one product. Raises InvalidArgument."""
    return _body(
        order,
        ("productId", "product_id", arguments.number, product_id),
        ("value", "value", arguments.money, value),
        ("country", "country", arguments.country, country),
    )


def collection_body(collection_id: int, value: Decimal | int | None, order: Ordering) -> Body:
    """Returns the body for a collection. Raises InvalidArgument."""
    return _body(
        order,
        ("collectionId", "collection_id", arguments.number, collection_id),
        ("value", "value", arguments.money, value),
    )


def template_body(template_id: int, order: Ordering) -> Body:
    """Returns the body for a saved template. Raises InvalidArgument."""
    return _body(order, ("templateId", "template_id", arguments.number, template_id))


def placing(what: str, body: Body, quote: str | None) -> Call[Order]:
    """Returns the request that places an order. With a reference it is placed once, however often it is sent."""
    if quote is not None:
        arguments.text("quote", quote, 256)
    is_repeatable = "externalReference" in body
    call = post(f"/send/{what}", Order, body | {"quote": quote}, is_repeatable=is_repeatable)
    return replace(call, recover=partial(recover, body))


def quoting(what: str, body: Body) -> Call[Quote]:
    """Returns the request that asks what an order would cost. It places nothing."""
    return post(f"/quote/{what}", Quote, body, is_repeatable=True)


def _body(order: Ordering, gift: _Given, *more: _Given) -> Body:
    """Returns the body of a required gift and optional fields. Raises InvalidArgument with everything that is wrong."""
    if unknown := sorted(order.keys() - _CHECKS.keys()):
        raise TypeError(f"unexpected keyword arguments: {', '.join(map(repr, unknown))}")
    given = {name: value for name, value in order.items() if value is not None}
    if not given.get("recipients", True):
        del given["recipients"]
    members = [
        gift,
        *(one for one in more if one[-1] is not None),
        *((member, name, check, given[name]) for name, (member, check) in _CHECKS.items() if name in given),
    ]
    faults = Faults()
    body = {member: faults.check(check, name, value) for member, name, check, value in members}
    if ("recipients" in given) == ("code_quantity" in given):
        faults.add(refused("recipients", "or `code_quantity` must be given, one of the two."))
    faults.end()
    return body
