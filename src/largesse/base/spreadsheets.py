"""Cells of files that spreadsheets open."""

from __future__ import annotations

# What a spreadsheet takes for a formula when a cell begins with it (OWASP, CSV injection).
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def plain_text(text: str) -> str:
    """A text that no spreadsheet computes: with an apostrophe before what would begin a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text
