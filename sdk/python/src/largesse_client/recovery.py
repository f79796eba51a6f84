"""After a 409: whether the order that holds the reference is the one that was just asked for.

An answer that was lost, a program that was started again: then it is, and it is the result. But the same reference may have been given to
another order by mistake, and to take that one for the result would be to send nothing to whom it was meant for. So all that was
asked for is compared with what that order was asked for with.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from largesse_client.calls import Ask, Steps, get
from largesse_client.errors import NotFound, OtherServiceAccount, ReferenceUsed, ScopeRequired
from largesse_client.models import Collection, Order, OrderRequest, Recipient, RequestedRecipient

_WORD = re.compile(r"[a-z0-9]+")
_PLACEHOLDER = re.compile(r"\{([^{}|\n]{1,60})(?:\|([^{}\n]{0,100}))?\}")
_COMPANY = "\0"  # stands for the customer's name, which the client does not know; a message cannot have it
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
        used.add_note("What that order was asked for with could not be read.")
        raise used from None
    used.differences = tuple(found)
    used.add_note(f"Order {reference} differs in {', '.join(found)}: nothing was placed.")
    raise used


def differences(body: Mapping[str, Any], held: OrderRequest) -> Iterator[str]:
    """Names the arguments in which the order is another than the body asks for, where that is known.

    Every member of a request is compared, those that are not named here by what was said alone. What was left out is compared
    with its default; of a template it may be anything, and so may a value that is implied. An expiry that was not stored is one
    that the plan does not have.
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
    if _addressed(body.get("recipients", ())) != _addressed(held.recipients):
        yield "recipients"


def _reminder_days(body: Mapping[str, Any], held: OrderRequest) -> tuple[int, ...]:
    """Returns what days are compared by: omitted ones may be the customer's default, and a code batch has none, whatever was asked for."""
    if "recipients" not in body:
        return ()
    return held.reminder_days if "reminderDays" not in body else tuple(body["reminderDays"])


def _is_filled_in(body: Mapping[str, Any], held: str | None) -> bool:
    """Returns whether a message is the one asked for with its placeholders filled in, as the service does for a code batch."""
    message = body.get("message") or ""
    if "recipients" in body or not body.get("placeholders") or not _PLACEHOLDER.search(message):
        return False
    filled = re.escape(_in_one_line(_PLACEHOLDER.sub(_without_recipient, message))).replace(re.escape(_COMPANY), ".*")
    return re.fullmatch(filled, _in_one_line(held or "")) is not None


def _without_recipient(found: re.Match[str]) -> str:
    """Returns what stands for a placeholder where no recipient is known: the text after its bar."""
    return _COMPANY if found[1].strip().lower() == "company" else (found[2] or "").strip()


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


def _claim_by(wanted: datetime | None, held: datetime | None) -> datetime | None:
    """Returns what dates are compared by: an omitted one may be the customer's default, and people may have moved it to a later day."""
    return held if wanted is None or (held is not None and held >= wanted) else wanted


# What is compared, by how a body spells it: recipients are as a whole, and what is left is no part of a request.
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
    """Returns the reporting token in the form that orders store."""
    words = "-".join(_WORD.findall((text or "").lower()))
    return words[:_MAX_SOURCE].strip("-") or "api"


def _takes_no_value(held: OrderRequest, ask: Ask) -> Steps[bool]:
    """Returns whether the order's collection has a value of its own, so that a given one is ignored."""
    collection = yield from ask(get(f"/collections/{held.collection_id}", Collection))
    return not collection.requires_value


def _addressed(recipients: Iterable[Recipient | RequestedRecipient]) -> Counter[tuple[str, str | None]]:
    """Returns how many codes each address and name gets."""
    codes: Counter[tuple[str, str | None]] = Counter()
    for one in recipients:
        name = one.name if one.name and one.name.strip() else None
        codes[address_key(one.email), name] += one.quantity
    return codes


def address_key(email: str) -> str:
    """Returns what all spellings of an address share, whatever its letter case, composed characters, and the form of its domain."""
    local, _, domain = email.strip().rpartition("@")
    domain = unicodedata.normalize("NFKC", domain).replace("\N{IDEOGRAPHIC FULL STOP}", ".")
    labels = map(_without_punycode, domain.lower().split("."))
    return unicodedata.normalize("NFC", f"{local}@{'.'.join(labels)}").lower()


def _without_punycode(label: str) -> str:
    """Returns a part of a domain with its own letters; one that cannot be read as it is."""
    try:
        return label[4:].encode().decode("punycode") if label.startswith("xn--") else label
    except UnicodeError:
        return label
