"""How an order stands, and what it adds to the sums: without a database."""

from datetime import UTC, date, datetime, timedelta

import pytest
from msgspec.structs import replace

from largesse.reports.sums import Moves, OrderState, OrderSummary, Sums, add_changes, ended_at, state_of

PLACED = datetime(2030, 1, 31, 23, 30, tzinfo=UTC)
DAY, NEXT = date(2030, 1, 31), date(2030, 2, 1)
FRESH = OrderSummary(
    customer_id=1,
    group_id=2,
    state="waiting",
    created_at=PLACED,
    codes=4,
    spent_minor=2_000,
    claims={},
    cancellations={},
    refunds={},
    ages=(0, 0, 0, 0, 0),
)
ASKED = replace(FRESH, claims={NEXT: 2}, ages=(1, 1, 0, 0, 0))


@pytest.mark.parametrize(
    ("claimed", "cancelled", "is_scheduled", "bounced", "state"),
    [
        (0, 0, False, 0, OrderState.WAITING),
        (3, 0, False, 0, OrderState.WAITING),
        (3, 0, False, 1, OrderState.BOUNCED),
        (0, 0, True, 0, OrderState.SCHEDULED),
        (0, 0, True, 1, OrderState.SCHEDULED),
        (4, 0, False, 1, OrderState.CLAIMED),
        (3, 1, False, 1, OrderState.CLAIMED),
        (0, 4, True, 1, OrderState.CANCELLED),
    ],
)
def test_the_state_tells_what_there_is_to_do(
    claimed: int, cancelled: int, is_scheduled: bool, bounced: int, state: OrderState
) -> None:
    told = state_of(codes=4, claimed=claimed, cancelled=cancelled, is_scheduled=is_scheduled, bounced=bounced)
    assert told is state


def test_a_new_order_counts_on_its_day_and_in_its_month() -> None:
    changes = add_changes([(None, FRESH)])
    spent = Sums(orders=1, codes=4, spent_minor=2_000)
    assert changes == {(1, "day", DAY, 2, "waiting"): spent, (1, "month", date(2030, 1, 1), 2, "waiting"): spent}


def test_a_claim_counts_on_its_own_day_and_its_age_on_the_orders() -> None:
    changes = add_changes([(FRESH, ASKED)])
    claimed = Sums(claimed=2, claimed_minor=1_000)
    aged = Sums(within_hour=1, within_day=1)
    assert changes == {
        (1, "day", DAY, 2, "waiting"): aged,
        (1, "day", NEXT, 2, "waiting"): claimed,
        (1, "month", date(2030, 1, 1), 2, "waiting"): aged,
        (1, "month", date(2030, 2, 1), 2, "waiting"): claimed,
    }


def test_an_order_whose_state_changes_takes_all_of_it_along() -> None:
    done = replace(ASKED, state="claimed", cancellations={NEXT: 2})
    changes = add_changes([(ASKED, done)])
    assert changes[1, "day", DAY, 2, "waiting"].orders == -1
    assert changes[1, "day", DAY, 2, "claimed"].orders == 1
    assert changes[1, "day", NEXT, 2, "claimed"] == Sums(
        claimed=2, claimed_minor=1_000, cancelled=2, refunded_minor=1_000
    )


def test_a_refund_by_correction_counts_on_its_own_day() -> None:
    changes = add_changes([(ASKED, replace(ASKED, refunds={NEXT: 300}))])
    refunded = Sums(refunded_minor=300)
    assert changes == {(1, "day", NEXT, 2, "waiting"): refunded, (1, "month", date(2030, 2, 1), 2, "waiting"): refunded}


def test_looking_twice_adds_nothing() -> None:
    assert add_changes([(ASKED, ASKED)]) == {}
    assert add_changes([(FRESH, ASKED), (ASKED, FRESH)]) == {}
    assert add_changes([(None, FRESH), (FRESH, None)]) == {}


def test_moves_are_counted_by_what_they_were() -> None:
    moves = Moves()
    for event, age, count in [("claimed", 0, 2), ("claimed", 4, 1), ("fulfilled", 0, 2), ("expired", 4, 1)]:
        moves.add(event, DAY, age, count, PLACED)
    moves.add("cancelled", NEXT, 4, 3, PLACED)
    assert (dict(moves.claims), dict(moves.cancellations)) == ({DAY: 3}, {NEXT: 3})
    assert (moves.ages, moves.fulfilled, moves.expired) == ([2, 0, 0, 0, 1], 2, 1)


def test_an_order_ends_with_the_last_of_its_codes() -> None:
    ends = [PLACED + timedelta(hours=hours) for hours in (5, 2, 3, 1)]
    moves = Moves()
    assert ended_at(3, moves) is None
    for event, at in zip(("fulfilled", "claimed", "expired", "cancelled"), ends, strict=True):
        moves.add(event, DAY, 0, 1, at)
    assert (ended_at(3, moves), ended_at(4, moves)) == (ends[0], None)
