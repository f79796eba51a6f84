"""Sheets written as text: as spreadsheets of all kinds write them, and what is refused."""

import tracemalloc

import pytest
from tests.drafts.conftest import finished

from largesse.base.text import csv_file
from largesse.drafts import sheet
from largesse.drafts.text_sheet import read_text_file, read_text_sheet

LINES = "email,name\nzoë@example.com,Zoë Müller\n"
EXPECTED = [(1, ["email", "name"]), (2, ["zoë@example.com", "Zoë Müller"])]


def rows(data: bytes) -> list[tuple[int, list[str]]]:
    return [(row.number, list(row.cells)) for row in finished(read_text_sheet(read_text_file(data).text)).rows]


def refusal(data: bytes) -> sheet.SheetRefused:
    with pytest.raises(sheet.SheetRefused) as raised:
        finished(read_text_sheet(read_text_file(data).text))
    assert raised.value.why in sheet.REFUSALS
    return raised.value


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_a_file_is_read_in_the_encodings_that_spreadsheets_write(encoding: str):
    assert rows(LINES.encode(encoding)) == EXPECTED


def test_a_link_and_the_quotation_marks_of_a_word_processor_are_taken_off():
    text = "email,name\nmailto:a@x.com,\u201cAda\u201d\nMAILTO:b@x.com?subject=Hi,\u2018s-Hertogenbosch\n"
    assert [cells for _, cells in rows(text.encode())[1:]] == [["a@x.com", "Ada"], ["b@x.com", "\u2018s-Hertogenbosch"]]


def test_big_endian_with_its_mark_too():
    assert rows("\ufeff".encode("utf-16-be") + LINES.encode("utf-16-be")) == EXPECTED


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_the_separator_is_found(separator: str, ending: str):
    assert rows(LINES.replace(",", separator).replace("\n", ending).encode()) == EXPECTED


def test_the_separator_that_the_file_names_wins():
    assert rows(b"sep=;\r\na,b;c,d\r\n") == [(1, ["a,b", "c,d"])]


def test_a_line_with_tabs_among_lines_with_commas_is_split():
    text = "email,name\nv1@example.com,Al\nv2@example.com\tBo Åkesson\nv3@example.com,Cy\n"
    assert rows(text.encode())[2] == (3, ["v2@example.com", "Bo Åkesson"])


def test_names_with_commas_do_not_make_columns():
    text = "email;name\na@example.com;Smith, Anna\nb@example.com;Jones\nc@example.com;Lee, Bo\n"
    assert rows(text.encode())[1] == (2, ["a@example.com", "Smith, Anna"])


def test_quoted_cells_hold_separators_quotes_and_line_breaks():
    assert rows(b'a,"x ""y"", z\nw"\n\n,,\nb,c\n') == [(1, ["a", 'x "y", z\nw']), (4, ["b", "c"])]


def test_a_blank_before_a_quoted_cell_does_not_split_it():
    typed = 'e1@example.com, Ann, 2\ne2@example.com, "Smith, ""Jo"", Jr." , 3\ne3@example.com, "Bo" Lee, 4\n'
    assert rows(typed.encode()) == [
        (1, ["e1@example.com", "Ann", "2"]),
        (2, ["e2@example.com", 'Smith, "Jo", Jr.', "3"]),
        (3, ["e3@example.com", '"Bo" Lee', "4"]),
    ]
    assert rows(b'a, "x, y"\nb, z') == [(1, ["a", "x, y"]), (2, ["b", "z"])]


def test_a_cell_may_begin_with_a_quoted_nickname():
    pasted = '"Jane" Doe\ta@example.com\n"Smith, Jo" (Sales)\tb@example.com\n"Al ""Bo""\n"" Lee"\tc@example.com\n'
    assert rows(pasted.encode()) == [
        (1, ['"Jane" Doe', "a@example.com"]),
        (2, ['"Smith, Jo" (Sales)', "b@example.com"]),
        (3, ['Al "Bo"\n" Lee', "c@example.com"]),
    ]
    assert rows(b' "Jane" Doe,a@example.com\n') == [(1, ['"Jane" Doe', "a@example.com"])]
    assert rows(b'a@example.com,"Jane" Doe,2\n') == [(1, ["a@example.com", '"Jane" Doe', "2"])]


def test_blanks_around_cells_go_and_short_rows_stay_short():
    assert rows("\xa0a@example.com , x \nb@example.com\n".encode()) == [
        (1, ["a@example.com", "x"]),
        (2, ["b@example.com"]),
    ]


def test_what_was_handed_out_comes_back_as_it_was():
    cells = ["=1+1", "+a@example.com", "-x", "@y", "'tis", "'=z", "plain"]
    handed = csv_file([cells])
    assert handed.startswith(b"\xef\xbb\xbf'=1+1,'+a@example.com,'-x,'@y,'tis,''=z,plain")
    assert rows(handed)[0][1] == cells


@pytest.mark.parametrize(
    ("data", "why", "row"),
    [
        (b"", "empty", 0),
        (b" \n,,\n", "empty", 0),
        (b'a,b\n"c,d\n', "quotes", 2),
        (b'a,b\n"c"x,d\n', "quotes", 2),
        (b"a\x00b", "kind", 0),
        (b"%PDF-1.7\n1 0 obj\n", "kind", 0),
        (b"<table><tr><td>a@example.com</td></tr></table>", "kind", 0),
        (b'[{"email": "a@example.com"}]', "kind", 0),
        (b"\xef\xbb\xbfBEGIN:VCARD\r\nEMAIL:ada@example.com\r\n", "kind", 0),
        (b"\n<html><table><tr><td>ada@example.com</td></tr></table></html>", "kind", 0),
        (b"\xff\xfea", "encoding", 0),
        (b"\xef\xbb\xbf\xe9", "encoding", 0),
        (b"a\x01\xe9", "encoding", 0),
    ],
)
def test_what_is_no_table_is_refused(data: bytes, why: str, row: int):
    found = refusal(data)
    assert (found.why, found.row) == (why, row)


def test_each_limit_holds_on_both_sides():
    assert len(rows(b"a@example.com\n" * (sheet.MAX_ROWS + 1))) == sheet.MAX_ROWS + 1
    assert refusal(b"a@example.com\n" * (sheet.MAX_ROWS + 2)).detail == "There are more than 5,000 rows."
    assert len(rows(b"," * (sheet.MAX_COLUMNS - 1) + b"x")[0][1]) == sheet.MAX_COLUMNS
    assert len(rows(b"x" + b"," * 500)[0][1]) == 1
    assert refusal(b"a\n" + b"," * sheet.MAX_COLUMNS + b"x").detail == "Row 2 has more than 100 columns."
    assert rows(b"x" * sheet.MAX_CELL) == [(1, ["x" * sheet.MAX_CELL])]
    assert refusal(b"x" * (sheet.MAX_CELL + 1)).detail == "A cell of row 1 has more than 1,000 characters."
    assert refusal(b"a\n" + b"x" * 200_000).why == "cell"
    row = b",".join([b"x" * sheet.MAX_CELL] * 4) + b"\n"
    fitting = sheet.MAX_FILE_BYTES // len(row)
    assert len(rows(row * fitting)) == fitting
    assert refusal(b"x" * (sheet.MAX_FILE_BYTES + 1)).detail == "The file has more than 4,194,304 bytes."
    assert sheet.MAX_CHARACTERS >= sheet.MAX_FILE_BYTES


@pytest.mark.parametrize(
    ("data", "why", "row"),
    [
        (b"\t" * sheet.MAX_FILE_BYTES, "columns", 1),
        (b"a,b\n" + b"," * (sheet.MAX_FILE_BYTES - 4), "columns", 2),
        (b',,,,,,,,"\n"' * 50_000, "columns", 1),
        (b"x" * sheet.MAX_FILE_BYTES, "cell", 1),
        (b'"' + (b"x" * 99 + b"\n") * 2_000, "cell", 1),
        (b"\n" * sheet.MAX_FILE_BYTES, "rows", 0),
    ],
    ids=["tabs", "commas", "columns over lines", "one cell", "a quotation mark", "blank lines"],
)
def test_a_row_is_refused_before_it_is_split(data: bytes, why: str, row: int):
    tracemalloc.start()
    found = refusal(data)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (found.why, found.row) == (why, row)
    assert peak_bytes < 4 * sheet.MAX_FILE_BYTES  # the text, and its lines; split it takes ten times as much


def test_a_row_has_as_many_columns_and_characters_as_may_be_split():
    assert rows(b"x" + b"," * 16_384) == [(1, ["x"])]
    assert refusal(b"x" + b"," * 16_385).why == "columns"
    assert refusal(b"\n" * 100_000).why == "empty"
    assert refusal(b"\n" * 100_001).why == "rows"
    cell = b'"' + b'""' * 900 + b'"'
    blank = b" " * (131_072 - len(cell) - 2)
    assert rows(cell + b"," + blank + b"\n") == [(1, ['"' * 900])]
    assert refusal(cell + b", " + blank + b"\n").why == "cell"


def test_a_long_sheet_is_read_in_steps():
    row = b",".join([b"x" * 100] * 8) + b"\n"
    steps = sum(1 for _ in read_text_sheet(read_text_file(row * 5_000).text))
    assert steps >= len(row) * 5_000 // (8_000 + len(row))


def test_a_cell_of_many_signs_is_refused_at_once():
    """If each sign could be the one of the address, this would take minutes."""
    with pytest.raises(sheet.SheetRefused, match="more than 1,000 characters"):
        _ = [*read_text_sheet('email\n"mailto:' + "a@" * 60_000 + '?\nx"\n')]
