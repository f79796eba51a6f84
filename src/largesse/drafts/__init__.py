"""Drafts: what somebody puts together in the web application until it is sent.

Reading who it is for: a `sheet` is rows of cells, `text_sheet` reads one from CSV or pasted cells, `workbook` from an XLSX file, by
the program `workbook_process`, `mailboxes` a list of addresses as mail programs write it. `columns` guesses which column is what, `checking` holds each row to the rules of an order and tells
all that is wrong; `mending` puts rows right, `handing_out` makes the file of those that are wrong.

A `draft` is one send with all its steps; `keeping` has it in the database, for the person it is of alone, `erasing` drops those that hold an address. `desk` has it quoted and
placed, once; `price` is the quote line by line; `maintenance` says when one that nobody sends is old. Why so: docs/decisions/0028-drafts.md.
"""

from largesse.drafts.checking import Checked, CheckedRow, RowProblem
from largesse.drafts.columns import Columns, as_labelled, fits, guess_columns, heading_key
from largesse.drafts.desk import Desk, Placed
from largesse.drafts.draft import Draft, DraftContent
from largesse.drafts.handing_out import bad_rows_file
from largesse.drafts.keeping import (
    begin_draft,
    drop_draft,
    list_drafts,
    read_draft,
    read_sheet,
    remember_columns,
    remembered_columns,
    save_draft,
    save_sheet,
    sent_lately,
)
from largesse.drafts.mending import mended_sheet, merged_sheet
from largesse.drafts.price import PriceLines, price_lines
from largesse.drafts.sheet import MAX_FILE_BYTES, MAX_ROWS, Sheet, SheetRefused
from largesse.drafts.text_sheet import read_text_sheet, written_as_text
from largesse.drafts.workbook import SeveralSheets

__all__ = [
    "MAX_FILE_BYTES",
    "MAX_ROWS",
    "Checked",
    "CheckedRow",
    "Columns",
    "Desk",
    "Draft",
    "DraftContent",
    "Placed",
    "PriceLines",
    "RowProblem",
    "SeveralSheets",
    "Sheet",
    "SheetRefused",
    "as_labelled",
    "bad_rows_file",
    "begin_draft",
    "drop_draft",
    "fits",
    "guess_columns",
    "heading_key",
    "list_drafts",
    "mended_sheet",
    "merged_sheet",
    "price_lines",
    "read_draft",
    "read_sheet",
    "read_text_sheet",
    "remember_columns",
    "remembered_columns",
    "save_draft",
    "save_sheet",
    "sent_lately",
    "written_as_text",
]
