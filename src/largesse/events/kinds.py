"""Types of events.

`order.created`: an order was placed. Its payload is the order record, which `GET /orders` lists too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Meta

Payload = TypeVar("Payload", bound=msgspec.Struct)

_NAME = re.compile(r"[a-z]+(?:\.[a-z]+(?:_[a-z]+)*)+")
_encode = msgspec.json.Encoder().encode


class Sampled(NamedTuple):
    """For whom and when a sample is made."""

    customer_id: int
    service_account_id: int | None
    at: datetime


@dataclass(frozen=True, slots=True)
class EventType(Generic[Payload]):
    """A type of event. Its payload is a struct with an `event` member, which holds the name.

    `sample` makes a payload without anything in the database. Raises ValueError for a name that is not like `thing.happened`, and for a
    payload without an `event` member.
    """

    name: str
    summary: str  # what happened: "An order was placed"
    description: str  # for receivers: how often it comes, what tells duplicates apart
    payload: type[Payload]
    sample: Callable[[Sampled], Payload]

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"an event is called thing.happened, not {self.name!r}")
        if "event" not in self.payload.__struct_fields__:
            raise ValueError(f"{self.payload.__name__} lacks the member `event`")

    @property
    def operation_id(self) -> str:
        """The name as documents spell it: `orderCreated`."""
        first, *more = re.split(r"[._]", self.name)
        return first + "".join(word.capitalize() for word in more)

    @property
    def shape(self) -> str:
        """The payload's name in documents."""
        return self.payload.__name__

    def body(self, payload: Payload) -> bytes:
        """Returns a payload as receivers get it, and as the signature covers it: JSON."""
        return _encode(payload)

    def sample_body(self, sampled: Sampled) -> bytes:
        """Returns the body of a sample."""
        return self.body(self.sample(sampled))


Int64 = Annotated[int, Meta(extra_json_schema={"format": "int64"})]
_ORDER_CREATED_NAME = "order.created"


class OrderRecord(msgspec.Struct, rename="camel"):
    """An order with the members of GET /orders and of the event order.created."""

    id: Annotated[int, Meta(description="Stable per order; a deduplication key")]
    event: Annotated[str, Meta(description="The name of the event", examples=[_ORDER_CREATED_NAME])] | None
    reference: Annotated[str, Meta(description="Opaque, non-sequential public order key")] | None
    customer_id: Annotated[Int64, Meta(description="Whose order it is")]
    value: Annotated[float, Meta(description="Per-code face value")]
    currency: Annotated[str, Meta(description="ISO currency code")] | None
    country: Annotated[str, Meta(description="ISO country code of the gift")] | None
    source_type: Annotated[str, Meta(description="The order's source token")] | None
    external_reference: Annotated[str, Meta(description="The idempotency key")] | None
    gift_selection_type: Annotated[str, Meta(description="`gift` or `gifts`")] | None
    gift_product_id: Annotated[int, Meta(description="Of a single gift")] | None
    gifts_collection_id: Annotated[int, Meta(description="Of a collection")] | None
    wrapping_key: Annotated[str, Meta(description="The wrapping")] | None
    from_name: Annotated[str, Meta(description="Whom the gift is from")] | None
    delivery_mode: Annotated[str, Meta(description="`send` or `manual`")] | None
    line_count: Annotated[int, Meta(description="Codes issued")]
    created_by: Annotated[Int64, Meta(description="The service account")] | None
    creation_date: Annotated[datetime, Meta(tz=True, description="When it was placed")]


def _sample(sampled: Sampled) -> OrderRecord:
    """Returns an order record without an order: its id is 0."""
    return OrderRecord(
        id=0,
        event=_ORDER_CREATED_NAME,
        reference="00000000000000000000",
        customer_id=sampled.customer_id,
        value=10.0,
        currency="GBP",
        country="GB",
        source_type="sample",
        external_reference=None,
        gift_selection_type="gift",
        gift_product_id=None,
        gifts_collection_id=None,
        wrapping_key="default",
        from_name="Largesse",
        delivery_mode="manual",
        line_count=1,
        created_by=sampled.service_account_id,
        creation_date=sampled.at,
    )


ORDER_CREATED = EventType(
    _ORDER_CREATED_NAME,
    summary="An order was placed",
    description="Once for each order, also when it is to be delivered later. `id` tells duplicates apart; that of a sample is 0.",
    payload=OrderRecord,
    sample=_sample,
)
