"""SortedChunks against a plain list, and how much a changed copy shares."""

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from largesse.catalogue.sorted_chunks import CHUNK, SortedChunks


class One(NamedTuple):
    """An item; two of one id may differ."""

    id: int
    name: str = ""


def ones(*ids: int) -> list[One]:
    return [One(number) for number in ids]


def test_an_empty_one() -> None:
    empty: SortedChunks[One] = SortedChunks()
    assert (len(empty), list(empty), empty[:5]) == (0, [], [])
    assert empty.drop(1) is empty
    assert list(empty.put(One(1))) == ones(1)
    with pytest.raises(IndexError):
        empty[0]


def test_in_the_order_of_ids_whatever_order_they_came_in() -> None:
    assert list(SortedChunks.of(ones(3, 1, 2))) == ones(1, 2, 3)
    assert list(SortedChunks.of(ones(30)).put(One(10)).put(One(20)).put(One(40))) == ones(10, 20, 30, 40)


@settings(max_examples=60, deadline=None)
@given(
    st.sets(st.integers(0, 3_000), max_size=1_500),
    st.lists(st.tuples(st.booleans(), st.integers(-5, 3_005)), max_size=40),
    st.slices(1_600),
)
def test_equals_a_plain_list_whatever_is_put_and_dropped(
    start: set[int], changes: list[tuple[bool, int]], part: slice
) -> None:
    chunks, model = SortedChunks.of(ones(*start)), {number: One(number) for number in start}
    for is_put, number in changes:
        if is_put:
            chunks = chunks.put(One(number, "new"))
            model[number] = One(number, "new")
        else:
            chunks = chunks.drop(number)
            model.pop(number, None)
    plain = [model[number] for number in sorted(model)]
    assert (list(chunks), len(chunks)) == (plain, len(plain))
    assert chunks[part] == plain[part]
    assert all(0 < len(chunk) <= 2 * CHUNK for chunk in chunks.chunks)
    if plain:
        assert (chunks[0], chunks[-1]) == (plain[0], plain[-1])


def test_many_at_the_end_of_a_list_split_its_last_chunk() -> None:
    chunks: SortedChunks[One] = SortedChunks()
    for number in range(5 * CHUNK):
        chunks = chunks.put(One(number))
    assert max(map(len, chunks.chunks)) <= 2 * CHUNK
    assert list(chunks) == ones(*range(5 * CHUNK))


def test_a_changed_copy_shares_all_but_one_chunk_and_the_former_stays() -> None:
    before = SortedChunks.of(ones(*range(0, 20 * CHUNK, 2)))
    for after in (before.put(One(1_001)), before.put(One(1_000, "new")), before.drop(1_000)):
        shared = {id(chunk) for chunk in before.chunks} & {id(chunk) for chunk in after.chunks}
        assert len(shared) == len(before.chunks) - 1
    assert list(before) == ones(*range(0, 20 * CHUNK, 2))
