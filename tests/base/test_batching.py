import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from largesse.base import batching
from largesse.base.batching import Batcher
from largesse.base.errors import Unavailable


class Recorder:
    """Handles items by doubling them, while `gate` is open; keeps the batches it got. Negative items fail."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def handle(self, items: list[int]) -> Sequence[int | Exception]:
        self.batches.append(list(items))
        await self.gate.wait()
        if 0 in items:
            raise RuntimeError("the batch failed")
        return [item * 2 if item > 0 else ValueError(str(item)) for item in items]


Make = Callable[..., tuple[Recorder, Batcher[int, int]]]


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    """`make(**bounds)`: a batcher whose recorder waits until its gate opens. It is closed with the test."""
    made: list[tuple[Recorder, Batcher[int, int]]] = []

    def make_one(*, tasks: int = 1, max_items: int = 10, max_waiting: int = 10, **bounds: Any) -> Any:
        recorder = Recorder()
        recorder.gate.clear()
        batcher = Batcher(recorder.handle, tasks=tasks, max_items=max_items, max_waiting=max_waiting, **bounds)
        made.append((recorder, batcher))
        return made[-1]

    yield make_one
    for recorder, batcher in made:
        recorder.gate.set()
        await batcher.close()


async def start(batcher: Batcher[int, int], items: Sequence[int]) -> list[asyncio.Task[int]]:
    """Submits the items in order, one task each; all wait when this returns."""
    tasks = [asyncio.create_task(batcher.submit(item)) for item in items]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return tasks


async def test_a_lone_item_is_handled_at_once() -> None:
    recorder = Recorder()
    batcher = Batcher(recorder.handle, tasks=2, max_items=10, max_waiting=10)
    assert await batcher.submit(3) == 6
    assert recorder.batches == [[3]]
    await batcher.close()


async def test_what_waits_is_handled_together_in_order(make: Make) -> None:
    recorder, batcher = make(max_items=3)
    first = await start(batcher, [1])
    rest = await start(batcher, [2, 3, 4, 5, 6])
    recorder.gate.set()
    assert await asyncio.gather(*first, *rest) == [2, 4, 6, 8, 10, 12]
    assert recorder.batches == [[1], [2, 3, 4], [5, 6]]


async def test_a_batch_is_bounded_by_weight_and_a_heavy_item_goes_alone(make: Make) -> None:
    recorder, batcher = make(max_waiting=20, max_weight=10, weigh=lambda item: item)
    tasks = await start(batcher, [1])
    tasks += await start(batcher, [4, 6, 1, 50, 3, 10])
    recorder.gate.set()
    await asyncio.gather(*tasks)
    assert recorder.batches == [[1], [4, 6], [1], [50], [3], [10]]


async def test_an_outcome_that_is_an_error_reaches_its_own_caller_alone(make: Make) -> None:
    recorder, batcher = make()
    tasks = await start(batcher, [9])
    tasks += await start(batcher, [1, -2, 3])
    recorder.gate.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert outcomes[:2] == [18, 2]
    assert outcomes[3] == 6
    assert isinstance(outcomes[2], ValueError)


async def test_a_batch_that_fails_fails_for_all_its_callers_and_no_others(make: Make) -> None:
    recorder, batcher = make(max_items=2)
    tasks = await start(batcher, [9])
    tasks += await start(batcher, [1, 0, 2])
    recorder.gate.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [outcomes[0], outcomes[3]] == [18, 4]
    assert [type(outcome) for outcome in outcomes[1:3]] == [RuntimeError, RuntimeError]


async def test_no_more_wait_than_may(make: Make) -> None:
    recorder, batcher = make(max_waiting=2)
    tasks = await start(batcher, [1])
    tasks += await start(batcher, [2, 3])
    with pytest.raises(Unavailable, match="Too many"):
        await batcher.submit(4)
    recorder.gate.set()
    assert await asyncio.gather(*tasks) == [2, 4, 6]
    assert await batcher.submit(5) == 10


async def test_a_group_fills_half_of_the_room_and_leaves_the_rest_to_others(make: Make) -> None:
    recorder, batcher = make(max_items=20, max_waiting=12, group=lambda item: item % 10)
    tasks = await start(batcher, [9])
    tasks += await start(batcher, [11, 21, 31, 41, 51, 61])
    for item in (71, 71):
        with pytest.raises(Unavailable, match="Too many"):
            await batcher.submit(item)
    tasks += await start(batcher, [12, 22, 32])
    with pytest.raises(Unavailable, match="Too many"):
        await batcher.submit(42)
    tasks += await start(batcher, [13, 23])
    recorder.gate.set()
    assert len(await asyncio.gather(*tasks)) == 12
    assert await batcher.submit(81) == 162


async def test_room_by_weight_is_filled_by_what_items_weigh(make: Make) -> None:
    recorder, batcher = make(
        max_items=1, max_waiting=100, weigh=lambda item: item // 10, room_by_weight=True, group=lambda item: item % 10
    )
    tasks = await start(batcher, [9])
    tasks += await start(batcher, [11] * 49)
    tasks += await start(batcher, [11])
    with pytest.raises(Unavailable, match="Too many"):
        await batcher.submit(11)
    tasks += await start(batcher, [492, 13])
    with pytest.raises(Unavailable, match="Too many"):
        await batcher.submit(14)
    recorder.gate.set()
    assert len(await asyncio.gather(*tasks)) == 53
    tasks = await start(batcher, [11] * 50)
    assert len(await asyncio.gather(*tasks)) == 50


async def test_closing_handles_what_waits_and_takes_no_more(make: Make) -> None:
    recorder, batcher = make(tasks=2, max_items=2)
    tasks = await start(batcher, [1, 2])
    tasks += await start(batcher, [3, 4, 5, 6, 7])
    closing = asyncio.create_task(batcher.close())
    await asyncio.sleep(0)
    with pytest.raises(Unavailable, match="stopping"):
        await batcher.submit(8)
    assert not closing.done()
    recorder.gate.set()
    await closing
    assert all(task.done() for task in tasks)
    assert [task.result() for task in tasks] == [2, 4, 6, 8, 10, 12, 14]


async def test_closing_an_idle_batcher_ends_it() -> None:
    batcher = Batcher(Recorder().handle, tasks=5, max_items=2, max_waiting=10)
    await asyncio.sleep(0)
    await asyncio.wait_for(batcher.close(), timeout=5)
    await asyncio.wait_for(batcher.close(), timeout=5)


async def test_a_caller_that_went_away_disturbs_nobody(make: Make) -> None:
    recorder, batcher = make()
    tasks = await start(batcher, [1])
    tasks += await start(batcher, [2, -3, 4])
    tasks[0].cancel()
    tasks[2].cancel()
    await asyncio.sleep(0)
    recorder.gate.set()
    assert await tasks[1] == 4
    assert await tasks[3] == 8
    assert await batcher.submit(5) == 10


async def test_a_handler_that_is_broken_off_leaves_nobody_waiting() -> None:
    breaks = True

    async def handle(items: list[int]) -> list[int]:
        if breaks:
            raise asyncio.CancelledError
        return items

    batcher: Batcher[int, int] = Batcher(handle, tasks=1, max_items=10, max_waiting=10)
    with pytest.raises(Unavailable):
        await asyncio.wait_for(batcher.submit(1), timeout=5)
    breaks = False
    assert await asyncio.wait_for(batcher.submit(2), timeout=5) == 2
    await batcher.close()


async def test_a_handler_that_forgets_an_outcome_leaves_nobody_waiting() -> None:
    async def handle(items: list[int]) -> list[int]:
        return items[1:]

    batcher: Batcher[int, int] = Batcher(handle, tasks=1, max_items=10, max_waiting=10)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="0 outcomes for 1 items"):
            await asyncio.wait_for(batcher.submit(1), timeout=5)
    await batcher.close()


async def test_a_batcher_whose_tasks_are_cancelled_answers_the_batch_at_hand() -> None:
    recorder = Recorder()
    recorder.gate.clear()
    batcher = Batcher(recorder.handle, tasks=1, max_items=10, max_waiting=10)
    (waiting,) = await start(batcher, [1])
    for task in batcher._tasks:
        task.cancel()
    with pytest.raises(Unavailable):
        await asyncio.wait_for(waiting, timeout=5)
    assert [await asyncio.wait({task}) for task in batcher._tasks]
    assert all(task.cancelled() for task in batcher._tasks)


async def _nothing_moves() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_group_is_handled_by_one_task_at_a_time_and_others_pass_by(make: Make) -> None:
    recorder, batcher = make(tasks=2, group=lambda item: item % 10)
    first = await start(batcher, [1])
    rest = await start(batcher, [11, 21, 2])
    await _nothing_moves()
    assert recorder.batches == [[1], [2]]
    recorder.gate.set()
    await asyncio.gather(*first, *rest)
    assert recorder.batches == [[1], [2], [11, 21]]


async def test_who_comes_while_a_batch_of_several_groups_is_handled_waits_for_the_next(make: Make) -> None:
    recorder, batcher = make(tasks=3, group=lambda item: item % 10)
    tasks = [asyncio.create_task(batcher.submit(item)) for item in (1, 2)]
    await _nothing_moves()
    tasks += await start(batcher, [3, 4, 11])
    await _nothing_moves()
    assert recorder.batches == [[1, 2]]
    recorder.gate.set()
    await asyncio.gather(*tasks)
    assert recorder.batches == [[1, 2], [3, 4, 11]]


async def test_what_does_not_fit_into_a_batch_of_one_group_is_taken_by_another_task(make: Make) -> None:
    recorder, batcher = make(tasks=2, max_items=2, group=lambda item: item % 10)
    tasks = [asyncio.create_task(batcher.submit(item)) for item in (1, 11, 2, 3)]
    await _nothing_moves()
    assert recorder.batches == [[1, 11], [2, 3]]
    recorder.gate.set()
    await asyncio.gather(*tasks)


async def test_groups_take_turns_at_going_first(make: Make) -> None:
    """Group 1 keeps sending; it fills every batch, and yet group 2 and then group 3 come next."""
    recorder, batcher = make(max_items=2, max_waiting=20, group=lambda item: item % 10)
    first = await start(batcher, [1])
    rest = await start(batcher, [11, 21, 31, 2, 41, 3, 51])
    recorder.gate.set()
    await asyncio.gather(*first, *rest)
    assert recorder.batches == [[1], [11, 21], [2, 3], [31, 41], [51]]


@pytest.mark.parametrize("max_items", [1, 2])
async def test_no_group_is_passed_over(make: Make, max_items: int) -> None:
    """Each time one item is handled, one of a new group arrives: those who waited before it go first all the same."""
    recorder, batcher = make(max_items=max_items, max_waiting=100, group=lambda item: item, weigh=abs, max_weight=9)
    tasks = await start(batcher, [8, 7, 6, 5])
    recorder.gate.set()
    for item in (18, 17, 16, 15):
        tasks += await start(batcher, [item])
    await asyncio.gather(*tasks)
    assert [item for batch in recorder.batches for item in batch] == [8, 7, 6, 5, 18, 17, 16, 15]


async def test_closing_handles_what_waits_of_a_group_at_work(make: Make) -> None:
    recorder, batcher = make(tasks=3, max_items=1, group=lambda item: item % 10)
    waiting = await start(batcher, [1, 11, 21])
    closing = asyncio.create_task(batcher.close())
    await _nothing_moves()
    assert recorder.batches == [[1]]
    recorder.gate.set()
    assert await asyncio.gather(*waiting) == [2, 22, 42]
    await closing


@settings(max_examples=50)
@given(
    items=st.lists(st.integers(-5, 50), max_size=60),
    groups=st.sampled_from([None, 1, 2, 7]),
    tasks=st.integers(1, 4),
    max_items=st.integers(1, 8),
    max_weight=st.integers(1, 60),
)
def test_each_item_is_handled_once_within_the_bounds(
    items: list[int], groups: int | None, tasks: int, max_items: int, max_weight: int
) -> None:
    async def run() -> None:
        recorder = Recorder()
        batcher = Batcher(
            recorder.handle,
            tasks=tasks,
            max_items=max_items,
            max_waiting=100,
            max_weight=max_weight,
            weigh=abs,
            group=None if groups is None else lambda item: item % groups,
        )
        outcomes = await asyncio.gather(*(batcher.submit(item) for item in items), return_exceptions=True)
        await batcher.close()
        assert sorted(item for batch in recorder.batches for item in batch) == sorted(items)
        for batch in recorder.batches:
            assert len(batch) <= max_items
            assert len(batch) == 1 or sum(map(abs, batch)) <= max_weight
        for item, outcome in zip(items, outcomes, strict=True):
            if item > 0:
                assert outcome == item * 2 or isinstance(outcome, RuntimeError)
            else:
                assert isinstance(outcome, ValueError | RuntimeError)

    asyncio.run(run())


async def test_a_batch_is_of_no_more_groups_than_it_may_be() -> None:
    recorder = Recorder()
    batcher = Batcher(
        recorder.handle, tasks=1, max_items=10, max_waiting=100, group=lambda item: item // 10, max_groups=1
    )
    recorder.gate.clear()
    tasks = await start(batcher, [11, 12, 21, 13, 31, 22])
    recorder.gate.set()
    assert await asyncio.gather(*tasks) == [22, 24, 42, 26, 62, 44]
    assert [{item // 10 for item in batch} for batch in recorder.batches] == [{1}, {2}, {3}]
    await batcher.close()


@pytest.mark.parametrize(
    ("rests", "size", "batches"),
    [(False, 4, [[1, 1, 1, 1], [5], [6]]), (True, 4, [[1, 1, 1, 1], [5, 6]]), (True, 3, [[1, 1, 1], [5], [6]])],
)
async def test_after_a_batch_of_several_a_batcher_may_rest_so_that_the_next_is_larger(
    make: Make, rests: bool, size: int, batches: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "MAX_REST_S", 10.0)
    recorder, batcher = make(max_items=size, rests=rests)
    several = await start(batcher, [1] * size)
    await asyncio.sleep(0.5)  # of which it rests the half
    fifth = await start(batcher, [5])
    recorder.gate.set()
    await asyncio.gather(*several)
    sixth = await start(batcher, [6])
    assert await asyncio.gather(*fifth, *sixth) == [10, 12]
    assert recorder.batches == batches
