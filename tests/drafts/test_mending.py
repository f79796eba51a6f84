"""Mending rows in place, and rows that come to those that are fine."""

from __future__ import annotations

import pytest
from tests.drafts.conftest import finished

from largesse.drafts.checking import Checked, check_rows
from largesse.drafts.columns import Columns, guess_columns
from largesse.drafts.mending import mended_sheet, merged_sheet
from largesse.drafts.sheet import Sheet, SheetRefused
from largesse.drafts.text_sheet import read_text_sheet


def sheet(text: str) -> Sheet:
    return finished(read_text_sheet(text.encode()))


def checked(found: Sheet, columns: Columns) -> Checked:
    return finished(check_rows(found, columns))


def test_a_row_is_mended_where_its_columns_are() -> None:
    found = sheet("no,first name,last name,email\n17,Zoë,Müller,nope\n18,Bo,,bo@example.com\n")
    columns = guess_columns(found)
    mended = mended_sheet(found, columns, {2: ("zoe@example.com", "Zoë M.", "7"), 99: ("x", "y", "z")})
    assert [row.cells for row in mended.rows[1:]] == [
        ["17", "Zoë M.", "", "zoe@example.com"],
        ["18", "Bo", "", "bo@example.com"],
    ]
    assert checked(mended, columns).can_be_sent


def test_a_mended_row_may_be_longer_than_it_was_and_goes_when_nothing_is_left() -> None:
    found = sheet("email,name,quantity\na@example.com\nbad\n")
    columns = guess_columns(found)
    mended = mended_sheet(found, columns, {2: ("a@example.com", "A", "3"), 3: ("", "", "")})
    assert [(row.number, row.cells) for row in mended.rows[1:]] == [(2, ["a@example.com", "A", "3"])]
    with pytest.raises(SheetRefused, match="A cell of row 3"):
        mended_sheet(found, columns, {3: ("x" * 1001, "", "")})


def test_rows_come_to_those_that_are_fine() -> None:
    first = sheet("a@example.com,A\nbad,B\nc@example.com,C\n")
    more = sheet("email;name;quantity;row;what is wrong\nb@example.com;B;2;2;This is no e-mail address.\n")
    merged, columns = merged_sheet(checked(first, guess_columns(first)), checked(more, guess_columns(more)))
    assert [(row.number, row.cells) for row in merged.rows] == [
        (1, ["a@example.com", "A"]),
        (3, ["c@example.com", "C"]),
        (4, ["b@example.com", "B", "2"]),
    ]
    assert checked(merged, columns).code_count == 4
    assert [row.number for row in merged.without({1, 4}).rows] == [3]
