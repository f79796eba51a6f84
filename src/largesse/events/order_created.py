"""`order.created`: an order was placed. Its payload is the order record, which `GET /orders` lists too."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from largesse.events.kind import EventType, Sampled

_Int64 = Annotated[int, Meta(extra_json_schema={"format": "int64"})]
_NAME = "order.created"


class OrderRecord(msgspec.Struct, rename="camel"):
    """An order as GET /orders lists it and the order.created event tells it."""

    id: Annotated[int, Meta(description="Stable per order; a deduplication key")]
    event: Annotated[str, Meta(description="The name of the event", examples=[_NAME])] | None
    reference: Annotated[str, Meta(description="Opaque, non-sequential public order key")] | None
    customer_id: Annotated[_Int64, Meta(description="Whose order it is")]
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
    created_by: Annotated[_Int64, Meta(description="The service account")] | None
    creation_date: Annotated[datetime, Meta(tz=True, description="When it was placed")]


def _sample(sampled: Sampled) -> OrderRecord:
    """An order record that is no order's: its id is 0."""
    return OrderRecord(
        id=0,
        event=_NAME,
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
    _NAME,
    summary="An order was placed",
    description="Once for each order, also when it is to be delivered later. `id` tells duplicates apart; that of a sample is 0.",
    payload=OrderRecord,
    sample=_sample,
)
