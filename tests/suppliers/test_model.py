"""What an answer of a supplier means for an order, to the second and to the last try, and what is wrong with a voucher."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

from largesse.lines.states import LineKey
from largesse.suppliers import model

NOW = datetime(2040, 5, 10, 12, tzinfo=UTC)
POLICY = model.RetryPolicy(poll_s=15.0, unknown_after_s=60.0, give_up_after_s=100.0, failures=3)
LINE = model.SupplierLine("our-id", "coffee", 10_00, "GBP", "GB")
VOUCHER = model.Bought("our-id", "1234", "99", None, 9_00, "GBP")
ASKED, PENDING, CANCELLING, LATE = model.State.ASKED, model.State.PENDING, model.State.CANCELLING, model.State.LATE
LOST, CANCELLED, REFUSED, NEW = model.State.LOST, model.State.CANCELLED, model.State.REFUSED, model.State.NEW
DOWN, AWAY = model.SupplierFailed("timeout"), model.SupplierFailed("connect", arrived=False)
BAD = model.SupplierFailed(model.TWICE)


def order(state: model.State, *, age_s: float = 0, asked_s: float | None = None, **values: Any) -> model.SupplierOrder:
    """An order that was made, and asked for, so many seconds ago."""
    asked_at = None if asked_s is None else NOW - timedelta(seconds=asked_s)
    usual: dict[str, Any] = {"failures": 0, "reason": None, **values}
    return model.SupplierOrder(
        1, 1, 1, state, LineKey(1, 1, 1), "cards", 1, 1, LINE, NOW - timedelta(seconds=age_s), asked_at, **usual
    )


@pytest.mark.parametrize(
    ("given", "answer", "expected"),
    [
        (order(NEW), VOUCHER, model.Outcome(model.State.DELIVERED, None, bought=VOUCHER)),
        (order(CANCELLING), VOUCHER, model.Outcome(model.State.DELIVERED, None, bought=VOUCHER)),
        (order(NEW), model.Refused(), model.Outcome(REFUSED, None, reason="refused")),
        (order(PENDING), model.Cancelled(), model.Outcome(CANCELLED, model.WATCH_S[0], reason="cancelled_there")),
        # An order that is not there is lost once its call cannot be on its way any more.
        (order(NEW), model.Unknown(), model.Outcome(ASKED, 15.0)),
        (order(ASKED, asked_s=59.9, reason="r"), model.Unknown(), model.Outcome(ASKED, 15.0, reason="r")),
        (order(ASKED, asked_s=60.0), model.Unknown(), model.Outcome(LOST, model.WATCH_S[0], reason="not_there")),
        (order(PENDING), model.Unknown(), model.Outcome(LOST, model.WATCH_S[0], reason="not_there")),
        # One that takes too long is cancelled, unless it cannot be.
        (order(ASKED, age_s=99.9), model.Pending(), model.Outcome(PENDING, 15.0)),
        (order(ASKED, age_s=100.0), model.Pending(), model.Outcome(CANCELLING, 0.0, reason="too_slow")),
        (order(PENDING, age_s=999.0, reason=model.NOT_CANCELLABLE), model.Pending(), model.Outcome(PENDING, 15.0, reason=model.NOT_CANCELLABLE)),
        (order(PENDING, age_s=999.0), model.NotCancellable(), model.Outcome(ASKED, 15.0)),
        # Without a clear answer: what certainly did not arrive is asked again, what may have is polled.
        (order(NEW), AWAY, model.Outcome(NEW, 2.0, 1, "connect")),
        (order(NEW, failures=1), AWAY, model.Outcome(NEW, 4.0, 2, "connect")),
        (order(NEW, failures=2), AWAY, model.Outcome(REFUSED, None, 3, "unreachable")),
        (order(NEW), DOWN, model.Outcome(ASKED, 2.0, 0, "timeout")),
        (order(ASKED, failures=9), DOWN, model.Outcome(ASKED, 900.0, 10, "timeout")),
        (order(PENDING, failures=2, reason="r"), DOWN, model.Outcome(PENDING, 8.0, 3, "r")),
        # A voucher that cannot be used is asked for again, then cancelled, and never paid for twice knowingly.
        (order(PENDING, failures=1), BAD, model.Outcome(PENDING, 4.0, 2, model.TWICE)),
        (order(PENDING, failures=2), BAD, model.Outcome(CANCELLING, 0.0, reason=model.TWICE)),
        (order(PENDING, failures=2), model.SupplierFailed("other_value"), model.Outcome(CANCELLING, 0.0, reason="other_value")),
        (order(PENDING, failures=2, reason=model.NOT_CANCELLABLE), BAD, model.Outcome(LOST, model.WATCH_S[0], reason=model.TWICE)),
        (order(CANCELLING, reason="r"), model.Cancelled(), model.Outcome(CANCELLED, model.WATCH_S[0], reason="r")),
        (order(CANCELLING, reason="r"), model.Unknown(), model.Outcome(LOST, model.WATCH_S[0], reason="r")),
        (order(CANCELLING, reason="r"), model.Refused(), model.Outcome(REFUSED, None, reason="refused")),
        (order(CANCELLING, reason="r"), model.NotCancellable(), model.Outcome(PENDING, 15.0, reason=model.NOT_CANCELLABLE)),
        (order(CANCELLING, reason="r"), model.Pending(), model.Outcome(CANCELLING, 2.0, 1, "r")),
        (order(CANCELLING, reason="r", failures=1), DOWN, model.Outcome(CANCELLING, 4.0, 2, "r")),
        # What was given up is looked at a few times more.
        (order(LOST, reason="r"), model.Pending(), model.Outcome(LATE, 0.0, reason="r")),
        (order(CANCELLED, reason="r"), VOUCHER, model.Outcome(LATE, 0.0, reason="r")),
        (order(LOST, reason="r"), BAD, model.Outcome(LATE, 0.0, reason="r")),
        (order(LOST, failures=3, reason="r"), DOWN, model.Outcome(LOST, model.WATCH_S[0], 3, "r")),
        (order(LOST, reason="r"), model.Unknown(), model.Outcome(LOST, model.WATCH_S[1], 1, "r")),
        (order(LOST, failures=3, reason="r"), model.Unknown(), model.Outcome(LOST, model.WATCH_S[4], 4, "r")),
        (order(LOST, failures=4, reason="r"), model.Unknown(), model.Outcome(LOST, None, 5, "r")),
        (order(LATE, reason="r"), model.Cancelled(), model.Outcome(model.State.RETURNED, None, reason="r")),
        (order(LATE, reason="r"), model.Unknown(), model.Outcome(model.State.RETURNED, None, reason="r")),
        (order(LATE, reason="r"), model.Refused(), model.Outcome(model.State.RETURNED, None, reason="r")),
        (order(LATE, reason="r"), VOUCHER, model.Outcome(model.State.KEPT, None, reason="r", bought=VOUCHER)),
        (order(LATE, reason="r", failures=1), BAD, model.Outcome(LATE, 4.0, 2, "r")),
        (order(LATE, reason="r", failures=2), BAD, model.Outcome(model.State.KEPT, None, reason=model.TWICE)),
        (order(LATE, reason="r", failures=2), DOWN, model.Outcome(LATE, 8.0, 3, "r")),
        (order(LATE, reason="r"), model.Pending(), model.Outcome(LATE, 2.0, 1, "r")),
    ],
)  # fmt: skip
def test_what_becomes_of_an_order(
    given: model.SupplierOrder, answer: model.Answer | model.SupplierFailed, expected: model.Outcome
) -> None:
    for pace in (1.0, 0.5):
        outcome = model.judge(given, answer, NOW, replace(POLICY, pace=pace))
        # Some pauses are drawn, a fifth more or less.
        again_s = None if expected.again_s is None else pytest.approx(expected.again_s * pace, rel=0.2)
        assert (outcome.again_s, replace(outcome, again_s=None)) == (again_s, replace(expected, again_s=None))


def test_one_that_was_given_up_goes_on_elsewhere() -> None:
    assert {state for state in model.State if model.Outcome(state, None).goes_on} == {REFUSED, LOST, CANCELLED}


@pytest.mark.parametrize(
    ("supplier", "attempt", "again", "following"),
    [
        ("cards", 1, True, ("cards", 2)),
        ("cards", 2, True, ("cards", 3)),
        ("cards", 3, True, ("other", 1)),
        ("cards", 1, False, ("other", 1)),
        ("stock", 1, False, None),
        ("gone", 1, False, None),
        ("gone", 1, True, ("gone", 2)),
    ],
)
def test_who_is_asked_next(supplier: str, attempt: int, again: bool, following: tuple[str, int] | None) -> None:
    assert model.next_step(["cards", "other", "stock"], supplier, attempt, again=again, attempts=3) == following


def test_each_attempt_has_an_id_of_its_own_and_always_the_same() -> None:
    base = (LineKey(1, 2, 3), "cards", 1, NOW)
    others = [
        (LineKey(1, 2, 4), "cards", 1, NOW),
        (LineKey(1, 2, 3), "other", 1, NOW),
        (LineKey(1, 2, 3), "cards", 2, NOW),
        (LineKey(1, 2, 3), "cards", 1, NOW + timedelta(microseconds=1)),
    ]
    assert len({model.supplier_order_id(*one) for one in (base, base, *others)}) == 5
    assert model.supplier_order_id(*base) == UUID(
        "698bbf6c-cdb0-5724-b49b-67f42efcc939"
    )  # an order under way has this id at the supplier


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({}, None),
        ({"id": "another"}, model.FOREIGN),
        ({"number": ""}, model.MALFORMED),
        ({"number": "1"}, None),
        ({"number": "x" * model.LONGEST_NUMBER}, None),
        ({"number": "x" * (model.LONGEST_NUMBER + 1)}, model.MALFORMED),
        ({"number": "1\n2"}, model.MALFORMED),
        ({"number": " 1"}, model.MALFORMED),
        ({"pin": None}, None),
        ({"pin": ""}, model.MALFORMED),
        ({"pin": "x" * model.LONGEST_NUMBER}, None),
        ({"pin": "x" * (model.LONGEST_NUMBER + 1)}, model.MALFORMED),
        ({"cost_minor": 0}, None),
        ({"cost_minor": -1}, model.MALFORMED),
        ({"cost_minor": model.MOST_COST_MINOR}, None),
        ({"cost_minor": model.MOST_COST_MINOR + 1}, model.MALFORMED),
        ({"cost_minor": None}, model.MALFORMED),
        ({"cost_currency": None}, model.MALFORMED),
        ({"cost_minor": None, "cost_currency": None}, None),
        ({"cost_currency": "GB"}, model.MALFORMED),
        ({"cost_currency": "GBPX"}, model.MALFORMED),
        ({"cost_currency": "G1P"}, model.MALFORMED),
        ({"use_by": date(2026, 3, 1)}, None),
        ({"use_by": date(2026, 2, 28)}, model.EXPIRED),
        ({"use_by": date(2000, 1, 1)}, model.EXPIRED),
        ({"use_by": date(1999, 12, 31)}, None),
        ({"use_by": date(1, 1, 1)}, None),
    ],
)
def test_what_is_wrong_with_a_voucher(changes: dict[str, Any], fault: str | None) -> None:
    assert model.fault_of(replace(VOUCHER, **changes), LINE, date(2026, 3, 1)) == fault


@pytest.mark.parametrize(
    ("said", "last_day"),
    [
        (None, None),
        (date(1, 1, 1), None),
        (date(1970, 1, 1), None),
        (date(1999, 12, 31), None),
        (date(2000, 1, 1), date(2000, 1, 1)),
        (date(9998, 12, 31), date(9998, 12, 31)),
        (date(9999, 12, 31), None),
    ],
)
def test_days_that_stand_for_no_last_day(said: date | None, last_day: date | None) -> None:
    assert model.last_day_of(replace(VOUCHER, use_by=said)) == last_day
