"""Workbooks, made by another library than ours are read with; and files that are made to do harm."""

import asyncio
import datetime as dt
import io
import re
import zipfile
from pathlib import Path

import openpyxl
import pytest

from largesse.base.cooperative import finish_soon
from largesse.base.text import is_error
from largesse.drafts.sheet import MAX_CELL, MAX_COLUMNS, MAX_FILE_BYTES, MAX_ROWS, Sheet, SheetRefused
from largesse.drafts.workbook import Workbooks, is_workbook, read_sheets


def workbook(rows: list[list[object]], *, hidden_first: bool = False) -> bytes:
    book = openpyxl.Workbook()
    sheet = book.active
    if hidden_first:
        sheet.append(["secret@example.com"])
        sheet.sheet_state = "hidden"
        sheet = book.create_sheet()
        book.active = 1
    for row in rows:
        sheet.append(row)
    return saved(book)


def saved(book: openpyxl.Workbook) -> bytes:
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


async def sheets_of(data: bytes) -> dict[str, Sheet | SheetRefused]:
    async with Workbooks().unpacked(1, data) as output:
        return await finish_soon(read_sheets(output))


async def read(data: bytes) -> Sheet:
    [sheet] = (await sheets_of(data)).values()
    assert isinstance(sheet, Sheet)
    return sheet


async def refusal(data: bytes) -> str:
    with pytest.raises(SheetRefused) as raised:
        await read(data)
    return raised.value.why


async def test_the_first_sheet_that_is_shown_is_read_as_it_looks() -> None:
    data = workbook(
        [
            ["E-Mail", "Name", "Anzahl", "since"],
            [" zoë@example.com ", "Zoë", 2, dt.date(2030, 1, 2)],
            [],
            [None, "x", 2.5, True],
            ["'=a", "0010", 1e20, None],
        ],
        hidden_first=True,
    )
    assert is_workbook(data)
    assert [(row.number, row.cells) for row in (await read(data)).rows] == [
        (1, ("E-Mail", "Name", "Anzahl", "since")),
        (2, ("zoë@example.com", "Zoë", "2", "2030-01-02")),
        (4, ("", "x", "2.5", "True")),
        (5, ("=a", "0010", "1e+20")),
    ]


async def test_a_formula_that_no_program_has_computed_is_an_error_and_no_blank_cell() -> None:
    """Nothing is computed: as in a workbook that a program wrote and nobody has opened since."""
    data = workbook([["a@example.com", '=HYPERLINK("https://x.example", "y")', "=1+1", "x"]])
    assert (await read(data)).rows[0].cells == ("a@example.com", "#CALC!", "#CALC!", "x")
    assert is_error("#CALC!")


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("<c><f>A1</f></c>", "#CALC!"),
        ("<c r='B1' s='1'><f t='shared' si='0'/><v/></c>", "#CALC!"),
        ("<c s='1' ><f>\n&quot;&quot;</f>\n<v></v></c >", "#CALC!"),
        ('<c r="B1"><f>1+1</f><v>2</v></c>', "2"),
        ('<c r="B1" t="str"><f>IF(1,"")</f><v></v></c>', None),
        ('<c r="B1" t="str"><f>A1</f><v>y</v></c>', "y"),
        ('<c r="B1" t="n"/>', None),
        ('<c r="B1"><v>3</v></c>', "3"),
    ],
)
async def test_a_computed_formula_is_its_value(cell: str, shown: str | None) -> None:
    data, written = workbook([["a@example.com", "here"]]), io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(written, "w") as new:
        for name in old.namelist():
            part = old.read(name)
            new.writestr(name, re.sub(rb'<c r="B1".*?</c>', cell.encode(), part) if "worksheets/" in name else part)
    assert (await read(written.getvalue())).rows[0].cells[1:] == (() if shown is None else (shown,))


async def test_an_error_of_a_formula_is_a_text_and_no_blank_cell() -> None:
    book = openpyxl.Workbook()
    for row in (["a@example.com", "#N/A", "#REF!"], ["#N/A"]):
        book.active.append(row)
    assert [row.cells for row in (await read(saved(book))).rows] == [("a@example.com", "#N/A", "#REF!"), ("#N/A",)]


async def test_the_hidden_rows_of_each_sheet_are_read_and_counted() -> None:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, hidden in {"A & B": [2, 4, 9], "Other": [], "Last": [1]}.items():
        sheet = book.create_sheet(name)
        for row in (["a@example.com"], ["b@example.com"], ["c@example.com"], ["d@example.com"]):
            sheet.append(row)
        for number in hidden:
            sheet.row_dimensions[number].hidden = True
    found = await sheets_of(saved(book))
    assert [(name, one.hidden, len(one.rows)) for name, one in found.items() if isinstance(one, Sheet)] == [
        ("A & B", 2, 4),
        ("Other", 0, 4),
        ("Last", 1, 4),
    ]


@pytest.mark.slow
async def test_the_limits_are_those_of_other_files() -> None:
    assert len((await read(workbook([["a@example.com"]] * (MAX_ROWS + 1)))).rows) == MAX_ROWS + 1
    assert await refusal(workbook([["a@example.com"]] * (MAX_ROWS + 2))) == "rows"
    assert await refusal(workbook([["a", *[None] * (MAX_COLUMNS - 1), "x"]])) == "columns"
    assert await refusal(workbook([["x" * 1001]])) == "cell"
    assert await refusal(b"PK\x03\x04" + bytes(MAX_FILE_BYTES)) == "bytes"
    assert await refusal(workbook([])) == "empty"


async def test_blank_cells_of_wide_rows_do_not_grow() -> None:
    """An apostrophe in the last column of many rows is a few kilobytes, and was 65 megabytes of blank cells."""
    names = ["ok", "wide", "after"]
    book = openpyxl.Workbook()
    for name in names:
        book.create_sheet(name).append(["a@example.com"])
    del book["Sheet"]
    for row in range(2, 200):
        book["wide"].cell(row=row, column=1, value=f"a{row}@example.com")
        book["wide"].cell(row=row, column=16_384, value="'")
    async with Workbooks().unpacked(1, saved(book)) as output:
        assert len(output) < 400
    sheets = await sheets_of(saved(book))
    assert list(sheets) == names
    refused = sheets["wide"]
    assert isinstance(refused, SheetRefused)
    assert (refused.why, refused.row, refused.limit) == ("columns", 2, MAX_COLUMNS)
    assert isinstance(sheets["after"], Sheet)


async def test_a_sheet_is_made_in_small_steps_and_refused_rows_too() -> None:
    book = openpyxl.Workbook()
    for cell in ("'=" + "x" * 999, "x" * 1_002):
        sheet = book.create_sheet(str(len(cell)))
        for row in range(1, 401):
            sheet.append([f"a{row}@example.com", cell if row == 1 else "name"])
    async with Workbooks().unpacked(1, saved(book)) as output:
        lines = output.splitlines()
        steps = read_sheets(output)
        yields = 0
        while True:
            try:
                next(steps)
            except StopIteration as end:
                sheets = end.value
                break
            yields += 1
    assert max(map(len, lines)) < 30_000
    assert yields == len(lines) + 400
    assert len(sheets["1001"].rows) == 400
    assert (sheets["1002"].why, sheets["1002"].row, sheets["1002"].limit) == ("cell", 1, MAX_CELL)


async def test_two_sheets_of_one_name_are_one() -> None:
    """No spreadsheet program writes them. The reader finds the first one by its name."""
    book = openpyxl.Workbook()
    book.active.append(["a@example.com"])
    book.create_sheet("Other").append(["b@example.com"])
    data = saved(book)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = archive.read("xl/workbook.xml").replace(b'"Other"', b'"Sheet"')
    assert [row.cells for row in (await read(with_part(data, "xl/workbook.xml", names))).rows] == [("a@example.com",)]


@pytest.mark.parametrize(
    ("data", "why"), [(b"PK\x03\x04nothing", "kind"), (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "old")]
)
async def test_what_is_no_workbook_of_ours_is_refused(data: bytes, why: str) -> None:
    assert is_workbook(data)
    assert await refusal(data) == why


async def test_an_archive_of_something_else_is_refused() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("readme.txt", "hello")
    assert await refusal(file.getvalue()) == "kind"


def with_part(data: bytes, name: str, content: bytes) -> bytes:
    """The workbook with a part of it replaced."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        for part in old.namelist():
            if part != name:
                new.writestr(part, old.read(part))
        new.writestr(name, content)
    return file.getvalue()


@pytest.mark.slow
async def test_a_bomb_does_not_go_off() -> None:
    """A hundred megabytes in a hundred kilobytes, declared and not; and a sheet of one cell in the last corner, which would be 17 thousand million cells."""
    book = workbook([["a@example.com"]])
    with zipfile.ZipFile(io.BytesIO(book)) as archive:
        room = 64 * 1024 * 1024 - sum(part.file_size for part in archive.infolist())
    assert len((await read(with_part(book, "xl/media/x", bytes(room)))).rows) == 1
    assert await refusal(with_part(book, "xl/media/x", bytes(room + 1))) == "unpacked"
    sheet, xml = "xl/worksheets/sheet1.xml", b"<worksheet><sheetData><row><c><v>1</v></c></row></sheetData></worksheet>"
    longer = with_part(book, sheet, xml + bytes(100_000_000))
    declared, shorter = ((len(xml) + more).to_bytes(4, "little") for more in (100_000_000, 0))
    assert await refusal(longer.replace(declared, shorter)) == "broken"
    corner = openpyxl.Workbook()
    corner.active["A1"] = "a@example.com"
    corner.active.cell(row=1_048_576, column=16_384, value="x")
    assert await refusal(saved(corner)) in {"broken", "columns"}
    entities = b'<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">' + b"".join(
        b'<!ENTITY %c "%s">' % (98 + i, b"&%c;" % (97 + i) * 10) for i in range(12)
    )
    bomb = with_part(book, "xl/worksheets/sheet1.xml", entities + b"]><worksheet>&m;</worksheet>")
    assert await refusal(bomb) in {"broken", "empty"}


async def test_the_name_of_a_sheet_does_not_grow() -> None:
    """Each piece of a sheet has its name: with one of megabytes, 47 KB were 718 MB in the memory of the service."""
    data = workbook([["a@example.com"]])
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = archive.read("xl/workbook.xml")
    for length, is_read in ((255, True), (256, False)):
        named = with_part(data, "xl/workbook.xml", names.replace(b'"Sheet"', b'"%s"' % (b"n" * length)))
        if is_read:
            assert list(await sheets_of(named)) == ["n" * length]
        else:
            assert await refusal(named) == "broken"


async def test_a_workbook_that_breaks_its_reader_breaks_nothing_else() -> None:
    data = workbook([["a@example.com"]])
    broken = with_part(data, "xl/worksheets/sheet1.xml", b"<worksheet><sheetData><row><c")
    found = await asyncio.gather(refusal(broken), refusal(data[: len(data) // 2]), read(data))
    assert found[:2] == ["broken", "kind"]
    assert found[2].rows[0].cells == ("a@example.com",)


def test_the_program_knows_nothing_of_ours() -> None:
    """So it starts at once, and a fault in it has nothing to reach."""
    import largesse.drafts.workbook as module

    assert "largesse" not in Path(module.__file__).with_name("workbook_process.py").read_text()
