"""The marks of a chain: they hold what it was made of, in its order, and nothing that the database has makes another."""

import pytest

from largesse.encryption.chain import START, Chain, content

KEYS = {1: b"1" * 32, 2: b"2" * 32}
CHAIN = Chain("entries", {1: KEYS[1]})
ROWS = [content(7, "top_up", amount, None) for amount in (5, -3, 11, 2)]


def made(chain: Chain, rows: list[bytes]) -> tuple[list[bytes], bytes]:
    """The marks of the rows, and the head."""
    head, marks = START, []
    for row in rows:
        mac, head = chain.add(head, row)
        marks.append(mac)
    return marks, head


def misfits(chain: Chain, rows: list[tuple[bytes, bytes]]) -> tuple[list[int], bytes]:
    """The places of the rows, each with its mark, that do not fit, and the head after all."""
    head, found = START, []
    for place, (row, mac) in enumerate(rows):
        if not chain.fits(head, row, mac):
            found.append(place)
        head = chain.head_after(mac)
    return found, head


MARKS, HEAD = made(CHAIN, ROWS)
WHOLE = list(zip(ROWS, MARKS, strict=True))


def test_what_was_chained_fits() -> None:
    assert misfits(CHAIN, WHOLE) == ([], HEAD)


def test_the_marks_are_these_in_every_release() -> None:
    """What one release has written the next must find whole."""
    assert [mac.hex() for mac in MARKS[:2]] == [
        "01c7006483b386bba53c60e6c48ee1a280",
        "01d6606f3fe7cd8e9e14b27ff3c53ebf26",
    ]
    assert HEAD.hex() == "9b2209d117b968af8deb0fae02969a46"


@pytest.mark.parametrize("place", range(4))
def test_a_changed_row_is_found_alone(place: int) -> None:
    changed = [*WHOLE]
    changed[place] = (content(7, "top_up", 6, None), MARKS[place])
    assert misfits(CHAIN, changed) == ([place], HEAD)


@pytest.mark.parametrize("place", range(3))
def test_a_row_that_is_gone_is_found_by_the_next(place: int) -> None:
    assert misfits(CHAIN, WHOLE[:place] + WHOLE[place + 1 :]) == ([place], HEAD)


def test_the_last_rows_are_missed_by_the_head_alone() -> None:
    found, head = misfits(CHAIN, WHOLE[:2])
    assert found == []
    assert head not in {HEAD, *MARKS, *(mac[1:] for mac in MARKS)}


def test_rows_in_another_order_are_found() -> None:
    swapped = [WHOLE[0], WHOLE[2], WHOLE[1], WHOLE[3]]
    assert misfits(CHAIN, swapped) == ([1, 2, 3], HEAD)


@pytest.mark.parametrize("mac", [b"", b"\1", bytes(17), b"\2" + MARKS[0][1:], MARKS[0], MARKS[3]])
def test_no_mark_fits_a_forged_row(mac: bytes) -> None:
    found, head = misfits(CHAIN, [*WHOLE, (ROWS[0], mac)])
    assert 4 in found
    assert head != HEAD or mac == MARKS[3]


def test_a_chain_goes_on_under_a_new_key_and_holds_what_was_made_before() -> None:
    both = Chain("entries", KEYS)
    mac, head = both.add(HEAD, ROWS[0])
    assert (MARKS[0][0], mac[0]) == (1, 2)
    assert misfits(both, [*WHOLE, (ROWS[0], mac)]) == ([], head)
    # A process that has not heard of the new key goes on with the old one.
    mac_of_old, head = CHAIN.add(head, ROWS[1])
    assert misfits(both, [*WHOLE, (ROWS[0], mac), (ROWS[1], mac_of_old)]) == ([], head)
    # Who knows the old key and changes what it marked still lacks the new one.
    forged, forged_head = made(CHAIN, [ROWS[1]])
    rest, _ = made_after(CHAIN, forged_head, ROWS[1:])
    told = [(ROWS[1], forged[0]), *zip(ROWS[1:], rest, strict=True), (ROWS[0], mac)]
    assert misfits(both, told)[0] == [4]


def made_after(chain: Chain, head: bytes, rows: list[bytes]) -> tuple[list[bytes], bytes]:
    marks = []
    for row in rows:
        mac, head = chain.add(head, row)
        marks.append(mac)
    return marks, head


def test_purposes_share_no_marks() -> None:
    assert made(Chain("audit", {1: KEYS[1]}), ROWS)[0][0] != MARKS[0]


def test_columns_cannot_run_into_each_other() -> None:
    rows = [("a", "b", None), ("ab", "", None), ("a", "b"), ("a", 'b",null'), ("a", "b", ""), ("a", "b", "null")]
    assert len({content(*row) for row in rows}) == len(rows)


def test_without_keys_nothing_fits() -> None:
    none = Chain("entries", {})
    assert misfits(none, WHOLE)[0] == [0, 1, 2, 3]
    with pytest.raises(KeyError):
        none.add(START, ROWS[0])
