"""Reading the body of a quote: all that is wrong with it, where a send is refused for the first thing that is.

What cannot be read is kept, and the body read again with something harmless in its place, until nothing is left that cannot.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import msgspec

from largesse.base.decoding import Unreadable, WrongItem, decode_body
from largesse.base.errors import InvalidRequest
from largesse.orders.faults import RequestFaults
from largesse.orders.request import SendRequest
from largesse.web.api.shapes.sending import Recipient, SendBody, recipients_in
from largesse.web.kit.spelling import spell_name

# What stands for a field that was refused while the others are looked at; null for all other fields.
_HARMLESS = {
    "product_id": msgspec.Raw(b"1"),
    "collection_id": msgspec.Raw(b"1"),
    "template_id": msgspec.Raw(b"1"),
    "recipients": msgspec.Raw(b'[{"email":"nobody@example.com"}]'),
    "code_quantity": msgspec.Raw(b"1"),
}
_NULL = msgspec.Raw(b"null")
# A member is refused once, the recipients perhaps twice, and there are fewer members.
_MOST_READINGS = 32

ReadRecipients = Callable[[Iterator[Recipient | InvalidRequest]], Awaitable[object]]


async def read_quoted(
    raw: bytes,
    kind: type[SendBody],
    plan: str,
    found: RequestFaults,
    read_recipients: ReadRecipients,
    ignored: list[str],
) -> SendRequest:
    """What the body of a quote asks for; `found` is told of what is wrong, and has something harmless in its place.

    `read_recipients` raises InvalidRequest for all recipients that are wrong; `ignored` gets the names of members that there are none
    of. Raises Unreadable.
    """
    for reading in range(_MOST_READINGS):
        try:
            return decode_body(raw, kind, None if reading else ignored).asked(plan)
        except Unreadable:
            raise
        except InvalidRequest as refusal:
            if isinstance(refusal, WrongItem):
                with found:
                    await read_recipients(recipients_in(raw))
            raw = _without(raw, found.keep(refusal))
            await asyncio.sleep(0)  # a large body takes its time
    raise AssertionError("what was refused is left out, so that something is left that can be read")


def _without(raw: bytes, field: str) -> bytes:
    """A body with something harmless for a field that was refused."""
    members = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    has_recipients = _is_given(members.get("recipients"))
    harmless = _NULL if field == "code_quantity" and has_recipients else _HARMLESS.get(field, _NULL)
    return msgspec.json.encode(members | {spell_name(field): harmless})


def _is_given(value: msgspec.Raw | None) -> bool:
    return value is not None and bytes(value).translate(None, b" \t\r\n") not in {b"null", b"[]"}
