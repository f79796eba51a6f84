"""Subscriptions, and what was delivered to them."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from largesse_client.models.opening import Shape, Word


class Subscription(Shape, frozen=True, kw_only=True):
    """A subscription, as lists show it."""

    id: UUID
    event: str | None
    target_url: str | None
    creation_date: datetime


class NewSubscription(Shape, frozen=True, kw_only=True):
    """A subscription just made. `secret` is shown this once, and its repr does not tell it."""

    id: UUID
    event: str | None
    target_url: str | None
    secret: str

    def __repr__(self) -> str:
        return f"NewSubscription(id={self.id!r}, event={self.event!r}, target_url={self.target_url!r}, secret=…)"


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
