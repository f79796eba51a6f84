"""OpenDocument workbooks (ODS): what LibreOffice writes is read as it looks, and files that are made to do harm end within the limits."""

import io
import zipfile

import pytest
from tests.drafts.test_workbook import read, refusal, sheets_of

from largesse.base.text import is_error
from largesse.drafts.sheet import Sheet

SPREADSHEET = "application/vnd.oasis.opendocument.spreadsheet"
_NAMES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text", "style")
)
_CALCEXT = 'xmlns:calcext="urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0"'
_MANIFEST = (
    '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
    f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{SPREADSHEET}"/></manifest:manifest>'
)
_HIDDEN_SHEET = (
    '<office:automatic-styles><style:style style:name="ta2" style:family="table">'
    '<style:table-properties table:display="false"/></style:style></office:automatic-styles>'
)


def document(*tables: str, kind: str = SPREADSHEET) -> bytes:
    file = io.BytesIO()
    body = f"{_HIDDEN_SHEET}<office:body><office:spreadsheet>{''.join(tables)}</office:spreadsheet></office:body>"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", kind, zipfile.ZIP_STORED)
        archive.writestr("META-INF/manifest.xml", _MANIFEST)
        archive.writestr(
            "content.xml",
            f'<?xml version="1.0" encoding="UTF-8"?><office:document-content {_NAMES} {_CALCEXT}>{body}</office:document-content>',
        )
    return file.getvalue()


def table(*rows: str, name: str = "List", more: str = "") -> str:
    return f'<table:table table:name="{name}"{more}>{"".join(rows)}</table:table>'


def row(*cells: str, more: str = "") -> str:
    return f"<table:table-row{more}>{''.join(cells)}</table:table-row>"


def cell(shown: str, kind: str = "string", more: str = "") -> str:
    return f'<table:table-cell office:value-type="{kind}" {more}><text:p>{shown}</text:p></table:table-cell>'


BLANK_REST = row(
    '<table:table-cell table:number-columns-repeated="16384"/>', more=' table:number-rows-repeated="1048000"'
)


async def test_a_list_is_read_as_it_looks() -> None:
    data = document(
        table(row(cell("secret@example.com")), name="Hidden", more=' table:style-name="ta2"'),
        table(
            row(cell("E-Mail"), cell("Anzahl"), cell("since"), cell("paid")),
            row(
                cell("zoë@example.com"),
                cell("2", "float", 'office:value="2"'),
                cell("02.01.30", "date", 'office:date-value="2030-01-02"'),
                cell("TRUE", "boolean", 'office:boolean-value="true"'),
                '<table:table-cell table:number-columns-repeated="1020"/>',
            ),
            row('<table:table-cell table:number-columns-repeated="1024"/>'),
            row(
                cell("bo@example.com", more='table:number-columns-repeated="2"'), more=' table:number-rows-repeated="2"'
            ),
            BLANK_REST,
        ),
    )
    assert [(one.number, one.cells) for one in (await read(data)).rows] == [
        (1, ("E-Mail", "Anzahl", "since", "paid")),
        (2, ("zoë@example.com", "2", "2030-01-02", "True")),
        (4, ("bo@example.com", "bo@example.com")),
        (5, ("bo@example.com", "bo@example.com")),
    ]


async def test_errors_and_formulas_without_a_value_are_no_blank_cells() -> None:
    data = document(
        table(
            row(
                cell("a@example.com"),
                cell("#N/A", more='table:formula="of:=NA()" office:string-value="" calcext:value-type="error"'),
                cell("Err:502", more='table:formula="of:=SQRT(-1)" office:string-value="" calcext:value-type="error"'),
                '<table:table-cell table:formula="of:=[.A1]"/>',
                '<table:table-cell table:formula="of:=[.A1]"></table:table-cell>',
                cell("x"),
            )
        )
    )
    cells = (await read(data)).rows[0].cells
    assert (cells[0], cells[-1], len(cells)) == ("a@example.com", "x", 6)
    assert all(map(is_error, cells[1:5])), cells


async def test_hidden_rows_are_counted() -> None:
    data = document(
        table(
            row(cell("email")),
            row(cell("a@example.com"), more=' table:visibility="filter"'),
            row(cell("b@example.com"), more=' table:number-rows-repeated="2"'),
            row(cell("c@example.com"), more=' table:number-rows-repeated="3" table:visibility="collapse"'),
            row(cell("d@example.com")),
        )
    )
    [found] = (await sheets_of(data)).values()
    assert isinstance(found, Sheet)
    assert (len(found.rows), found.hidden) == (8, 4)


async def test_another_document_is_refused() -> None:
    assert await refusal(document(kind="application/vnd.oasis.opendocument.text")) == "kind"
    assert await refusal(document(kind=SPREADSHEET + " " * 100_000)) == "kind"


@pytest.mark.parametrize(
    "rows",
    [
        (
            row(
                cell("a" * 1000, more='table:number-columns-repeated="1000"'),
                more=' table:number-rows-repeated="1000000"',
            ),
        ),
        (row(cell("a")), BLANK_REST, row('<table:table-cell table:number-columns-repeated="16383"/>', cell("z"))),
        (row(cell("a"), more=' table:number-rows-repeated="99999999999999999999"'),),
        (row(cell("a"), more=' table:visibility="filter" table:number-rows-repeated="99999999"'),),
    ],
)
async def test_a_small_file_that_repeats_cells_without_end_is_refused(rows: tuple[str, ...]) -> None:
    assert await refusal(document(table(*rows))) in {"broken", "rows", "columns", "characters"}


async def test_a_file_that_unpacks_to_too_much_is_refused() -> None:
    assert await refusal(document(table(row(cell("a" * 70_000_000))))) == "unpacked"
