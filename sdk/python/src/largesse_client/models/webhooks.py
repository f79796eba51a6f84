"""Webhook subscriptions and their deliveries."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from largesse_client.models.opening import Shape, Word


class Subscription(Shape, frozen=True, kw_only=True):
    """A subscription in a list. `event` is None if it has several `events`."""

    id: UUID
    event: str | None
    target_url: str | None
    creation_date: datetime
    events: tuple[str, ...] = ()


class NewSubscription(Shape, frozen=True, kw_only=True):
    """A new subscription. `event` is None if it has several `events`. `secret` is shown only here, and not in the repr."""

    id: UUID
    event: str | None
    target_url: str | None
    secret: str
    events: tuple[str, ...] = ()

    def __repr__(self) -> str:
        named = f"event={self.event!r}" if self.event is not None else f"events={self.events!r}"
        return f"NewSubscription(id={self.id!r}, {named}, target_url={self.target_url!r}, secret=…)"


class RotatedSecret(Shape, frozen=True, kw_only=True):
    """The new secret of a subscription, which is shown only here, and not in the repr. Until `previous_until`, the old one signs too."""

    id: UUID
    secret: str
    previous_until: datetime

    def __repr__(self) -> str:
        return f"RotatedSecret(id={self.id!r}, secret=…, previous_until={self.previous_until!r})"


class DeliveryState(Word):
    """The state of a delivery."""

    PENDING = "pending"
    DELIVERED = "delivered"
    DROPPED = "dropped"
    EXHAUSTED = "exhausted"
    CANCELLED = "cancelled"


class Attempt(Shape, frozen=True, kw_only=True):
    """An attempt, with the `status` of the receiver, or the `error` if there was none."""

    number: int
    started_at: datetime
    duration_ms: int
    status: int | None
    error: str | None
    answer: str | None


class Delivery(Shape, frozen=True, kw_only=True):
    """A delivery of an event to a subscription. `order_id` is None for a sample."""

    id: int
    event: str
    order_id: int | None
    state: DeliveryState
    attempts: tuple[Attempt, ...]
    attempts_left: int
    next_attempt_at: datetime | None
    created_at: datetime
    finished_at: datetime | None
