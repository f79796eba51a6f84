from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from largesse.jobs.job_loop import Schedule

SCHEDULE = Schedule(first_s=4, factor=4, cap_s=21_600)
MIDDLES = [4, 16, 64, 256, 1024, 4096, 16_384, 21_600, 21_600]


@given(st.integers(min_value=1, max_value=1000))
def test_a_delay_is_within_20_percent_of_its_middle_and_never_over_the_cap(failures: int) -> None:
    middle = MIDDLES[min(failures, len(MIDDLES)) - 1]
    assert 0.8 * middle <= SCHEDULE.delay_s(failures) <= min(1.2 * middle, 21_600)


def test_the_jitter_reaches_both_ends() -> None:
    assert SCHEDULE.delay_s(2, draw=min) == 0.8 * 16
    assert SCHEDULE.delay_s(2, draw=max) == 1.2 * 16
    assert SCHEDULE.delay_s(12, draw=min) == 0.8 * 21_600
    assert SCHEDULE.delay_s(12, draw=max) == 21_600


@given(st.integers(min_value=1, max_value=12), st.floats(min_value=0, max_value=1e12))
def test_what_the_other_side_asks_for_is_honoured_up_to_the_cap(failures: int, asked_s: float) -> None:
    delay_s = SCHEDULE.delay_s(failures, at_least_s=asked_s)
    assert min(asked_s, 21_600) <= delay_s <= 21_600
