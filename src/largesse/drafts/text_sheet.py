"""Sheets written as text: CSV files of any spreadsheet, and cells pasted from one.

The separator is the one that gives most rows the same width.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator

from largesse.base.cooperative import Steps
from largesse.drafts.mailboxes import one_mailbox_a_line
from largesse.drafts.sheet import MAX_CELL, MAX_COLUMNS, MAX_ROWS, Sheet, SheetMaker, SheetRefused, lines_of

_SEPARATORS = "\t;,|"
_SAMPLED_ROWS = 50
_CHARACTERS_A_STEP = 8_000
_MAX_LINES = 20 * MAX_ROWS  # blank ones, and those within quotation marks, are lines too
# The limits of a row before it is split. Blank columns at its end and doubled quotation marks count.
_MAX_SEPARATORS = 16_384  # as many as a workbook has columns
_MAX_ROW_CHARACTERS = 131_072


def read_text_sheet(text: str) -> Steps[Sheet]:
    """Returns the sheet of a CSV file, or of cells pasted from a spreadsheet, some rows a step. Raises SheetRefused."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.count("\n") > _MAX_LINES:
        raise SheetRefused("rows", limit=MAX_ROWS)
    yield
    text = yield from one_mailbox_a_line(text)
    text, separator = yield from _separator_of(text)
    rows = _Rows(text, separator, strict=True)
    maker = SheetMaker()
    while True:
        try:
            cells = rows.next()
        except csv.Error:
            raise SheetRefused("quotes", row=rows.number) from None
        if cells is None:
            return maker.sheet()
        if len(cells) == 1 and "\t" in cells[0]:  # pasted from a spreadsheet among typed lines
            cells = cells[0].split("\t")
        maker.add(rows.number, cells)
        if rows.is_step:
            yield


class _Rows:
    """Splits a text into rows. Checks the limits of each row before it is split."""

    def __init__(self, text: str, separator: str, *, strict: bool) -> None:
        self.number = 0  # of the row that was read last, from 1
        self._separator = separator
        self._separators = self._characters = 0  # of the row so far: one in quotation marks has several lines
        self._since_step = 0
        self._reader = csv.reader(self._lines(text), delimiter=separator, strict=strict)

    @property
    def is_step(self) -> bool:
        """Whether a step has been read. Then counts again."""
        if self._since_step < _CHARACTERS_A_STEP:
            return False
        self._since_step = 0
        return True

    def next(self) -> list[str] | None:
        """Returns the cells of the next row; None after the last. Raises SheetRefused and csv.Error."""
        self.number += 1
        self._separators = self._characters = 0
        return next(self._reader, None)

    def _lines(self, text: str) -> Iterator[str]:
        for line in lines_of(text):
            self._since_step += len(line)
            self._separators += line.count(self._separator, 0, _MAX_ROW_CHARACTERS)
            self._characters += len(line)
            if self._separators > _MAX_SEPARATORS:
                raise SheetRefused("columns", row=self.number, limit=MAX_COLUMNS)
            if self._characters > _MAX_ROW_CHARACTERS:
                raise SheetRefused("cell", row=self.number, limit=MAX_CELL)
            yield line


def _separator_of(text: str) -> Steps[tuple[str, str]]:
    """Returns the text and its separator: the one it names (`sep=;`, as Excel writes it), else the one that fits best. Raises SheetRefused."""
    if text[:4].lower() == "sep=" and len(text) > 4 and text[4] in _SEPARATORS:
        return text.partition("\n")[2], text[4]
    fits = {}
    for separator in _SEPARATORS:
        fits[separator] = yield from _fit(text, separator)
    return text, max(_SEPARATORS, key=lambda separator: fits[separator])


def _fit(text: str, separator: str) -> Steps[tuple[int, int]]:
    """Returns how many of the first rows have the same width, above one cell, with a separator; and that width."""
    rows = _Rows(text, separator, strict=False)
    widths: Counter[int] = Counter()
    try:
        while rows.number < _SAMPLED_ROWS and (cells := rows.next()) is not None:
            widths[len(cells)] += len(cells) > 1
            if rows.is_step:
                yield
    except csv.Error:
        return 0, 0
    except SheetRefused as refusal:
        if refusal.why == "columns":
            raise
        return 0, 0
    return max(((count, width) for width, count in widths.items() if count), default=(0, 0))
