import asyncio
from itertools import pairwise

import pytest

from largesse.base.cooperative import FairTurns
from largesse.base.errors import Unavailable


class Room:
    """Takes a turn for each name asked for and keeps it until told; the first letter of a name is its key."""

    def __init__(
        self,
        *,
        at_once: int,
        each: int,
        max_waiting: int = 100,
        alone_after_s: float | None = None,
        is_paced: bool = False,
    ) -> None:
        self.turns: FairTurns[str] = FairTurns(
            at_once=at_once, each=each, max_waiting=max_waiting, alone_after_s=alone_after_s, is_paced=is_paced
        )
        self.inside: list[str] = []
        self._leave: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def enter(self, *names: str) -> None:
        for name in names:
            self._leave[name] = asyncio.Event()
            self._tasks[name] = asyncio.create_task(self._stay(name))
        await self.settle()

    async def _stay(self, name: str) -> None:
        async with self.turns.turn(name[0]):
            self.inside.append(name)
            try:
                await self._leave[name].wait()
            finally:
                self.inside.remove(name)

    async def leave(self, name: str) -> None:
        self._leave[name].set()
        await self._tasks[name]
        await self.settle()

    async def give_up(self, name: str) -> None:
        self._tasks[name].cancel()
        await self.settle()

    async def refused(self, name: str) -> bool:
        await self.enter(name)
        return isinstance(self._tasks[name].exception() if self._tasks[name].done() else None, Unavailable)

    @staticmethod
    async def settle() -> None:
        for _ in range(5):
            await asyncio.sleep(0)


async def test_a_key_has_no_more_turns_than_its_own_and_others_pass() -> None:
    room = Room(at_once=3, each=2)
    await room.enter("a1", "a2", "a3", "b1", "c1", "b2")
    assert room.inside == ["a1", "a2", "b1"]
    await room.leave("a1")
    assert room.inside == ["a2", "b1", "a3"]
    await room.leave("b1")
    assert room.inside == ["a2", "a3", "c1"]
    await room.leave("c1")
    assert room.inside == ["a2", "a3", "b2"]


async def test_keys_are_let_in_by_turns() -> None:
    room = Room(at_once=1, each=1)
    await room.enter("a1", "a2", "a3", "a4", "b1", "b2", "c1")
    order = []
    for _ in range(7):
        order += room.inside
        await room.leave(room.inside[0])
    assert order == ["a1", "a2", "b1", "c1", "a3", "b2", "a4"]


async def test_who_goes_away_is_passed_over_and_takes_nothing_along() -> None:
    room = Room(at_once=1, each=1)
    await room.enter("a1", "a2", "b1", "b2")
    await room.give_up("a2")
    await room.give_up("b1")
    await room.give_up("a1")
    assert room.inside == ["b2"]
    await room.leave("b2")
    await room.enter("a5")
    assert room.inside == ["a5"]


async def test_who_goes_away_at_the_moment_of_being_let_in_gives_the_turn_back() -> None:
    room = Room(at_once=1, each=1)
    await room.enter("a1", "b1", "c1")
    room._leave["a1"].set()
    await room._tasks["a1"]  # b1 has been let in, and has not run since
    await room.give_up("b1")
    assert room.inside == ["c1"]


async def test_a_key_fills_half_of_the_room_to_wait_in() -> None:
    room = Room(at_once=1, each=1, max_waiting=4)
    await room.enter("a1", "a2", "a3")
    assert await room.refused("a4")
    await room.enter("b1")
    assert await room.refused("b2")
    assert not await room.refused("c1")
    assert await room.refused("d1")


async def test_a_failure_gives_the_turn_back() -> None:
    turns: FairTurns[str] = FairTurns(at_once=1, each=1, max_waiting=1)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            async with turns.turn("a"):
                raise ZeroDivisionError
    assert not turns._busy
    assert not turns._waiting


async def test_a_key_that_is_alone_has_as_many_turns_as_it_likes() -> None:
    room = Room(at_once=10, each=2, alone_after_s=60)
    await room.enter("a1", "a2", "a3", "a4")
    assert room.inside == ["a1", "a2", "a3", "a4"]


async def test_where_several_were_lately_each_is_bounded_until_one_is_alone_again() -> None:
    room = Room(at_once=10, each=2, alone_after_s=0.2)
    await room.enter("b1", "a1", "a2", "a3", "a4")
    assert room.inside == ["b1", "a1", "a2"]
    await room.leave("b1")
    assert room.inside == ["a1", "a2"]
    await asyncio.sleep(0.25)
    await room.leave("a1")
    assert room.inside == ["a2", "a3", "a4"]


def test_a_turn_that_never_began_gives_none_back() -> None:
    turns = FairTurns[str](at_once=1, each=2, max_waiting=1)
    turns.turn("a").end()
    assert [turns.begins("a"), turns.begins("a")] == [True, False]


async def test_a_turn_that_ends_early_lets_the_next_one_in() -> None:
    turns: FairTurns[str] = FairTurns(at_once=1, each=1, max_waiting=10)
    async with turns.turn("a") as turn:
        turn.end()
        async with asyncio.timeout(1), turns.turn("a"):
            pass
    async with asyncio.timeout(1), turns.turn("a"):  # it was given back once
        assert await _waits(turns)


async def _waits(turns: FairTurns[str]) -> bool:
    try:
        async with asyncio.timeout(0.01), turns.turn("b"):
            return False
    except TimeoutError:
        return True


async def begun_in_turns(count: int) -> list[int]:
    """Has `count` paced turns begin. Returns how many had begun in each turn of the event loop, until all had."""
    room = Room(at_once=count, each=count, is_paced=True)
    seen: list[int] = []

    def look() -> None:
        seen.append(len(room.inside))
        if len(room.inside) < count:
            asyncio.get_running_loop().call_soon(look)

    asyncio.get_running_loop().call_soon(look)
    await room.enter(*[f"a{number}" for number in range(count)])
    while len(room.inside) < count:
        await room.settle()
    return seen


async def test_paced_turns_begin_one_in_each_turn_of_the_event_loop_and_other_callbacks_run_between() -> None:
    assert {1, 2, 3} <= set(await begun_in_turns(4))


async def test_of_many_paced_turns_that_wait_a_quarter_begins_at_once() -> None:
    seen = await begun_in_turns(40)
    most = max(after - before for before, after in pairwise(seen))
    assert 8 <= most <= 10, "of 39 that wait"


async def test_paced_turns_go_to_the_keys_by_turns_and_pass_over_who_went_away() -> None:
    room = Room(at_once=2, each=2, is_paced=True)
    await room.enter("a1", "a2", "b1", "b2", "b3", "c1")
    await room.settle()
    assert room.inside == ["a1", "a2"]
    await room.give_up("b1")
    for name in ("a1", "a2", "b2", "c1"):
        await room.leave(name)
        await room.settle()
    assert room.inside == ["b3"]
    await room.leave("b3")
    await room.enter("a3")
    assert room.inside == ["a3"]
