"""Corrects a sheet: replaces rows, and adds rows. Writes the rows with faults to a file."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from largesse.base.text import csv_file
from largesse.drafts.checking import Checked, CheckedRow
from largesse.drafts.columns import Columns
from largesse.drafts.sheet import Sheet, SheetMaker

_HEADING = ("email", "name", "quantity", "row", "what is wrong")


def bad_rows_file(checked: Checked) -> bytes:
    """Returns a CSV file of rows with faults. Its first columns can be imported again. The others are the row's number and its faults."""
    rows = [
        (row.email, row.name, row.quantity, str(row.number), " ".join(problem.message for problem in row.problems))
        for row in checked.bad
    ]
    return csv_file([_HEADING, *rows])


class Typed(msgspec.Struct, frozen=True):
    """The typed values of a row in the list."""

    email: str
    name: str = ""
    quantity: str = ""

    @property
    def is_blank(self) -> bool:
        """Whether all values are blank."""
        return not (self.email.strip() or self.name.strip() or self.quantity.strip())


def mended_sheet(
    sheet: Sheet, columns: Columns, typed: Mapping[int, Typed], more: Sequence[Typed] = ()
) -> tuple[Sheet, Columns]:
    """Returns the sheet with typed values in some rows, and with more rows at its end. Removes blank rows.

    A name from two columns moves to the first one. A value without a column gets a new one. Raises SheetRefused.
    """
    columns = _with_room(columns, sheet.width, [*typed.values(), *more])
    maker = SheetMaker()
    for row in sheet.rows:
        new = typed.get(row.number)
        maker.add(row.number, row.cells if new is None else [] if new.is_blank else _written(new, row.cells, columns))
    for number, one in enumerate(more, 1 + max((row.number for row in sheet.rows), default=0)):
        maker.add(number, [] if one.is_blank else _written(one, (), columns))
    return maker.sheet(may_be_blank=True), columns


def as_typed(row: CheckedRow) -> Typed:
    """Returns the values to type for this row."""
    return Typed(row.email, row.name, row.quantity)


def _with_room(columns: Columns, width: int, typed: Collection[Typed]) -> Columns:
    """Returns the columns with new ones behind the last for a name or quantity that the sheet has no column for."""
    if columns.email is None:
        columns = msgspec.structs.replace(columns, email=width)
        width += 1
    if not columns.names and any(one.name.strip() for one in typed):
        columns = msgspec.structs.replace(columns, names=(width,))
        width += 1
    if columns.quantity is None and any(one.quantity.strip() not in {"", "1"} for one in typed):
        columns = msgspec.structs.replace(columns, quantity=width)
    return columns


def _written(typed: Typed, cells: Sequence[str], columns: Columns) -> list[str]:
    """Returns the cells of a row with the typed values.

    Removes an address in an unused column: the person saw it beside the row, and used it or not.
    """
    written: dict[int | None, str] = dict(zip(columns.names, (typed.name, ""), strict=False))
    written |= {columns.email: typed.email, columns.quantity: typed.quantity}
    width = max(len(cells), *(at + 1 for at in columns.used))
    unused = ["" if "@" in cell else cell for cell in (*cells, *([""] * (width - len(cells))))]
    return [written.get(at, unused[at]) for at in range(width)]
