"""Subscriptions, and what was delivered to them."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from largesse_client.models.opening import Shape, Word


class Subscription(Shape, frozen=True, kw_only=True):
    """A subscription, as lists show it. `event` is None where it names several `events`."""

    id: UUID
    event: str | None
    target_url: str | None
    creation_date: datetime
    events: tuple[str, ...] = ()


class NewSubscription(Shape, frozen=True, kw_only=True):
    """A subscription just made. `event` is None where it names several `events`. `secret` is shown this once; the repr leaves it out."""

    id: UUID
    event: str | None
    target_url: str | None
    secret: str
    events: tuple[str, ...] = ()

    def __repr__(self) -> str:
        named = f"event={self.event!r}" if self.event is not None else f"events={self.events!r}"
        return f"NewSubscription(id={self.id!r}, {named}, target_url={self.target_url!r}, secret=…)"


class RotatedSecret(Shape, frozen=True, kw_only=True):
    """The new secret of a subscription, shown this once; until `previous_until` the one before signs too. The repr leaves it out."""

    id: UUID
    secret: str
    previous_until: datetime

    def __repr__(self) -> str:
        return f"RotatedSecret(id={self.id!r}, secret=…, previous_until={self.previous_until!r})"


class DeliveryState(Word):
    """How a delivery is doing."""

    PENDING = "pending"
    DELIVERED = "delivered"
    DROPPED = "dropped"
    EXHAUSTED = "exhausted"
    CANCELLED = "cancelled"


class Attempt(Shape, frozen=True, kw_only=True):
    """One attempt: the receiver's `status`, or in `error` why there was none."""

    number: int
    started_at: datetime
    duration_ms: int
    status: int | None
    error: str | None
    answer: str | None


class Delivery(Shape, frozen=True, kw_only=True):
    """One event on its way to a subscription; `order_id` is None for a sample."""

    id: int
    event: str
    order_id: int | None
    state: DeliveryState
    attempts: tuple[Attempt, ...]
    attempts_left: int
    next_attempt_at: datetime | None
    created_at: datetime
    finished_at: datetime | None
