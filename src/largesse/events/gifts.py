"""The events of a gift, from its mail to its end. Each is about one line of an order, and contains neither code nor PIN."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from largesse.events.kinds import EventType, Int64, Sampled

_SENT = "gift.sent"


class GiftEvent(msgspec.Struct, kw_only=True, rename="camel"):
    """What happened to one gift of an order."""

    id: Annotated[
        str, Meta(description="Stable per event; a deduplication key", examples=["evt_9f86d081884c7d659a2feaa0"])
    ]
    event: Annotated[str, Meta(description="The name of the event", examples=[_SENT])]
    reference: Annotated[str, Meta(description="The order's opaque key")]
    customer_id: Annotated[Int64, Meta(description="Whose order it is")]
    number: Annotated[int, Meta(description="Counts the order's lines from 1")]
    recipient: Annotated[str, Meta(description="The recipient's address; null in a code batch")] | None
    occurred_at: Annotated[datetime, Meta(tz=True, description="When it happened")]


def _gift_event(name: str, summary: str, description: str) -> EventType[GiftEvent]:
    def sample(sampled: Sampled) -> GiftEvent:
        return GiftEvent(
            id="evt_000000000000000000000000",
            event=name,
            reference="00000000000000000000",
            customer_id=sampled.customer_id,
            number=1,
            recipient="recipient@example.com",
            occurred_at=sampled.at,
        )

    return EventType(name, summary, f"{description} `id` tells duplicates apart.", GiftEvent, sample)


GIFT_SENT = _gift_event(
    _SENT,
    "A gift's mail was sent",
    "The mail server accepted the mail. Once for each mail, so again when it is sent again.",
)
GIFT_BOUNCED = _gift_event(
    "gift.bounced",
    "A gift's mail could not be delivered",
    "The mail server refused the mail for good, or did not take it in three days. Once for each mail.",
)
GIFT_OPENED = _gift_event(
    "gift.opened", "A recipient opened a gift", "Once for each gift, when somebody acts on its link."
)
GIFT_CLAIMED = _gift_event("gift.claimed", "A recipient claimed a gift", "Once for each gift.")
GIFT_FULFILLED = _gift_event(
    "gift.fulfilled",
    "A gift was fulfilled",
    "Once for each gift: the recipient has the voucher, or the parcel is on its way.",
)
GIFT_CANCELLED = _gift_event(
    "gift.cancelled", "A gift was cancelled", "Once for each gift that was cancelled and refunded."
)
GIFT_EXPIRED = _gift_event(
    "gift.expired",
    "A gift expired",
    "Once for each gift: it was claimed and its time then ended, or nobody had claimed it by the order's claim-by date. In the second case "
    "`gift.cancelled` follows, as it is refunded.",
)

GIFT_EVENTS = (GIFT_SENT, GIFT_BOUNCED, GIFT_OPENED, GIFT_CLAIMED, GIFT_FULFILLED, GIFT_CANCELLED, GIFT_EXPIRED)
