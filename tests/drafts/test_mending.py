"""Rows that are corrected in place, and rows that are added."""

import pytest
from tests.drafts.conftest import finished, sheet

from largesse.drafts.checking import Checked, Typed, as_typed, check_rows, mended_sheet
from largesse.drafts.columns import Columns, guess_columns
from largesse.drafts.sheet import Sheet, SheetRefused


def checked(found: Sheet, columns: Columns) -> Checked:
    return finished(check_rows(found, columns))


def test_a_row_is_mended_where_its_columns_are() -> None:
    found = sheet("no,first name,last name,email\n17,Zoë,Müller,nope\n18,Bo,,bo@example.com\n")
    mended, columns = mended_sheet(
        found, guess_columns(found), {2: Typed("zoe@example.com", "Zoë M.", "1"), 99: Typed("x", "y", "z")}
    )
    assert [row.cells for row in mended.rows[1:]] == [
        ("17", "Zoë M.", "", "zoe@example.com", "1"),
        ("18", "Bo", "", "bo@example.com"),
    ]
    assert checked(mended, columns).can_be_sent()


def test_what_has_no_column_gets_one_behind_the_last() -> None:
    found = sheet("a@example.com;x\nb@example.com;y\n")
    columns = Columns(email=0)
    same = mended_sheet(found, columns, {1: Typed("z@example.com")})
    assert (same[0].rows[0].cells, same[1]) == (("z@example.com", "x"), columns)
    mended, columns = mended_sheet(found, columns, {1: Typed("a@example.com", "Ada", "7")})
    assert mended.rows[0].cells == ("a@example.com", "x", "Ada", "7")
    assert [(row.name, row.quantity) for row in checked(mended, columns).rows] == [("Ada", "7"), ("", "")]
    # Without any column, as for the first recipient that is typed into an empty list.
    first, columns = mended_sheet(Sheet([]), Columns(), {}, [Typed("a@example.com", "Ada", "2")])
    assert [(one.email, one.name, one.quantity) for one in checked(first, columns).recipients] == [
        ("a@example.com", "Ada", 2)
    ]


def test_a_mended_row_may_be_longer_than_it_was_and_goes_when_nothing_is_left() -> None:
    found = sheet("email,name,quantity,team\na@example.com\nbad,,,Sales\n")
    columns = guess_columns(found)
    mended, _ = mended_sheet(found, columns, {2: Typed("a\0@example.com", "A", "3"), 3: Typed(" ")})
    assert [(row.number, row.cells) for row in mended.rows[1:]] == [(2, ("a@example.com", "A", "3"))]
    assert mended_sheet(sheet("a@example.com"), Columns(0), {1: Typed("")})[0].rows == []
    with pytest.raises(SheetRefused, match="A cell of row 3"):
        mended_sheet(found, columns, {3: Typed("x" * 1001)})


def test_rows_come_after_those_that_are_there() -> None:
    first = sheet("a@example.com,A\nbad,B\nc@example.com,C\n")
    more = sheet("email;name;quantity;row;what is wrong\nb@example.com;B;2;2;This is not an e-mail address.\n")
    typed = [as_typed(row) for row in checked(more, guess_columns(more)).rows]
    merged, columns = mended_sheet(first, guess_columns(first), {2: Typed("")}, [*typed, Typed("")])
    assert [(row.number, row.cells) for row in merged.rows] == [
        (1, ("a@example.com", "A")),
        (3, ("c@example.com", "C")),
        (4, ("b@example.com", "B", "2")),
    ]
    assert checked(merged, columns).code_count == 4
    with pytest.raises(SheetRefused, match="more than 5,000 rows"):
        mended_sheet(merged, columns, {}, [Typed("a@example.com")] * 4_999)
