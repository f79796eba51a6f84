from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from largesse.lines.attempts import Allowance, Failures, read_typed_code, read_typed_pin
from largesse.lines.codes import format_code
from largesse.lines.states import MOVES, State, expiry

NOW = datetime(2030, 1, 2, 9, tzinfo=UTC)
NONE = Failures()


def after(count: int, failures: Failures = NONE, now: datetime = NOW) -> Failures:
    for _ in range(count):
        failures = failures.with_one_more(now)
    return failures


def test_the_fifth_failure_pauses_and_the_fourth_does_not() -> None:
    assert not after(4).is_paused(NOW)
    paused = after(5)
    assert paused.is_paused(NOW)
    assert paused.paused_until == NOW + timedelta(minutes=15)
    assert not paused.is_paused(NOW + timedelta(minutes=15))
    assert after(4, paused).paused_until == paused.paused_until, "counted from the first again"
    assert after(5, paused).paused_until == NOW + timedelta(minutes=30)


def test_each_pause_is_twice_the_last_up_to_a_day() -> None:
    failures, now, pauses = Failures(), NOW, []
    for _ in range(12):
        failures = after(5, failures, now)
        pauses.append(failures.paused_until - now)
        now = failures.paused_until
    assert pauses[:4] == [timedelta(minutes=minutes) for minutes in (15, 30, 60, 120)]
    assert pauses[6:] == [timedelta(hours=16), *[timedelta(days=1)] * 5]


@given(st.integers(1, 400))
def test_an_allowance_refills_to_what_it_was_and_no_further(minutes: int) -> None:
    empty = Allowance(0.0, NOW)
    later = NOW + timedelta(minutes=minutes)
    assert empty.now_left(later) == pytest.approx(min(100.0, 100 * minutes / 15))


def test_an_empty_allowance_waits_for_the_next_attempt_alone() -> None:
    wait = Allowance(0.0, NOW).wait(NOW)
    assert abs(wait - timedelta(seconds=9)) < timedelta(milliseconds=1)
    assert Allowance(0.0, NOW).wait(NOW + wait) == timedelta(0)
    assert Allowance().wait(NOW) == timedelta(0)


@pytest.mark.parametrize(
    ("typed", "pin"),
    [
        ("123456", "123456"),
        (" 123 456 ", "123456"),
        ("123-456", "123456"),
        ("\N{FULLWIDTH DIGIT ONE}23456", "123456"),
        ("\N{ARABIC-INDIC DIGIT ONE}23456", "123456"),
        ("12345", "12345"),
        ("", ""),
        ("1" * 500, "1" * 64),
    ],
)
def test_a_pin_as_people_type_it(typed: str, pin: str) -> None:
    assert read_typed_pin(typed) == pin


@given(st.text(max_size=300))
def test_whatever_is_typed_is_a_code_or_none(text: str) -> None:
    code = read_typed_code(text)
    assert code is None or len(code) == 10
    assert isinstance(read_typed_pin(text), str)


def test_lines_only_move_forwards() -> None:
    def reach(state: State) -> set[State]:
        return {state}.union(*(reach(following) for following in MOVES[state]))

    for state in State:
        for following in MOVES[state]:
            assert state not in reach(following)
    assert reach(State.ISSUED) == set(State)


def test_expiry_is_the_orders_else_the_installations_else_never() -> None:
    assert expiry(NOW, 30, 365) == NOW + timedelta(days=30)
    assert expiry(NOW, None, 365) == NOW + timedelta(days=365)
    assert expiry(NOW, None, 0) is None


@pytest.mark.parametrize("mark", ["", " ", "-", "\N{EN DASH}", "\N{NON-BREAKING HYPHEN}", "_", ".", "\u200b"])
def test_what_stands_between_the_characters_of_a_code_is_all_the_same(mark: str) -> None:
    code = bytes(range(10))
    assert read_typed_code(mark + mark.join(format_code(code).split("-")) + mark) == code
