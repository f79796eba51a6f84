"""Sheets written as text: CSV files of any spreadsheet, and cells pasted from one.

The separator is the one that gives most rows the same width. The encoding is guessed. If names show that the guess was wrong, the cells are
converted, so that the file need not be stored.
"""

import csv
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import msgspec

from largesse.base.cooperative import Steps
from largesse.base.file_text import SINGLE_BYTE, FileText, NotText, read_text
from largesse.drafts.mailboxes import one_mailbox_a_line
from largesse.drafts.sheet import (
    MAX_CELL,
    MAX_COLUMNS,
    MAX_FILE_BYTES,
    MAX_ROWS,
    Sheet,
    SheetMaker,
    SheetRefused,
    SheetRow,
    lines_of,
)

_SEPARATORS = "\t;,|"
_SAMPLED_ROWS = 50
_CHARACTERS_A_STEP = 8_000
_MAX_LINES = 20 * MAX_ROWS  # this also counts blank lines and lines within quotation marks
# The limits of a row before it is split. Blank columns at its end and doubled quotation marks count.
_MAX_SEPARATORS = 16_384  # as many as a workbook has columns
_MAX_ROW_CHARACTERS = 131_072
# A whole cell in quotation marks with blanks around it, as people type it: `ada@example.com, "Byron, Ada", 2`.
_QUOTED = {one: re.compile(rf'({re.escape(one)}) +("[^"]*(?:""[^"]*)*") *(?=[{one}\n]|$)') for one in _SEPARATORS}
# A cell that begins with a quoted nickname, as spreadsheets copy it: `"Jane" Doe`. CSV would double its quotation marks.
_NICKNAMED = {
    one: re.compile(rf'(^|{re.escape(one)})("[^"\n{one}][^"\n]*" +[^"\n{one} ][^\n{one}]*)') for one in _SEPARATORS
}

_IN_THOUSANDS = re.compile(r" ?[1-9][0-9]{0,2}(?:,[0-9]{3})+")  # `1,000`, without a blank after its comma


def read_text_sheet(text: str) -> Steps[Sheet]:
    """Returns the sheet of a CSV file, or of cells pasted from a spreadsheet. Reads some rows in each step. Raises SheetRefused."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.count("\n") > _MAX_LINES:
        raise SheetRefused("rows", limit=MAX_ROWS)
    yield
    text = yield from one_mailbox_a_line(text)
    text, separator = yield from _separator_of(text)
    rows = _Rows(text, separator, strict=True)
    maker = SheetMaker(is_file=True)
    width: int | None = None  # of the headings; 0 without
    while True:
        try:
            cells = rows.next()
        except csv.Error:
            raise SheetRefused("quotes", row=rows.number) from None
        if cells is None:
            return maker.sheet()
        if len(cells) == 1 and "\t" in cells[0]:  # a row pasted from a spreadsheet between typed lines
            cells = cells[0].split("\t")
        if separator == "," and len(cells) > 1:
            if width is None:
                width = 0 if any("@" in cell for cell in cells) else len(cells)
            cells = _with_thousands(cells, width)
        maker.add(rows.number, cells)
        if rows.is_step:
            yield


class _Rows:
    """Splits a text into rows. Checks the limits of each row before it is split."""

    def __init__(self, text: str, separator: str, *, strict: bool) -> None:
        self.number = 0  # the number of the row that was read last, from 1
        self._separator = separator
        # Counts of the current row, which may have several lines in quotation marks.
        self._separators = self._characters = 0
        self._since_step = 0
        self._reader = csv.reader(self._lines(text), delimiter=separator, strict=strict)

    @property
    def is_step(self) -> bool:
        """Whether enough for a step has been read. If so, starts to count the next step."""
        if self._since_step < _CHARACTERS_A_STEP:
            return False
        self._since_step = 0
        return True

    def next(self) -> list[str] | None:
        """Returns the cells of the next row; None after the last. Raises SheetRefused and csv.Error."""
        self.number += 1
        self._separators = self._characters = 0
        return next(self._reader, None)

    def _lines(self, text: str) -> Iterator[str]:
        for line in lines_of(text):
            self._since_step += len(line)
            self._separators += line.count(self._separator, 0, _MAX_ROW_CHARACTERS)
            self._characters += len(line)
            if self._separators > _MAX_SEPARATORS:
                raise SheetRefused("columns", row=self.number, limit=MAX_COLUMNS)
            if self._characters > _MAX_ROW_CHARACTERS:
                raise SheetRefused("cell", row=self.number, limit=MAX_CELL)
            yield _QUOTED[self._separator].sub(r"\1\2", _NICKNAMED[self._separator].sub(_requoted, line))


def _with_thousands(cells: list[str], width: int) -> list[str]:
    """Returns the cells of a row with the number whole that its own comma divided: `1,000`.

    The row has more cells than there are headings. Without headings (`width` is 0), the number is at its end.
    """
    more = len(cells) - width
    for start in range(len(cells) - 1) if more > 0 else ():
        end = start + more + 1 if width else len(cells)
        if _IN_THOUSANDS.fullmatch(number := ",".join(cells[start:end])):
            return [*cells[:start], number, *cells[end:]]
    return cells


def _requoted(found: re.Match[str]) -> str:
    return '{}"{}"'.format(found[1], found[2].replace('"', '""'))


def _separator_of(text: str) -> Steps[tuple[str, str]]:
    """Returns the text and its separator. If the text does not name one, as Excel does by `sep=;`, returns the one that fits best.

    Raises SheetRefused.
    """
    if text[:4].lower() == "sep=" and len(text) > 4 and text[4] in _SEPARATORS:
        return text.partition("\n")[2], text[4]
    fits = {}
    for separator in _SEPARATORS:
        fits[separator] = yield from _fit(text, separator)
    return text, max(_SEPARATORS, key=lambda separator: fits[separator])


def _fit(text: str, separator: str) -> Steps[tuple[int, int]]:
    """Returns how many of the first rows have the same width with a separator, and that width. Ignores rows of one cell."""
    rows = _Rows(text, separator, strict=False)
    widths: Counter[int] = Counter()
    try:
        while rows.number < _SAMPLED_ROWS and (cells := rows.next()) is not None:
            widths[len(cells)] += len(cells) > 1
            if rows.is_step:
                yield
    except csv.Error:
        return 0, 0
    except SheetRefused as refusal:
        if refusal.why == "columns":
            raise
        return 0, 0
    return max(((count, width) for width, count in widths.items() if count), default=(0, 0))


# How files of other kinds begin that are text, too: PDF, vCard, calendar, RTF, HTML and XML.
_OTHER_KIND = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:%PDF-|BEGIN:V(?:CARD|CALENDAR)|\{\\rtf|<!DOCTYPE|<html|<table|<\?xml|[\[{]\s*[\"{])",
    re.IGNORECASE,
)
_OTHERS = frozenset({"utf-8", *SINGLE_BYTE})
TWICE = "twice"  # not an encoding, but UTF-8 text that was read as Windows-1252 and saved again
_ODD_LETTERS = re.compile(r"[^\W\d_a-zA-Z]{3}")
_CAPITAL_WITHIN = re.compile(r"(?<=[a-z])[^\W\d_]|(?<=[A-Z])[^\W\d_](?=[a-z])")
_NAME_SIGNS = frozenset("\u2019\u00b7\u00aa\u00ba\u2010\u2013\u00a0")
# Letters of western European and Turkish names, Cyrillic and Greek vowels, and frequent Arabic letters. Other letters count less.
_FREQUENT = frozenset(
    "\u011f\u0131\u015f\u0430\u0435\u0438\u043e\u0443\u044b\u044f\u0456\u03b1\u03b5\u03b7\u03b9\u03bf\u03c5\u03c9\u03ac\u03ad\u03ae\u03af\u03cc\u03cd\u03ce"
    "\u0627\u062d\u062f\u0631\u0639\u0644\u0645\u0646\u0647\u0648\u064a"
    "\u00e0\u00e1\u00e2\u00e3\u00e4\u00e5\u00e6\u00e7\u00e8\u00e9\u00ea\u00eb\u00ed\u00ee\u00ef\u00f1\u00f3\u00f4\u00f5\u00f6\u00f8\u00fa\u00fb\u00fc\u00df"
)
_GREEK = "\u0370"  # the first character after those of the Latin alphabet
_SCRIPTS = frozenset({"LATIN", "CYRILLIC", "GREEK", "ARABIC"})
_HAS_ASCII = re.compile("[A-Za-z]")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
_SEPARATED = re.compile(r"[\s,;|\"]")
_SIGNS_AROUND = re.compile(r"^[\W\d_]+|[\W\d_]+$")
# How many names are examined, and how long each may be.
_MOST_NAMES = 200
_LONGEST_NAME = 60
_MOST_EXAMINED = 20_000  # characters beyond ASCII


class Offer(msgspec.Struct, frozen=True):
    """A better encoding of a file, or TWICE, with an example of a name before and after."""

    encoding: str
    before: str
    after: str


def read_text_file(data: bytes) -> FileText:
    """Returns the text of a file, within the limit of sheets. Raises SheetRefused."""
    if len(data) > MAX_FILE_BYTES:
        raise SheetRefused("bytes", limit=MAX_FILE_BYTES)
    if _OTHER_KIND.match(data):
        raise SheetRefused("kind")
    try:
        file = read_text(data)
    except NotText as error:
        raise SheetRefused(error.why) from None
    encoding = _encoding_of_words(file) if file.encoding in SINGLE_BYTE else file.encoding
    return file if encoding == file.encoding else FileText(data.decode(encoding), encoding, file.offered)


def _encoding_of_words(file: FileText) -> str:
    """Returns the encoding in which all words with letters beyond ASCII look right; otherwise the file's own.

    Signs around a word, such as quotation marks and the euro, tell nothing. A word has letters of ASCII, too.
    """
    words = list(islice(_words_beyond_ascii(file.text), _MOST_NAMES))
    offer = better_encoding(words, file.encoding, file.offered)
    if offer is None or offer.encoding == TWICE:  # the page offers to repair it
        return file.encoding
    is_odd = any(_oddness(_converted(one, file.encoding, offer.encoding)) for one in words)
    return file.encoding if is_odd else offer.encoding


def _words_beyond_ascii(text: str) -> Iterator[str]:
    """Yields the words of a text that have letters of ASCII and others, without the signs around them."""
    end = 0
    for found in islice(_BEYOND_ASCII.finditer(text), _MOST_EXAMINED):
        if (at := found.start()) < end:
            continue
        before = _SEPARATED.split(text[max(end, at - _LONGEST_NAME) : at])[-1]
        after = _SEPARATED.split(text[at : at + _LONGEST_NAME], maxsplit=1)[0]
        end = at + len(after)
        word = _SIGNS_AROUND.sub("", before + after)
        if _HAS_ASCII.search(word) and not word.isascii():
            yield word


def converted(sheet: Sheet, old: str, new: str, keep: Iterable[int] = ()) -> Sheet:
    """Converts a sheet from one encoding to another. Rows to keep, and cells that cannot be converted, stay."""
    kept = frozenset(keep)
    rows = (
        row if row.number in kept else SheetRow(row.number, tuple(_converted(cell, old, new) for cell in row.cells))
        for row in sheet.rows
    )
    return Sheet(list(rows))


def repaired(sheet: Sheet) -> Sheet:
    """Repairs a sheet whose text was encoded twice."""
    return converted(sheet, "cp1252", "utf-8")


def better_encoding(names: Iterable[str], encoding: str, offered: Sequence[str]) -> Offer | None:
    """Returns the encoding in which these names look more like names. None if they have no odd letters, or if no encoding is better."""
    looked_at = list(islice((one for one in names if len(one) <= _LONGEST_NAME and not one.isascii()), _MOST_NAMES))
    odd = [name for name in looked_at if _oddness(name)]
    if not odd:
        return None
    others = offered if encoding in SINGLE_BYTE else ()
    candidates = [
        (TWICE, "cp1252", "utf-8"),
        *((one, encoding, one) for one in others if one in _OTHERS and one != encoding),
    ]
    best, best_score = None, _score(looked_at)
    for name, old, new in candidates:
        found = [_converted(one, old, new) for one in looked_at]
        if found != looked_at and _score(found) > best_score:
            best_score = _score(found)
            shown = next((one for one in odd if _converted(one, old, new) != one), odd[0])
            best = Offer(name, shown, _converted(shown, old, new))
    return best


def _score(names: Iterable[str]) -> float:
    """Returns how much the texts look like names. Frequent letters raise the score most, and odd letters lower it."""
    score = 0.0
    for name in names:
        score -= 2 * _oddness(name)
        score += sum(1.0 if one in _FREQUENT else 0.4 for one in name if not one.isascii() and one.isalpha())
    return score


def _oddness(name: str) -> int:
    """Returns how many odd parts a name has: signs, capitals within a word, accents in a row, and words with two alphabets."""
    signs = sum(
        not one.isascii() and one not in _NAME_SIGNS and unicodedata.category(one)[0] not in "LM" for one in name
    )
    capitals = sum(found[0].isupper() and not found[0].isascii() for found in _CAPITAL_WITHIN.finditer(name))
    on_end = sum("LATIN" in unicodedata.name(found[0][0], "") for found in _ODD_LETTERS.finditer(name))
    is_latin = max(name, default="") < _GREEK
    return signs + capitals + on_end + (0 if is_latin else sum(len(_scripts(word)) > 1 for word in name.split()))


def _scripts(word: str) -> frozenset[str]:
    """Returns the alphabets of a word's letters. Ignores other scripts, as Japanese words may have several."""
    return _SCRIPTS & {unicodedata.name(one, "").partition(" ")[0] for one in word if one.isalpha()}


def _converted(cell: str, old: str, new: str) -> str:
    if cell.isascii():
        return cell
    try:
        return cell.encode(old).decode(new)
    except UnicodeError:
        return cell
