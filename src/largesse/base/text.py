"""Which characters a text may hold: one rule for what comes by the API, in a world file and from a page.

Refused are control characters, which do nothing but harm where a text is shown, and bidirectional ones (Unicode Standard
Annex 9, section 2), which make it read as another: a sender named "Bank<U+202E>moc.live" looks like someone else's address.
A message alone may break its lines.

Keys made of names: what people call a thing, as commands and world files can name it.

Cells of files that spreadsheets open.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Collection, Iterable

# C0, DEL, C1, and lone surrogates, which no encoding has.
_CONTROL = r"\x00-\x1f\x7f-\x9f\ud800-\udfff"
_CONTROL_BUT_BREAKS = r"\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff"
_LINE_SEPARATORS = r"\u2028\u2029"
_BIDIRECTIONAL = r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"

_IN_A_KEY = re.compile(f"[{_CONTROL}]")
_IN_A_LINE = re.compile(f"[{_CONTROL}{_LINE_SEPARATORS}{_BIDIRECTIONAL}]+")
_IN_LINES = re.compile(f"[{_CONTROL_BUT_BREAKS}{_BIDIRECTIONAL}]")
_IS_BIDIRECTIONAL = re.compile(f"[{_BIDIRECTIONAL}]")


def unfit(text: str, *, line_breaks: bool = False) -> str | None:
    """Returns what `text` holds that no text for people may, in words that follow "must hold no"; None when it is fit.

    `line_breaks` are for a message alone.
    """
    return _named((_IN_LINES if line_breaks else _IN_A_LINE).search(text))


def unfit_key(text: str) -> str | None:
    """Returns the same of what a caller names a thing of its own by: control characters alone are refused."""
    return _named(_IN_A_KEY.search(text))


def cleaned(text: str, instead: str) -> str:
    """Returns `text` in one line, with `instead` for each run of characters that are not allowed."""
    return _IN_A_LINE.sub(instead, text)


def _named(found: re.Match[str] | None) -> str | None:
    if found is None:
        return None
    if _IS_BIDIRECTIONAL.match(found[0]):  # invisible, so it is named
        return f"bidirectional control characters (U+{ord(found[0][0]):04X})"
    return "control characters"


def folded(text: str) -> str:
    """Returns a text to search by, without regard to letter case and accents: `Zoë` is `zoe`."""
    if text.isascii():
        return text.lower()
    split = unicodedata.normalize("NFKD", text.casefold())
    return "".join(character for character in split if not unicodedata.combining(character))


_LONGEST = 60
_NOT_IN_A_KEY = re.compile(r"[^a-z0-9]+")


def free_key(name: str, taken: Collection[str], nameless: str) -> str:
    """Returns the name in small letters, digits and hyphens, numbered where that is taken; `nameless` for one that has none of them."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    wanted = _NOT_IN_A_KEY.sub("-", plain).strip("-")[:_LONGEST] or nameless
    key, number = wanted, 1
    while key in taken:
        number += 1
        key = f"{wanted}-{number}"
    return key


# What a spreadsheet takes for a formula when a cell begins with it (OWASP, CSV injection).
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
# By which spreadsheets know UTF-8.
_MARK = "\ufeff"


def plain_text(text: str) -> str:
    """Returns a text that no spreadsheet computes: with an apostrophe before what would begin a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def without_apostrophe(text: str) -> str:
    """Returns what `plain_text` was given, of a cell that came back."""
    return text[1:] if text.startswith("'") and text[1:].startswith(_FORMULA) else text


def csv_file(rows: Iterable[Iterable[str]]) -> bytes:
    """Returns a CSV file of texts, none of which a spreadsheet computes."""
    written = io.StringIO(newline="")
    written.write(_MARK)
    csv.writer(written).writerows(map(plain_text, row) for row in rows)
    return written.getvalue().encode()
