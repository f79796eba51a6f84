"""The characters that a text may have: one rule for the API, seed files and pages.

Control characters are refused, as they only do harm where a text is shown. So are bidirectional ones (Unicode Standard Annex 9,
section 2), which make a text look like another: a sender named "Bank<U+202E>moc.live" looks like someone else's address.
Only a message may have line breaks.

Also here: keys made from names, for commands and seed files, and cells of files that spreadsheets open.
"""

import csv
import io
import re
import unicodedata
from collections.abc import Collection, Iterable

# C0, DEL, C1, and lone surrogates, which no encoding can represent.
_CONTROL = r"\x00-\x1f\x7f-\x9f\ud800-\udfff"
_CONTROL_BUT_BREAKS = r"\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff"
_LINE_SEPARATORS = r"\u2028\u2029"
_BIDIRECTIONAL = r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"

_INVISIBLE = rf"\s\xad\u200b-\u200d\u2060-\u2064\ufeff{_BIDIRECTIONAL}"

_IN_A_KEY = re.compile(f"[{_CONTROL}]")
_IN_A_LINE = re.compile(f"[{_CONTROL}{_LINE_SEPARATORS}{_BIDIRECTIONAL}]+")
_IN_LINES = re.compile(f"[{_CONTROL_BUT_BREAKS}{_BIDIRECTIONAL}]")
_IS_BIDIRECTIONAL = re.compile(f"[{_BIDIRECTIONAL}]")
_AT_START = re.compile(f"[{_INVISIBLE}]+")
_FOLDED_AT_ONCE = 256  # characters


def unfit(text: str, *, line_breaks: bool = False) -> str | None:
    """Returns the kind of characters that `text` may not have, in words that follow "must not contain". None if the text is valid.

    `line_breaks` allows them, for a message.
    """
    return _named((_IN_LINES if line_breaks else _IN_A_LINE).search(text))


def unfit_key(text: str) -> str | None:
    """Returns the same as `unfit`, for a reference that a caller chooses: only control characters are refused."""
    return _named(_IN_A_KEY.search(text))


def trimmed(text: str) -> str:
    """Returns a typed or pasted text without blanks around it, and without the invisible characters that programs copy with it."""
    start = _AT_START.match(text)
    end = _AT_START.match(text[::-1])
    return text[start.end() if start else 0 : len(text) - (end.end() if end else 0)]


def cleaned(text: str, instead: str) -> str:
    """Returns `text` in one line, with `instead` for each run of characters that are not allowed."""
    return _IN_A_LINE.sub(instead, text)


def _named(found: re.Match[str] | None) -> str | None:
    if found is None:
        return None
    if _IS_BIDIRECTIONAL.match(found[0]):  # these are invisible, so the text names them
        return f"bidirectional control characters (U+{ord(found[0][0]):04X})"
    return "control characters"


def folded(text: str) -> str:
    """Returns a text for searches that ignore letter case and accents: `Zoë` becomes `zoe`."""
    if text.isascii():
        return text.lower()
    plain = text.casefold()
    # In slices: ordering the accents of one letter takes minutes if there are a hundred thousand. All accents are removed, so no order is lost.
    slices = (plain[at : at + _FOLDED_AT_ONCE] for at in range(0, len(plain), _FOLDED_AT_ONCE))
    split = "".join(unicodedata.normalize("NFKD", one) for one in slices)
    return "".join(character for character in split if not unicodedata.combining(character))


def search_words(text: str) -> list[str]:
    """Returns the words of a search, folded, without commas around them: `Byron, Ada` finds `Ada Byron`."""
    return [word for part in folded(text).split() if (word := part.strip(",;"))]


def typed_numbers(text: str) -> list[str]:
    """Returns the spellings in which a typed tracking number may be stored: `rm 12 gb` may be `RM12GB`."""
    joined = "".join(text.split())
    return list(dict.fromkeys((text, joined, text.upper(), joined.upper())))


def has_words(text: str, words: Iterable[str]) -> bool:
    """Returns whether a text contains each of some `search_words`. Ignores letter case and accents."""
    searched = folded(text)
    return all(word in searched for word in words)


def plain_digits(text: str) -> str:
    """Returns a text with the digits of any script as `0` to `9`."""
    return text if text.isascii() else "".join(str(unicodedata.decimal(one, one)) for one in text)


def like_containing(word: str) -> str:
    """Returns the pattern of SQL's LIKE for texts that contain the word. Wildcards in the word match themselves."""
    literal = word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{literal}%"


_NOT_IN_A_KEY = re.compile(r"[^a-z0-9]+")
_NAMED = 1_000  # characters of a name that its key is made from; to order thousands of accents takes long


def free_key(name: str, taken: Collection[str], nameless: str, *, joint: str = "-", longest: int = 60) -> str:
    """Returns a key made from a name: small letters, digits and `joint`, or else `nameless`. Adds a number to a key that is taken: `main-2`.

    Without the number it has at most `longest` characters.
    """
    plain = unicodedata.normalize("NFKD", name[:_NAMED]).encode("ascii", "ignore").decode().lower()
    wanted = _NOT_IN_A_KEY.sub(joint, plain).strip(joint)[:longest] or nameless
    key, number = wanted, 1
    while key in taken:
        number += 1
        key = f"{wanted}{joint}{number}"
    return key


# A spreadsheet reads a cell that begins with one of these as a formula. Some accept full-width signs too (OWASP, CSV injection).
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
# A spreadsheet may split cells at the separator of its own country, even inside quotes.
# So the text after such a separator may begin a formula too. The smiley ";-)" does not.
_SPLIT = r'([,;\t\r\n]"*)'
_BEGINS_FORMULA = r"(?=[=@\uff1d\uff0b\uff0d\uff20]|[+-][\w(.\"'+-])"
# A text that has an apostrophe there already gets another, so that the import, which takes one away, returns the text.
_INSIDE = re.compile(f"{_SPLIT}(?='*{_BEGINS_FORMULA})")
_INSIDE_PLAIN = re.compile(f"{_SPLIT}'(?='*{_BEGINS_FORMULA})")
# The byte order mark, which tells spreadsheets that a file is UTF-8.
_MARK = "\ufeff"


def plain_text(text: str) -> str:
    """Returns a text that no spreadsheet computes: puts an apostrophe before anything that would begin a formula."""
    plain = _INSIDE.sub(r"\1'", text)
    return f"'{plain}" if text.lstrip("'").startswith(_FORMULA) else plain


# Longer numbers lose digits in spreadsheets, and zeros in front are dropped.
_NOT_WHOLE = re.compile(r"'*(?:0[0-9]+|[0-9]{12,})")


def whole_number(text: str | None) -> str | None:
    """Returns a reference that spreadsheets show with all its digits: puts an apostrophe before one that they would change."""
    return f"'{text}" if text and _NOT_WHOLE.fullmatch(text) else text


# Programs write `="00123"` so that spreadsheets show the zeros.
_QUOTED = re.compile('="([^"]*)"')


def without_apostrophe(text: str) -> str:
    """Returns a cell's text without the apostrophes that `plain_text` or `whole_number` added, and `00123` for `="00123"`."""
    if quoted := _QUOTED.fullmatch(text):
        return quoted[1]
    bare = text.removeprefix("'")
    is_marked = bare.lstrip("'").startswith(_FORMULA) or _NOT_WHOLE.fullmatch(bare)
    return _INSIDE_PLAIN.sub(r"\1", bare if is_marked else text)


# What spreadsheets save if a formula failed (`#N/A`, `#NV`, `#REF!`, `#NAME?`), or if a column is too narrow (`####`).
_ERROR = re.compile(r"#(?:N/A|NV|[A-Z]{3,11}[!?]|DIV/0!|#{2,})")
# A long number as spreadsheets save it: `4.90123E+12`.
_ROUNDED = re.compile(r"[0-9](?:[.,][0-9]+)?[eE]\+[0-9]{2,3}|[0-9]{16,}\.0")


def is_error(cell: str) -> bool:
    """Returns whether a cell, or a word of it, is the error of a formula."""
    return "#" in cell and any(map(_ERROR.fullmatch, cell.split()))


def is_rounded(cell: str) -> bool:
    """Returns whether a cell is a number whose last digits a spreadsheet lost."""
    return _ROUNDED.fullmatch(cell) is not None


def csv_file(rows: Iterable[Iterable[str]]) -> bytes:
    """Returns a CSV file. No spreadsheet computes its texts."""
    written = io.StringIO(newline="")
    written.write(_MARK)
    csv.writer(written).writerows(map(plain_text, row) for row in rows)
    return written.getvalue().encode()


# The order matters, because a browser's user agent also names the browsers that it descends from.
_BROWSERS = (("Edg", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("Chrom", "Chrome"), ("Safari/", "Safari"))
_SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iOS"),
    ("iPad", "iPadOS"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)


def browser_and_system(name: str) -> str:
    """Returns the browser and system of a user agent, such as `Firefox, Linux`; its start if neither is known."""
    browser = next((shown for mark, shown in _BROWSERS if mark in name), "")
    system = next((shown for mark, shown in _SYSTEMS if mark in name), "")
    return ", ".join(part for part in (browser, system) if part) or name[:40]
