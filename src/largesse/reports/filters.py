"""Which orders somebody wants to see, and from where on."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import date, datetime
from typing import NamedTuple

from largesse.reports.standing import OrderState


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFilter:
    """What orders must have in common; None for whatever it is, 0 for none."""

    currency: str | None = None
    source: str | None = None
    product_id: int | None = None
    collection_id: int | None = None
    account_id: int | None = None
    service_account_id: int | None = None
    user_id: int | None = None

    @property
    def said(self) -> dict[str, str | int]:
        """What of it was said, by the name of the column in `report_groups`."""
        return {
            field.name: value for field in fields(self) if (value := getattr(self, field.name)) is not None
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderFilter:
    """Which orders of a customer and environment. Days are of UTC, both included."""

    customer_id: int
    environment: str
    group: GroupFilter = GroupFilter()
    states: tuple[OrderState, ...] = ()  # none: whatever it is
    since: date | None = None
    until: date | None = None
    search: str = ""  # each of its words must be found in the order


class Place(NamedTuple):
    """Where an order stands in lists: the newest come first, and of those of one instant the last."""

    created_at: datetime
    order_id: int
