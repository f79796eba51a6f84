"""A sheet: the rows of a file, or of cells that were pasted or typed, within limits."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from largesse.base.errors import InvalidRequest
from largesse.base.text import trimmed, without_apostrophe
from largesse.orders.recipients import MAX_CODES

MAX_FILE_BYTES = 4 * 1024 * 1024
MAX_ROWS = MAX_CODES  # without the heading
MAX_COLUMNS = 100  # Outlook exports 92 columns
MAX_CELL = 1_000
MAX_CHARACTERS = 4 * 1024 * 1024
# Invisible marks that programs copy with a text. The database cannot store the first one.
_UNSEEN = dict.fromkeys(map(ord, "\0\u200b\u200e\u200f\u061c\ufeff"))
# A link to an address, and a cell in the quotation marks of a word processor.
_WRAPPED = re.compile(
    r"mailto:([^?@]+@[^?]+)(?:\?.*)?|[\u201c\u201e]([^\u201c-\u201e]+)[\u201c\u201d]|\u2018([^\u2018\u2019]+)\u2019|\xab([^\xab\xbb]+)\xbb",
    re.IGNORECASE,
)
_WRAPPING = frozenset("mM\u201c\u201e\u2018\xab")
# Why a sheet is refused, in English; pages have their own texts.
REFUSALS = {
    "bytes": "The file has more than {limit} bytes.",
    "rows": "There are more than {limit} rows.",
    "columns": "Row {row} has more than {limit} columns.",
    "cell": "A cell of row {row} has more than {limit} characters.",
    "characters": "The cells have more than {limit} characters in all.",
    "empty": "It is empty.",
    "headings": "It has headings, and no rows below them.",
    "no_email": "No column has e-mail addresses.",
    "more_emails": "Row {row} has a second e-mail address in a column that is not read.",
    "encoding": "It is text in an encoding that is neither UTF-8 nor Windows-1252.",
    "quotes": "A quotation mark of row {row} is not closed, or stands inside a cell.",
    "kind": "It is neither a CSV file nor an XLSX or ODS workbook: save it as one of them.",
    "old": "It is a workbook of an older kind, or protected by a password: save it as XLSX without one.",
    "unpacked": "The workbook has more than {limit} bytes when it is unpacked.",
    "broken": "The workbook cannot be read.",
}


class SheetRefused(InvalidRequest):
    """A file or pasted text is not a sheet, or exceeds a limit. `why` is one of REFUSALS."""

    def __init__(self, why: str, *, row: int = 0, limit: int = 0) -> None:
        super().__init__(REFUSALS[why].format(row=row, limit=f"{limit:,}"))
        self.why = why
        self.row = row
        self.limit = limit


# Many thousands may exist at a time. They form no cycles, so garbage collections may skip them: `gc=False`, and a tuple of cells.
class SheetRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A row that is not blank: its number in its file, from 1, and its trimmed cells."""

    number: int
    cells: tuple[str, ...]


class Sheet(msgspec.Struct, frozen=True):
    """The rows that are not blank, in order."""

    rows: list[SheetRow]
    hidden: int = 0  # how many of the rows their workbook hides, for example by a filter

    @property
    def width(self) -> int:
        """The number of columns in the widest row."""
        return max((len(row.cells) for row in self.rows), default=0)


def lines_of(text: str) -> Iterator[str]:
    """Yields the lines of a text, each with its line feed."""
    at = 0
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        yield text[at:end]
        at = end


class SheetMaker:
    """Makes a sheet from rows. Raises SheetRefused above a limit. With `is_file`, removes the marks that programs put around cells."""

    def __init__(self, *, is_file: bool = False) -> None:
        self._rows: list[SheetRow] = []
        self._characters = 0
        self._is_file = is_file
        self._is_ours = False

    def add(self, number: int, cells: Iterable[str]) -> None:
        """Adds a row, without invisible marks, unless it is blank. Raises SheetRefused."""
        kept: list[str] = []
        for at, raw in enumerate(cells):
            cell = trimmed(raw.replace("\0", "") if raw.isascii() else raw.translate(_UNSEEN))
            if self._is_file:
                cell = without_apostrophe(cell) if self._is_ours else _unwrapped(without_apostrophe(cell))
            if not cell:
                continue
            if at >= MAX_COLUMNS:
                raise SheetRefused("columns", row=number, limit=MAX_COLUMNS)
            if len(cell) > MAX_CELL:
                raise SheetRefused("cell", row=number, limit=MAX_CELL)
            self._characters += len(cell)
            kept += [""] * (at - len(kept))
            kept.append(cell)
        if self._characters > MAX_CHARACTERS:
            raise SheetRefused("characters", limit=MAX_CHARACTERS)
        if kept:
            self._is_ours = self._is_ours or (not self._rows and fields_of(kept) is not None)
            self._rows.append(SheetRow(number, tuple(kept)))
        if len(self._rows) > MAX_ROWS + 1:  # the first may be a heading
            raise SheetRefused("rows", limit=MAX_ROWS)

    def sheet(self, *, may_be_blank: bool = False, hidden: int = 0) -> Sheet:
        """Returns the sheet, of which `hidden` rows are hidden. Raises SheetRefused for a blank sheet, unless `may_be_blank` is set."""
        if not self._rows and not may_be_blank:
            raise SheetRefused("empty")
        return Sheet(self._rows, hidden)


def _unwrapped(cell: str) -> str:
    """Returns the address of a link, and a text without the quotation marks of a word processor around it."""
    wrapped = _WRAPPED.fullmatch(cell) if cell[:1] in _WRAPPING else None
    return trimmed("".join(filter(None, wrapped.groups()))) if wrapped else cell


_CONTACTS = ("email", "name", "language", "country", "birthday", "start_date", "external_id", "groups", "state")
_RECIPIENTS = ("", "name", "email", "quantity", "", "", "")
# The first headings of each file in small letters, and the fields of these columns; "" for a column that is not read.
FILES: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("e-mail address", "name", "language", "country", "birthday", "start date", "your id", "groups", "state"): _CONTACTS,
    ("e-mail-adresse", "name", "sprache", "land", "geburtstag", "eintrittsdatum", "ihre kennung", "gruppen", "stand"): _CONTACTS,
    ("adresse e-mail", "nom", "langue", "pays", "anniversaire", "date d'entrée", "votre identifiant", "groupes", "état"): _CONTACTS,
    ("id", "email", "name", "language", "country", "birthday", "start_date", "external_id", "groups", "is_active"): ("", *_CONTACTS),
    ("number", "name", "e-mail address", "codes", "codes claimed", "codes cancelled", "state"): _RECIPIENTS,
    ("nummer", "name", "e-mail-adresse", "codes", "eingelöste codes", "stornierte codes", "stand"): _RECIPIENTS,
    ("numéro", "nom", "adresse e-mail", "codes", "codes récupérés", "codes annulés", "état"): _RECIPIENTS,
    ("email", "name", "quantity", "row", "what is wrong"): ("email", "name", "quantity", "", ""),
}  # fmt: skip


def fields_of(headings: Sequence[str]) -> tuple[str, ...] | None:
    """Returns the fields of the first columns of a file of ours; None if the headings are those of another file."""
    plain = tuple(one.casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'") for one in headings)
    return next((fields for first, fields in FILES.items() if plain[: len(first)] == first), None)
