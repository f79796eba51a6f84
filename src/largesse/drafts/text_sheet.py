"""Sheets written as text: CSV files of any spreadsheet, and cells pasted from one.

The encoding is what the file's mark says, else UTF-8, else that of Excel in the west; the separator is the one that makes most rows
alike.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from itertools import islice

from largesse.base.slices import Steps
from largesse.drafts.mailboxes import one_mailbox_a_line
from largesse.drafts.sheet import MAX_CELL, MAX_FILE_BYTES, Sheet, SheetMaker, SheetRefused

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SEPARATORS = "\t;,|"
_SAMPLED_ROWS = 50
_ROWS_A_STEP = 50


def read_text_sheet(data: bytes) -> Steps[Sheet]:
    """The sheet of a CSV file, or of cells pasted from a spreadsheet, some rows a step. Raises SheetRefused."""
    if len(data) > MAX_FILE_BYTES:
        raise SheetRefused("bytes", limit=MAX_FILE_BYTES)
    text = yield from one_mailbox_a_line(_decoded(data))
    text, separator = _separator_of(text)
    yield
    maker = SheetMaker()
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    read = 0
    while True:
        try:
            rows = list(islice(reader, _ROWS_A_STEP))
        except csv.Error as error:
            raise _refusal(error, text, separator) from None
        if not rows:
            return maker.sheet()
        for number, cells in enumerate(rows, read + 1):
            maker.add(number, cells)
        read += len(rows)
        yield


def _decoded(data: bytes) -> str:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            try:
                return data.removeprefix(mark).decode(encoding)
            except UnicodeDecodeError:
                raise SheetRefused("encoding") from None
    if b"\0" in data:  # no text of one byte a character has it
        raise SheetRefused("kind")
    for encoding in ("utf-8", "cp1252"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise SheetRefused("encoding")


def _separator_of(text: str) -> tuple[str, str]:
    """The text and its separator: the one it says (`sep=;`, as Excel writes it), else the one that fits best."""
    if text[:4].lower() == "sep=" and len(text) > 4 and text[4] in _SEPARATORS:
        return text.partition("\n")[2], text[4]
    return text, max(_SEPARATORS, key=lambda separator: _fit(text, separator))


def _fit(text: str, separator: str) -> tuple[int, int]:
    """How many of the first rows are of one width, more than one cell, when they are separated so; and that width."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        widths = Counter(len(row) for row in islice(reader, _SAMPLED_ROWS) if len(row) > 1)
    except csv.Error:
        return 0, 0
    return max(((count, width) for width, count in widths.items()), default=(0, 0))


def _refusal(error: csv.Error, text: str, separator: str) -> SheetRefused:
    """Why the text could not be read, and in which row."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    row = 1
    try:
        for row, _ in enumerate(reader, 2):  # noqa: B007 - the number is what is wanted
            pass
    except csv.Error:
        pass
    if "field limit" in str(error):
        return SheetRefused("cell", row=row, limit=MAX_CELL)
    return SheetRefused("quotes", row=row)
