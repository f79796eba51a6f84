"""The file of the rows that are wrong, to be mended in a spreadsheet and handed in again."""

from __future__ import annotations

from largesse.base.spreadsheets import csv_file
from largesse.drafts.checking import Checked

_HEADING = ("email", "name", "quantity", "row", "what is wrong")


def bad_rows_file(checked: Checked) -> bytes:
    """A CSV file of them, whose first columns are read again as they are, with each one's number and what is wrong with it."""
    rows = [
        (
            row.email,
            row.name,
            row.quantity,
            str(row.number),
            " ".join(problem.told for problem in row.problems),
        )
        for row in checked.bad
    ]
    return csv_file([_HEADING, *rows])
