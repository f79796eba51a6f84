"""After a 409, finds out whether the order with the reference is the one that this call wanted to place.

If an answer was lost, or the program was restarted, it is that order, and the result of the call. But a caller may have used the reference for
another order by mistake: then the recipients of this call would get nothing. So the request is compared with the request of that order.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from largesse_client.calls import Ask, Steps, get
from largesse_client.errors import NotFound, OtherServiceAccount, ReferenceUsed, ScopeRequired
from largesse_client.models import Collection, Order, OrderRequest, Recipient, RequestedRecipient

_WORD = re.compile(r"[a-z0-9]+")
_PLACEHOLDER = re.compile(r"\{([^{}|\n]{1,60})(?:\|([^{}\n]{0,100}))?\}")
_COMPANY = "\0"  # replaces the customer's name, which the client does not know. No message can contain it.
_MAX_SOURCE = 32


def recover(body: Mapping[str, Any], used: ReferenceUsed, ask: Ask) -> Steps[Order]:
    """Returns the order that `used` names if it is the one in `body`. Raises ReferenceUsed if it is not."""
    reference = used.order_reference
    if reference is None:
        raise used
    try:
        held = yield from ask(get(f"/orders/{reference}/request", OrderRequest))
        found = list(differences(body, held))
        if found == ["value"] and held.collection_id is not None and (yield from _takes_no_value(held, ask)):
            found = []
        if not found:
            order: Order = yield from ask(get(f"/orders/{reference}", Order))
            return order
    except (NotFound, OtherServiceAccount, ScopeRequired):
        used.add_note("The request of that order could not be read.")
        raise used from None
    used.differences = tuple(found)
    raise used


def differences(body: Mapping[str, Any], held: OrderRequest) -> Iterator[str]:
    """Yields the names of the arguments that differ between the order and the body.

    Compares every member of a request. A member that was left out is compared with its default. If a template or the gift may have set it, it is
    not compared. An expiry that the order does not have is not compared either, as the plan may not include it.
    """
    if not held.is_own:
        yield "service_account"
    is_template = "templateId" in body
    wanted = {name: body.get(member) for name, member in _MEMBERS.items()} | {
        "value": body.get("value", held.value),
        "country": (body.get("country") or "GB").upper() if "productId" in body else held.country,
        "source": normal_source(body.get("source")),
        "external_reference": body["externalReference"].strip(),
        "send_at": body.get("sendAt") if "recipients" in body else None,
        "wrapping_key": body.get("wrappingKey", "default"),
        "reminder_days": _reminder_days(body, held),
        "claim_by": _claim_by(body.get("claimBy"), held.claim_by),
        "expiry_after_days": body.get("expiryAfterDays") and held.expiry_after_days and body["expiryAfterDays"],
    }
    for name, value in wanted.items():
        if is_template and _is_left_to_template(name, body):
            continue
        if name == "message" and _is_filled_in(body, held.message):
            continue
        if value != getattr(held, name):
            yield name
    if not _are_same(body.get("recipients", ()), held.recipients):
        yield "recipients"


def _reminder_days(body: Mapping[str, Any], held: OrderRequest) -> tuple[int, ...]:
    """Returns the days to compare: for omitted ones those of the order, as it may have the customer's default, and none for a code batch."""
    if "recipients" not in body:
        return ()
    return held.reminder_days if "reminderDays" not in body else tuple(body["reminderDays"])


def _is_filled_in(body: Mapping[str, Any], held: str | None) -> bool:
    """Returns whether the order's message is the requested one with its placeholders filled in, as in a code batch."""
    message = body.get("message") or ""
    if "recipients" in body or not body.get("placeholders") or not _PLACEHOLDER.search(message):
        return False
    filled = re.escape(_in_one_line(_PLACEHOLDER.sub(_without_recipient, message))).replace(re.escape(_COMPANY), ".*")
    return re.fullmatch(filled, _in_one_line(held or "")) is not None


def _without_recipient(found: re.Match[str]) -> str:
    """Returns the text that replaces a placeholder in a code batch: the text after its bar."""
    return _COMPANY if found[1].strip().lower() == "company" else (found[2] or "").strip()


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


def _claim_by(wanted: datetime | None, held: datetime | None) -> datetime | None:
    """Returns the date to compare: the order's if it was omitted, as it may be a default, or if people have moved it to a later day."""
    return held if wanted is None or (held is not None and held >= wanted) else wanted


# The members to compare, with their names in a body. Recipients are compared separately, and the others are not part of a request.
_MEMBERS = {
    field.name: field.encode_name
    for field in msgspec.structs.fields(OrderRequest)
    if field.name not in {"reference", "is_own", "currency", "recipients"}
}
_OF_TEMPLATE = {
    "product_id": None,
    "collection_id": None,
    "wrapping_key": "wrappingKey",
    "from_name": "fromName",
    "message": "message",
    "expiry_after_days": "expiryAfterDays",
}


def _is_left_to_template(name: str, body: Mapping[str, Any]) -> bool:
    return name in _OF_TEMPLATE and _OF_TEMPLATE[name] not in body


def normal_source(text: str | None) -> str:
    """Returns the reporting token in the form in which orders store it."""
    words = "-".join(_WORD.findall((text or "").lower()))
    return words[:_MAX_SOURCE].strip("-") or "api"


def _takes_no_value(held: OrderRequest, ask: Ask) -> Steps[bool]:
    """Returns whether the order's collection has a value of its own, so that a given one is ignored."""
    collection = yield from ask(get(f"/collections/{held.collection_id}", Collection))
    return not collection.requires_value


def address_key(email: str) -> str:
    """Returns a key that is the same for all spellings of an address: letter case, composed characters, and the form of the domain."""
    local, _, domain = email.strip().rpartition("@")
    domain = unicodedata.normalize("NFKC", domain).replace("\N{IDEOGRAPHIC FULL STOP}", ".")
    labels = map(_without_punycode, domain.lower().split("."))
    return unicodedata.normalize("NFC", f"{local}@{'.'.join(labels)}").lower()


def _are_same(wanted: Sequence[Recipient], held: Sequence[RequestedRecipient]) -> bool:
    """Returns whether both name the same recipients. An address that people corrected is compared with the former one, which is masked."""
    former = {address_key(one.email): address_key(one.was_email) for one in held if one.was_email}
    masks = set(former.values())

    def masked(address: str) -> str:
        mask = f"{address[:1]}•••@{address.rpartition('@')[2]}"
        return mask if mask in masks else address

    def masked_former(email: str) -> str:
        return masked(former.get(address_key(email), address_key(email)))

    asked = _addressed(wanted, lambda email: masked(address_key(email)))
    return asked == _addressed(held, masked_former) or _addressed(wanted) == _addressed(held)


def _addressed(
    recipients: Iterable[Recipient | RequestedRecipient], key: Callable[[str], str] = address_key
) -> Counter[tuple[str, str | None]]:
    """Returns how many codes each address and name gets, by the `key` of the address."""
    codes: Counter[tuple[str, str | None]] = Counter()
    for one in recipients:
        name = one.name if one.name and one.name.strip() else None
        codes[key(one.email), name] += one.quantity
    return codes


def _without_punycode(label: str) -> str:
    """Returns a part of a domain decoded from Punycode. Returns it unchanged if it cannot be decoded."""
    try:
        return label[4:].encode().decode("punycode") if label.startswith("xn--") else label
    except UnicodeError:
        return label
