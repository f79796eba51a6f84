"""Events of gifts and accounts, and the stream of all events."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import msgspec

from largesse_client.models.opening import Shape
from largesse_client.models.orders import OrderRecord


class GiftEvent(Shape, frozen=True, kw_only=True):
    """What happened to one gift of an order, such as `gift.claimed`. Duplicates have the same `id`."""

    id: str
    event: str
    reference: str
    customer_id: int
    number: int
    recipient: str | None
    occurred_at: datetime


class AccountLow(Shape, frozen=True, kw_only=True):
    """A funding account has fallen `below` the amount that was set for it. Duplicates have the same `id`."""

    id: str
    event: str
    customer_id: int
    account_id: int
    account_name: str
    currency: str
    balance: Decimal
    below: Decimal
    occurred_at: datetime


class StreamedEvent(Shape, frozen=True, kw_only=True):
    """An event of the stream. `data` is the payload as JSON; `order`, `gift` and `account` read it."""

    cursor: str
    event: str
    creation_date: datetime
    data: msgspec.Raw

    @property
    def order(self) -> OrderRecord:
        """The order that `order.created` is about. Raises msgspec.DecodeError for another event."""
        return msgspec.json.decode(self.data, type=OrderRecord)

    @property
    def gift(self) -> GiftEvent:
        """The gift that an event such as `gift.claimed` is about. Raises msgspec.DecodeError for another event."""
        return msgspec.json.decode(self.data, type=GiftEvent)

    @property
    def account(self) -> AccountLow:
        """The account that `account.low` is about. Raises msgspec.DecodeError for another event."""
        return msgspec.json.decode(self.data, type=AccountLow)
