from __future__ import annotations

import asyncio

import asyncpg
import pytest

from largesse.outbox import Recorder


class Writing:
    """Writes batches, after having failed as it is told."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.tried: list[list[int]] = []

    async def __call__(self, items: list[int]) -> None:
        self.tried.append(items)
        if self.failures:
            raise self.failures.pop(0)


@pytest.mark.parametrize(
    ("failures", "tries", "written"),
    [
        ([], 1, True),
        ([asyncpg.DeadlockDetectedError()], 2, True),
        ([asyncpg.SerializationError()], 2, True),
        ([asyncpg.DeadlockDetectedError(), asyncpg.DeadlockDetectedError()], 2, False),
        # It may have been committed all the same: what was done is done again under a new lease.
        ([asyncpg.ConnectionDoesNotExistError()], 1, False),
        ([asyncpg.CheckViolationError()], 1, False),
        ([KeyError()], 1, False),
    ],
    ids=str,
)
async def test_a_deadlock_costs_a_second_try_and_other_failures_the_batch(
    failures: list[Exception], tries: int, written: bool
) -> None:
    writing = Writing(*failures)
    recorder = Recorder(writing)
    told = [recorder.add(number) for number in range(3)]
    assert await asyncio.gather(*told) == [written] * 3
    assert writing.tried == [[0, 1, 2]] * tries
    assert await recorder.add(3), "the next batch is not held up"
    await recorder.close()
