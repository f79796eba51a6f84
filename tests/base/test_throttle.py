"""Allowances and turns, and what counts as one network address."""

import asyncio

import pytest

from largesse.base.errors import TooManyRequests
from largesse.base.throttle import Pacer, Rate, Throttle, Waits, network_of


class Watch:
    """A clock that stands still until told to go on."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def watch() -> Watch:
    return Watch()


def test_an_allowance_is_used_up_and_refills_steadily(watch: Watch) -> None:
    throttle = Throttle[str](Rate(3, 60.0), now_s=watch)
    assert [throttle.take("a") for _ in range(4)] == [0, 0, 0, 20]
    watch.now_s += 5
    assert throttle.take("a") == pytest.approx(15)  # and asking takes nothing
    watch.now_s += 15
    assert [throttle.take("a"), throttle.take("a")] == [0, 20]


def test_an_allowance_never_grows_past_its_size(watch: Watch) -> None:
    throttle = Throttle[str](Rate(2, 60.0), now_s=watch)
    throttle.take("a")
    watch.now_s += 86_400
    assert [throttle.take("a") for _ in range(3)] == [0, 0, 30]


def test_each_key_has_its_own(watch: Watch) -> None:
    throttle = Throttle[str](Rate(1, 60.0), now_s=watch)
    assert [throttle.take("a"), throttle.take("b"), throttle.take("a")] == [0, 0, 60]


def test_asking_for_the_wait_takes_nothing(watch: Watch) -> None:
    throttle = Throttle[str](Rate(1, 60.0), now_s=watch)
    assert [throttle.wait_s("a"), throttle.wait_s("a"), throttle.take("a"), throttle.wait_s("a")] == [0, 0, 0, 60]


def test_those_untouched_for_longest_are_forgotten_first(watch: Watch) -> None:
    throttle = Throttle[int](Rate(2, 3600.0), remembered=10, now_s=watch)
    for key in range(10):
        throttle.take(key)
    throttle.take(0)  # used up, and now the latest
    throttle.take(10)
    assert len(throttle) == 10
    assert [throttle.wait_s(key) > 0 for key in (0, 1)] == [True, False]
    assert throttle.take(1) == 0
    assert throttle.take(1) == 0  # whole again, since forgotten
    for key in range(1_000):
        throttle.take(key)
        assert len(throttle) == 10


async def test_turns_come_one_after_another() -> None:
    pacer = Pacer(50)
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    await pacer.turn()
    await asyncio.gather(*(pacer.turn() for _ in range(5)))
    assert loop.time() - began_s >= 0.09


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("", "192.0.2.1", False),
        ("unix:", "other", False),
    ],
)
def test_what_counts_as_one_address(one: str, other: str, same: bool) -> None:
    assert (network_of(one) == network_of(other)) is same


def test_spending_says_what_was_too_much() -> None:
    throttle: Throttle[str] = Throttle(Rate(1, 60.0), now_s=lambda: 0.0)
    throttle.spend("a", "One is enough.")
    with pytest.raises(TooManyRequests, match="One is enough") as refused:
        throttle.spend("a", "One is enough.")
    assert refused.value.retry_after_s == 60.0
    throttle.spend("b", "One is enough.")


def test_who_was_told_to_wait_waits_until_then() -> None:
    now_s = 100.0
    waits: Waits[str] = Waits(now_s=lambda: now_s)
    assert waits.left_s("a") == 0
    waits.tell("a", 10.0)
    assert (waits.left_s("a"), waits.left_s("b")) == (10.0, 0.0)
    now_s = 109.5
    assert waits.left_s("a") == 0.5
    now_s = 110.0
    assert (waits.left_s("a"), len(waits)) == (0.0, 0)


def test_those_told_first_are_forgotten_first() -> None:
    waits: Waits[int] = Waits(remembered=3, now_s=lambda: 0.0)
    for key in (1, 2, 3, 1, 4):
        waits.tell(key, 10.0)
    assert [waits.left_s(key) for key in (1, 2, 3, 4)] == [10.0, 0.0, 10.0, 10.0]
    assert len(waits) == 3
