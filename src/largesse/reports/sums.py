"""The state of an order in lists and reports, and what it adds to the sums: pure rules, without a database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from enum import StrEnum

import msgspec

HOUR_S, DAY_S = 3_600, 86_400
# Claims are counted by their delay after the order was sent; past the last limit they count as `later`.
AGES_S = (HOUR_S, DAY_S, 7 * DAY_S, 30 * DAY_S)


class OrderState(StrEnum):
    """The state of an order in lists."""

    SCHEDULED = "scheduled"
    """Its mail leaves later."""

    BOUNCED = "bounced"
    """Some of its mail was refused, and some of its codes are unclaimed."""

    WAITING = "waiting"
    """Some of its codes are unclaimed."""

    CLAIMED = "claimed"
    """Every code was claimed or cancelled, and at least one was claimed."""

    CANCELLED = "cancelled"
    """Every code was cancelled."""


class Sums(msgspec.Struct):
    """The sums of orders: the columns of `report_sums`. Amounts are in minor units."""

    orders: int = 0
    codes: int = 0
    spent_minor: int = 0
    claimed: int = 0
    claimed_minor: int = 0
    cancelled: int = 0
    refunded_minor: int = 0
    within_hour: int = 0
    within_day: int = 0
    within_week: int = 0
    within_month: int = 0
    later: int = 0

    def add(self, other: Sums, times: int = 1) -> None:
        """Adds the other sums, multiplied by `times`."""
        for name in SUMS:
            if added := getattr(other, name):  # most are 0
                setattr(self, name, getattr(self, name) + times * added)

    @property
    def net_minor(self) -> int:
        """The amount spent: payments without refunds."""
        return self.spent_minor - self.refunded_minor

    @property
    def is_zero(self) -> bool:
        """Whether they add nothing."""
        return not any(getattr(self, name) for name in SUMS)


SUMS = Sums.__struct_fields__
AGE_SUMS = SUMS[-len(AGES_S) - 1 :]


class OrderSummary(msgspec.Struct, frozen=True):
    """The state of an order: a row of `report_orders` without the fulfilment of its codes, which is in no sum."""

    customer_id: int
    group_id: int
    state: str
    created_at: datetime
    codes: int
    spent_minor: int
    claims: Mapping[date, int]  # the number of codes by day, in UTC
    cancellations: Mapping[date, int]
    refunds: Mapping[date, int]  # the refunds by corrections by day, in minor units
    ages: tuple[int, ...]  # the number of codes for each claim delay of AGES_S, and later


# The key of a row of `report_sums`: customer, grain, its first day, group, state.
SumsKey = tuple[int, str, date, int, str]


class Moves(msgspec.Struct):
    """What happened to the codes of an order: the number of codes by day."""

    claims: dict[date, int] = msgspec.field(default_factory=lambda: defaultdict(int))
    cancellations: dict[date, int] = msgspec.field(default_factory=lambda: defaultdict(int))
    ages: list[int] = msgspec.field(default_factory=lambda: [0] * len(AGE_SUMS))
    fulfilled: int = 0
    expired: int = 0
    last_at: datetime | None = None

    def add(self, event: str, day: date, age: int, count: int, last_at: datetime) -> None:
        """Adds an event of `count` codes on a day. `age` is the index of their delay in AGE_SUMS, `last_at` the time of the last one."""
        self.last_at = last_at if self.last_at is None else max(self.last_at, last_at)
        if event == "claimed":
            self.claims[day] += count
            self.ages[age] += count
        elif event == "cancelled":
            self.cancellations[day] += count
        elif event == "fulfilled":
            self.fulfilled += count
        elif event == "expired":
            self.expired += count


def ended_at(codes: int, moves: Moves) -> datetime | None:
    """Returns when an order with that many codes was finished, so that nothing more can happen to them; None if it is not finished."""
    ended = moves.fulfilled + moves.expired + sum(moves.cancellations.values())
    return moves.last_at if ended == codes else None


def state_of(*, codes: int, claimed: int, cancelled: int, is_scheduled: bool, bounced: int) -> OrderState:
    """Returns the state of an order, from the numbers of its codes and of its recipients with refused mail (`bounced`)."""
    if cancelled == codes:
        return OrderState.CANCELLED
    if claimed + cancelled == codes:
        return OrderState.CLAIMED
    if is_scheduled:
        return OrderState.SCHEDULED
    return OrderState.BOUNCED if bounced else OrderState.WAITING


def add_changes(changed: Iterable[tuple[OrderSummary | None, OrderSummary | None]]) -> dict[SumsKey, Sums]:
    """Returns what to add to the sums for changed orders. Each is given by its state before and now; None if there was no order."""
    changes: dict[SumsKey, Sums] = defaultdict(Sums)
    for before, after in changed:
        if before == after:
            continue
        for standing, times in ((before, -1), (after, 1)):
            if standing is None:
                continue
            for day, sums in _by_day(standing).items():
                for grain, first in (("day", day), ("month", day.replace(day=1))):
                    key = (standing.customer_id, grain, first, standing.group_id, standing.state)
                    changes[key].add(sums, times)
    return {key: sums for key, sums in changes.items() if not sums.is_zero}


def _by_day(standing: OrderSummary) -> dict[date, Sums]:
    """Returns the values that an order adds to the sums, by day in UTC."""
    days: dict[date, Sums] = defaultdict(Sums)
    placed = days[standing.created_at.date()]
    placed.orders, placed.codes, placed.spent_minor = 1, standing.codes, standing.spent_minor
    for name, count in zip(AGE_SUMS, standing.ages, strict=True):
        setattr(placed, name, count)
    code_minor = standing.spent_minor // standing.codes
    for day, count in standing.claims.items():
        days[day].claimed += count
        days[day].claimed_minor += count * code_minor
    for day, count in standing.cancellations.items():
        days[day].cancelled += count
        days[day].refunded_minor += count * code_minor
    for day, amount_minor in standing.refunds.items():
        days[day].refunded_minor += amount_minor
    return days
