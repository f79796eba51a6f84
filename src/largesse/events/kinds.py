"""Types of events: of orders, of gifts and of funding accounts. `EVENTS` has all of them."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Meta

Payload = TypeVar("Payload", bound=msgspec.Struct)

_NAME = re.compile(r"[a-z]+(?:\.[a-z]+(?:_[a-z]+)*)+")
_encode = msgspec.json.Encoder().encode


class Sampled(NamedTuple):
    """The customer, the service account and the time that a sample is made for."""

    customer_id: int
    service_account_id: int | None
    at: datetime


class EventType(msgspec.Struct, Generic[Payload], frozen=True):
    """A type of event. Its payload is a struct with an `event` member, which holds the name.

    `sample` makes a payload without anything in the database. Raises ValueError for a name that is not like `thing.happened`, and for a
    payload without an `event` member.
    """

    name: str
    summary: str  # what happened: "An order was placed"
    description: str  # for receivers: how often it is sent, and how to recognise duplicates
    payload: type[Payload]
    sample: Callable[[Sampled], Payload]
    # Whether `line_events` has the same event, named without "gift."; `verify` compares them.
    follows_line: bool = False

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"an event is called thing.happened, not {self.name!r}")
        if "event" not in self.payload.__struct_fields__:
            raise ValueError(f"{self.payload.__name__} lacks the member `event`")

    @property
    def operation_id(self) -> str:
        """The name of the event in the OpenAPI document: `orderCreated`."""
        first, *more = re.split(r"[._]", self.name)
        return first + "".join(word.capitalize() for word in more)

    @property
    def shape(self) -> str:
        """The name of the payload's schema in the OpenAPI document."""
        return self.payload.__name__

    def body(self, payload: Payload) -> bytes:
        """Returns a payload as JSON: the bytes that receivers get and that the signature covers."""
        return _encode(payload)

    def sample_body(self, sampled: Sampled) -> bytes:
        """Returns the body of a sample."""
        return self.body(self.sample(sampled))


Int64 = Annotated[int, Meta(extra_json_schema={"format": "int64"})]
EventId = Annotated[
    str, Meta(description="Stable per event; a deduplication key", examples=["evt_9f86d081884c7d659a2feaa0"])
]
_SAMPLE_ID = "evt_000000000000000000000000"
_ORDER_CREATED_NAME = "order.created"
_GIFT_SENT_NAME = "gift.sent"
_ACCOUNT_LOW_NAME = "account.low"


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


def _order_sample(sampled: Sampled) -> OrderRecord:
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
    sample=_order_sample,
)


class GiftEvent(msgspec.Struct, kw_only=True, rename="camel"):
    """What happened to one gift of an order."""

    id: EventId
    event: Annotated[str, Meta(description="The name of the event", examples=[_GIFT_SENT_NAME])]
    reference: Annotated[str, Meta(description="The order's opaque key")]
    customer_id: Annotated[Int64, Meta(description="Whose order it is")]
    number: Annotated[int, Meta(description="Counts the order's lines from 1")]
    recipient: Annotated[str, Meta(description="The recipient's address; null in a code batch")] | None
    occurred_at: Annotated[datetime, Meta(tz=True, description="When it happened")]


def _gift_event(name: str, summary: str, description: str, *, follows_line: bool = True) -> EventType[GiftEvent]:
    def sample(sampled: Sampled) -> GiftEvent:
        return GiftEvent(
            id=_SAMPLE_ID,
            event=name,
            reference="00000000000000000000",
            customer_id=sampled.customer_id,
            number=1,
            recipient="recipient@example.com",
            occurred_at=sampled.at,
        )

    described = f"{description} `id` tells duplicates apart."
    return EventType(name, summary, described, GiftEvent, sample, follows_line)


GIFT_SENT = _gift_event(
    _GIFT_SENT_NAME,
    "A gift's mail was sent",
    "The mail server accepted the mail. Once for each mail, so again when it is sent again.",
    follows_line=False,
)
GIFT_BOUNCED = _gift_event(
    "gift.bounced",
    "A gift's mail could not be delivered",
    "The mail server refused the mail for good, or did not take it in three days. Once for each mail.",
    follows_line=False,
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
    "Once for each gift: it was claimed and its time then ended, its recipient was erased before the parcel was sent, or nobody had claimed it by "
    "the order's claim-by date. In the last case `gift.cancelled` follows, as it is refunded.",
)

GIFT_EVENTS = (GIFT_SENT, GIFT_BOUNCED, GIFT_OPENED, GIFT_CLAIMED, GIFT_FULFILLED, GIFT_CANCELLED, GIFT_EXPIRED)


class AccountLow(msgspec.Struct, kw_only=True, rename="camel"):
    """A funding account with a low balance."""

    id: EventId
    event: Annotated[str, Meta(description="The name of the event", examples=[_ACCOUNT_LOW_NAME])]
    customer_id: Annotated[Int64, Meta(description="Whose account it is")]
    account_id: Annotated[int, Meta(description="The account, as in `GET /funding-accounts`")]
    account_name: Annotated[str, Meta(description="Its name")]
    currency: Annotated[str, Meta(description="ISO currency code", examples=["GBP"])]
    balance: Annotated[float, Meta(description="What it held then")]
    below: Annotated[float, Meta(description="The amount that was set for it")]
    occurred_at: Annotated[datetime, Meta(tz=True, description="When it was noticed, some seconds after it fell")]


def _account_sample(sampled: Sampled) -> AccountLow:
    return AccountLow(
        id=_SAMPLE_ID,
        event=_ACCOUNT_LOW_NAME,
        customer_id=sampled.customer_id,
        account_id=1,
        account_name="Acme float",
        currency="GBP",
        balance=40.0,
        below=50.0,
        occurred_at=sampled.at,
    )


ACCOUNT_LOW = EventType(
    _ACCOUNT_LOW_NAME,
    "A funding account is low",
    "Once each time an account falls below the amount that people set for it. `id` tells duplicates apart.",
    AccountLow,
    _account_sample,
)

_ALL: tuple[EventType[Any], ...] = (ORDER_CREATED, *GIFT_EVENTS, ACCOUNT_LOW)
EVENTS: Mapping[str, EventType[Any]] = MappingProxyType({event.name: event for event in _ALL})
