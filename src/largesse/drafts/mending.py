"""The file of the rows that are wrong, to be mended in a spreadsheet and handed in again.

Mending a sheet: single rows typed anew, and rows that come to those that are fine already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from largesse.base.text import csv_file
from largesse.drafts.checking import Checked, CheckedRow
from largesse.drafts.columns import Columns
from largesse.drafts.sheet import Sheet, SheetMaker

_HEADING = ("email", "name", "quantity", "row", "what is wrong")


def bad_rows_file(checked: Checked) -> bytes:
    """A CSV file of them, whose first columns are read again as they are, with each one's number and what is wrong with it."""
    rows = [
        (row.email, row.name, row.quantity, str(row.number), " ".join(problem.told for problem in row.problems))
        for row in checked.bad
    ]
    return csv_file([_HEADING, *rows])


# Of a sheet that is put together here: address, name and quantity.
_PLAIN = Columns(email=0, names=(1,), quantity=2)


def mended_sheet(sheet: Sheet, columns: Columns, typed: Mapping[int, Sequence[str]]) -> Sheet:
    """The sheet with what was typed, address, name and quantity, in the columns of the rows of those numbers.

    What has no column is left out. A name from two columns stands in the first of them afterwards. Raises SheetRefused.
    """
    maker = SheetMaker()
    for row in sheet.rows:
        cells = row.cells
        if row.number in typed:
            email, name, quantity = typed[row.number]
            written: dict[int | None, str] = dict(zip(columns.names, (name, ""), strict=False))
            written |= {columns.email: email, columns.quantity: quantity}
            width = max(len(cells), *(at + 1 for at in columns.used))
            # An address in a column that is not used was asked about: it is in the row's address now, or left out.
            unused = ["" if "@" in cell else cell for cell in (*cells, *([""] * (width - len(cells))))]
            cells = [written.get(at, unused[at]) for at in range(width)]
        maker.add(row.number, cells)
    return maker.sheet()


def merged_sheet(kept: Checked, more: Checked) -> tuple[Sheet, Columns]:
    """The rows of `kept` that are fine, then all of `more`, which is numbered on; and the columns of that. Raises SheetRefused."""
    maker = SheetMaker()
    fine = [row for row in kept.rows if not row.problems]
    last = max((row.number for row in fine), default=0)
    for row in fine:
        maker.add(row.number, _cells(row))
    for number, row in enumerate(more.rows, last + 1):
        maker.add(number, _cells(row))
    return maker.sheet(), _PLAIN


def _cells(row: CheckedRow) -> tuple[str, str, str]:
    return row.email, row.name, row.quantity
