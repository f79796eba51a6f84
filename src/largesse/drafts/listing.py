"""The list of a draft's recipients: searched, filtered, sorted and cut into pages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from largesse.base.email import email_key
from largesse.base.text import folded
from largesse.drafts.checking import Checked, CheckedRow

PAGE_ROWS = 50
# Rows on a page that shows rows to fix alone: all of them are fields of one form.
FIX_ROWS = 200
_GROUPED = str.maketrans("", "", " ,.'\N{RIGHT SINGLE QUOTATION MARK}\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}")


class View(msgspec.Struct, frozen=True):
    """Which rows of the list to show. Unknown values are ignored."""

    words: str = ""  # that the name, the address or the number contains
    state: str = ""  # one of STATES
    sort: str = ""  # one of SORTS, after a minus for the other direction
    page: int = 1  # from 1


class Listed(msgspec.Struct, frozen=True):
    """A page of the list."""

    rows: tuple[CheckedRow, ...]
    found: int  # recipients on all pages
    page: int
    pages: int
    counts: Mapping[
        str, int
    ]  # recipients by state and in all, whatever the search; the first of several duplicates does not count as one


STATES = ("ready", "fix", "repeated", "earlier")
SORTS: Mapping[str, Callable[[CheckedRow], Any]] = {
    "row": lambda row: row.number,
    "name": lambda row: (folded(row.name), row.number),
    "email": lambda row: (folded(row.email), row.number),
    "quantity": lambda row: (int(row.quantity) if row.quantity.isdecimal() else 1, row.number),
}


def list_rows(checked: Checked, view: View, earlier: Collection[str] = ()) -> Listed:
    """Returns the page of the list that a view shows. Without a chosen order, the rows to fix come first.

    `earlier` are the addresses that had the gift before, as returned by `email_key`.
    """
    of_state = _by_state(checked, earlier)
    counts = {"all": _recipients(checked.rows), **{name: _recipients(rows) for name, rows in of_state.items()}}
    counts["repeated"] = len([row for row in of_state["repeated"] if row.same_as is not None])
    found: Sequence[CheckedRow] = of_state.get(view.state, checked.rows)
    if view.words.strip():
        found = [row for row in found if _matches(row, view.words)]
    found = sorted(found, key=_order(view), reverse=view.sort.startswith("-"))
    most = FIX_ROWS if view.state == "fix" else PAGE_ROWS
    pages = max(1, -(-len(found) // most))
    page = min(max(view.page, 1), pages)
    return Listed(tuple(found[(page - 1) * most : page * most]), _recipients(found), page, pages, counts)


def _recipients(rows: Sequence[CheckedRow]) -> int:
    return sum(row.members for row in rows)


def _by_state(checked: Checked, earlier: Collection[str]) -> dict[str, list[CheckedRow]]:
    """Returns the rows of each of STATES. Among the repeated ones are the first rows of their addresses."""
    rows = checked.rows
    firsts = {row.same_as for row in rows if row.same_as is not None}
    return {
        "ready": [row for row in rows if not row.problems],
        "fix": list(checked.bad),
        "repeated": [row for row in rows if row.same_as is not None or row.number in firsts],
        "earlier": [row for row in rows if email_key(row.email) in earlier] if earlier else [],
    }


def _order(view: View) -> Callable[[CheckedRow], Any]:
    sort = SORTS.get(view.sort.removeprefix("-"))
    if sort is not None:
        return sort
    if view.state == "repeated":
        return lambda row: (row.same_as or row.number, row.number)
    return lambda row: (not row.problems, row.number)


def _matches(row: CheckedRow, words: str) -> bool:
    """Returns whether a row has all these words, without regard to letter case and accents, or is the row with that number."""
    if words.translate(_GROUPED) == str(row.number):
        return True
    text = folded(f"{row.name} {row.email}")
    return all(word in text for word in folded(words).split())
