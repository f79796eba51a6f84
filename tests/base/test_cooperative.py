import asyncio

import pytest

from largesse.base import clock
from largesse.base.cooperative import CooperativeRunner, Steps, first_slice
from largesse.base.errors import Unavailable

STEP_S = 0.0004


class Clock:
    """The seconds that passed, by steps and pauses alone, and the pauses."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []


TIME = Clock()
sleep = asyncio.sleep


@pytest.fixture(autouse=True)
def _own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def pause(seconds: float) -> None:
        TIME.pauses.append(seconds)
        TIME.now += seconds
        await sleep(0)

    TIME.now = 0.0
    TIME.pauses.clear()
    monkeypatch.setattr(clock, "passed_s", lambda: TIME.now)
    monkeypatch.setattr(asyncio, "sleep", pause)


def steps(count: int, result: str = "done") -> Steps[str]:
    for _ in range(count):
        TIME.now += STEP_S
        yield
    return result


async def test_a_short_computation_needs_one_slice_and_a_long_one_goes_on_where_it_was_left() -> None:
    assert first_slice(steps(0)) == "done"
    long = steps(100)
    assert first_slice(long) is None
    assert await CooperativeRunner().finish("a", long) == "done"


async def test_others_get_their_turn_between_slices_and_half_of_the_time() -> None:
    """The other counts how often the loop comes round to it; all but the steps is left to it."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await sleep(0)

    task = asyncio.create_task(other())
    slices = CooperativeRunner()
    await asyncio.gather(*(slices.finish(key, steps(300)) for key in "abcd"))
    task.cancel()
    assert turns > 4 * 300 * STEP_S / 0.002
    assert TIME.now > 2 * 4 * 300 * STEP_S


async def test_one_of_a_key_at_a_time_and_keys_together() -> None:
    slices = CooperativeRunner()
    ends: list[str] = []

    async def finish(key: str, count: int) -> None:
        ends.append(await slices.finish(key[0], steps(count, key)))

    await asyncio.gather(finish("a1", 30), finish("a2", 30), finish("a3", 30), finish("b1", 60))
    assert ends.index("b1") < ends.index("a3")
    assert [end for end in ends if end != "b1"] == ["a1", "a2", "a3"]


async def test_no_more_wait_than_may_and_a_failure_is_the_callers() -> None:
    slices = CooperativeRunner(at_once=1, max_waiting=2)

    def broken() -> Steps[str]:
        yield
        raise ZeroDivisionError

    first = asyncio.create_task(slices.finish("a", steps(50)))
    await asyncio.sleep(0)
    second = asyncio.create_task(slices.finish("a", broken()))
    await asyncio.sleep(0)
    with pytest.raises(Unavailable):
        await slices.finish("a", steps(1))
    assert await first == "done"
    with pytest.raises(ZeroDivisionError):
        await second
    assert await slices.finish("a", steps(1)) == "done"


async def test_parts_of_a_longer_computation_leave_most_of_the_time() -> None:
    """Each part is short enough to need no pause of its own; together they would take the whole time."""
    runner = CooperativeRunner()
    for _ in range(50):
        assert await runner.finish("a", steps(1), is_part=True) == "done"
    assert TIME.pauses == pytest.approx([3 * STEP_S] * 50)


async def test_a_block_runs_in_the_turn_of_its_key_and_a_long_one_is_followed_by_a_pause() -> None:
    slices = CooperativeRunner()
    ends: list[str] = []

    async def block(name: str, takes_s: float) -> None:
        async with slices.turn("a"):
            ends.append(f"{name} begins")
            await asyncio.sleep(takes_s)
            ends.append(f"{name} ends")
        ends.append(f"{name} goes on")

    async def computation() -> None:
        ends.append(await slices.finish("a", steps(1, "computed")))

    await asyncio.gather(block("long", 0.05), block("short", 0.0), computation())
    assert ends == [
        "long begins",
        "long ends",
        "long goes on",
        "short begins",
        "short ends",
        "short goes on",
        "computed",
    ]

    async def hang() -> None:
        TIME.now += 0.03
        await asyncio.Event().wait()

    TIME.pauses.clear()
    await block("long", 0.03)
    with pytest.raises(TimeoutError):
        async with slices.turn("a"), asyncio.timeout(0):
            await hang()
    assert TIME.pauses == pytest.approx([0.03, 3 * 0.03, 3 * 0.03])
