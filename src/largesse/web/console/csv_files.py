"""CSV files as spreadsheets of the reader's language open them, without formulas."""

import csv
import io
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Sequence
from decimal import Decimal

from largesse.base.text import plain_text


async def csv_lines(
    columns: Sequence[str], rows: Iterable[Sequence[object]] | AsyncIterable[Sequence[object]], mark: str
) -> AsyncIterator[str]:
    """Yields the lines of a file with the decimal mark `mark`. Where it is a comma, semicolons separate the cells."""
    # Spreadsheets recognise UTF-8 by the byte order mark.
    yield "\ufeff" + _line(columns, mark)
    if isinstance(rows, AsyncIterable):
        async for row in rows:
            yield _line(row, mark)
    else:
        for row in rows:
            yield _line(row, mark)


def _line(cells: Sequence[object], mark: str) -> str:
    line = io.StringIO()
    csv.writer(line, delimiter=";" if mark == "," else ",").writerow([_cell(cell, mark) for cell in cells])
    return line.getvalue()


def _cell(cell: object, mark: str) -> object:
    if isinstance(cell, str):
        return plain_text(cell)
    if isinstance(cell, Decimal | float):
        return str(cell).replace(".", mark)
    return "" if cell is None else cell
