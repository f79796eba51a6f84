"""Cells of files that spreadsheets open."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

# What a spreadsheet takes for a formula when a cell begins with it (OWASP, CSV injection).
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
# By which spreadsheets know UTF-8.
_MARK = "\ufeff"


def plain_text(text: str) -> str:
    """A text that no spreadsheet computes: with an apostrophe before what would begin a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def without_apostrophe(text: str) -> str:
    """What `plain_text` was given, of a cell that came back."""
    return text[1:] if text.startswith("'") and text[1:].startswith(_FORMULA) else text


def csv_file(rows: Iterable[Iterable[str]]) -> bytes:
    """A CSV file of texts, none of which a spreadsheet computes."""
    written = io.StringIO(newline="")
    written.write(_MARK)
    csv.writer(written).writerows(map(plain_text, row) for row in rows)
    return written.getvalue().encode()
