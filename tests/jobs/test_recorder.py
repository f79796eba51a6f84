import asyncio

import asyncpg
import pytest

from largesse.jobs import metrics
from largesse.jobs.recorder import Recorder


class Writing:
    """Writes batches, after having failed as it is told."""

    def __init__(self, *failures: BaseException) -> None:
        self.failures = list(failures)
        self.tried: list[list[int]] = []

    async def __call__(self, items: list[int]) -> None:
        self.tried.append(items)
        if self.failures:
            raise self.failures.pop(0)


@pytest.mark.parametrize(
    "failures",
    [
        [],
        [asyncpg.DeadlockDetectedError()],
        [asyncpg.SerializationError(), asyncpg.DeadlockDetectedError()],
        # It may have been committed all the same: whoever writes must bear to see it again.
        [asyncpg.ConnectionDoesNotExistError()],
        [OSError(), TimeoutError(), asyncpg.CannotConnectNowError(), asyncpg.DiskFullError()],
    ],
    ids=str,
)
async def test_what_cannot_be_written_now_is_written_later(failures: list[Exception]) -> None:
    tries = len(failures) + 1
    writing = Writing(*failures)
    recorder = Recorder("mail", writing)
    told = [recorder.add(number) for number in range(3)]
    assert waiting() == 3
    assert await asyncio.gather(*told) == [True] * 3
    assert writing.tried == [[0, 1, 2]] * tries
    assert waiting() == 0
    assert await recorder.add(3), "the next batch is not held up"
    await recorder.close()


@pytest.mark.parametrize("failure", [asyncpg.CheckViolationError("no"), KeyError("no")], ids=repr)
async def test_what_the_database_refuses_costs_its_neighbours_nothing(failure: Exception) -> None:
    writing = Writing(failure, failure)
    recorder = Recorder("mail", writing)
    told = [recorder.add(number) for number in range(3)]
    assert await asyncio.gather(*told) == [False, True, True]
    assert writing.tried == [[0, 1, 2], [0], [1], [2]]
    assert waiting() == 0
    await recorder.close()


async def test_while_nothing_can_be_written_it_says_so() -> None:
    writing = Writing(*[OSError()] * 3)
    recorder = Recorder("mail", writing)
    told = recorder.add(1)
    assert not recorder.is_stuck
    await recorder.settle()
    assert recorder.is_stuck
    later = recorder.add(2)
    assert await told
    assert not recorder.is_stuck
    assert await later
    await recorder.settle()
    assert writing.tried == [[1]] * 4 + [[2]]


async def test_a_process_that_ends_tries_for_a_while_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, tried = asyncio.get_running_loop(), list[list[int]]()
    time_s = loop.time

    async def fail(items: list[int]) -> None:
        tried.append(items)
        if len(tried) == 3:
            monkeypatch.setattr(loop, "time", lambda: time_s() + 60)
        raise OSError

    recorder = Recorder("mail", fail)
    told = recorder.add(1)
    await recorder.close(60)
    assert not await told
    assert tried == [[1]] * 3
    assert waiting() == 0


async def test_outcomes_that_gather_meanwhile_are_one_batch() -> None:
    writing = Writing()
    recorder = Recorder("mail", writing)
    assert await asyncio.gather(*(recorder.add(number) for number in range(5))) == [True] * 5
    assert writing.tried == [[0, 1, 2, 3, 4]]
    await recorder.close()


def waiting() -> float:
    value: float = metrics.OUTCOMES_WAITING.labels("mail")._value.get()
    return value
