"""Products as CSV files: written for a spreadsheet, and read as drafts. All rows that are wrong are named at once."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import NamedTuple

from largesse.base.text import without_apostrophe
from largesse.catalogue import draft_store as store
from largesse.catalogue import list_store
from largesse.catalogue.content import NOT_YES, REQUIRED, TWICE, Fault, Faulty, ProductContent
from largesse.catalogue.draft_store import Edited
from largesse.catalogue.editing import MOST_AT_ONCE, MOST_KEY, read_names
from largesse.catalogue.typed import PRODUCT_FIELDS, Names, fields_of, read_product, typed_product
from largesse.db.pool import Connection

COLUMNS = ("key", "digital", "currency", *PRODUCT_FIELDS)
MOST_ROWS = MOST_AT_ONCE
MOST_BYTES = 2 * 2**20
_PAGE = 500

NOT_UTF8 = 'The file must be UTF-8. In a spreadsheet, save it as "CSV UTF-8".'
NO_HEADER = "The first row must name the columns, and one of them must be key."
UNKNOWN_COLUMN = "There is no column %(what)s."
TOO_MANY_ROWS = "The file has more than %(most)s rows."
TOO_LARGE = "The file has more than %(most)s KiB."
NO_ROWS = "The file has no rows."
BY_FILE = "The seed file manages this product. Release it first."
HAS_DRAFT = "This product has a draft. Publish or discard it first."
FIXED = "This cannot change once a product exists."
UNKNOWN_CURRENCY = "%(what)s is not a currency in use."
BAD_KEY = "A key has at most 100 characters, and no slash, comma or semicolon."
OTHER_KIND = "Only products of the other kind have this. Leave it empty."
FAULTS = (
    NOT_UTF8, NO_HEADER, UNKNOWN_COLUMN, TOO_MANY_ROWS, TOO_LARGE, NO_ROWS, BY_FILE, HAS_DRAFT, FIXED, UNKNOWN_CURRENCY, BAD_KEY,
    OTHER_KIND,
)  # fmt: skip


class RowFault(NamedTuple):
    """What is wrong with a row, by its number in the file; 0: with the file."""

    row: int
    key: str
    fault: Fault


class Sheet(NamedTuple):
    """A file that was read: the products that differ, the editions of those that are there, and all that is wrong."""

    contents: Mapping[str, ProductContent]
    seen: Mapping[str, int]
    faults: Sequence[RowFault]
    unchanged: int


async def write_rows(connection: Connection) -> AsyncIterator[list[str]]:
    """Yields the header and then all products as they are published, by key."""
    yield list(COLUMNS)
    after = ""
    while rows := await store.list_contents(connection, after, _PAGE):
        ids = {one for edited in rows for one in (_content(edited).customer_ids or ())}
        keys = await store.customer_keys(connection, ids) if ids else {}
        for edited in rows:
            content = _content(edited)
            typed = typed_product(content, keys)
            yield [
                edited.key,
                "yes" if content.is_digital else "no",
                content.currency,
                *(typed.get(name, "") for name in PRODUCT_FIELDS),
            ]
        after = rows[-1].key


async def read_sheet(connection: Connection, file: bytes) -> Sheet:
    """Reads a CSV file of products. A column that is missing keeps what a product has. Nothing is saved."""
    rows, fault = _rows(file)
    if fault is not None:
        return Sheet({}, {}, [RowFault(0, "", fault)], 0)
    there = await store.read_products(connection, [row["key"] for _, row in rows])
    reader = _SheetReader(there, await read_names(connection, [row for _, row in rows]))
    reader.currencies = frozenset(await list_store.list_currencies(connection))
    ids = {one for edited in there.values() for one in (_content(edited).customer_ids or ())}
    reader.customer_keys = await store.customer_keys(connection, ids) if ids else {}
    return reader.read(rows)


def _content(edited: Edited) -> ProductContent:
    assert isinstance(edited.content, ProductContent)
    return edited.content


def _rows(file: bytes) -> tuple[list[tuple[int, dict[str, str]]], Fault | None]:
    """Returns the rows with their numbers, or what is wrong with the file."""
    if len(file) > MOST_BYTES:
        return [], Fault("file", TOO_LARGE, {"most": MOST_BYTES // 1024})
    try:
        text = file.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError:
        return [], Fault("file", NOT_UTF8)
    first = text.partition("\n")[0]
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=";" if first.count(";") > first.count(",") else ",")
    try:
        header = [name.strip().lower() for name in next(lines, [])]
        if "key" not in header or len(set(header)) < len(header):
            return [], Fault("file", NO_HEADER)
        for name in header:
            if name not in COLUMNS:
                return [], Fault("file", UNKNOWN_COLUMN, {"what": name[:40]})
        found = []
        for cells in lines:
            if any(cell.strip() for cell in cells):
                values = [without_apostrophe(cell) for cell in cells]
                row = dict(zip(header, values, strict=False))
                found.append((lines.line_num, {**row, "key": row.get("key", "").strip()}))
            if len(found) > MOST_ROWS:
                return [], Fault("file", TOO_MANY_ROWS, {"most": MOST_ROWS})
    except csv.Error:
        return [], Fault("file", NO_HEADER)
    return (found, None) if found else ([], Fault("file", NO_ROWS))


class _SheetReader:
    """Reads rows, each against the product that is there."""

    def __init__(self, there: Mapping[str, Edited], names: Names) -> None:
        self._there, self._names = there, names
        self._contents: dict[str, ProductContent] = {}
        self._faults: list[RowFault] = []
        self.currencies: frozenset[str] = frozenset()
        self.customer_keys: Mapping[int, str] = {}

    def read(self, rows: Sequence[tuple[int, dict[str, str]]]) -> Sheet:
        """Returns what the rows say, and what is wrong with them."""
        unchanged, seen = 0, set()
        for number, row in rows:
            key = row["key"]
            try:
                content = self._read(row, is_twice=key in seen)
            except Faulty as faulty:
                self._faults += [RowFault(number, key[:MOST_KEY], fault) for fault in faulty.faults]
                continue
            finally:
                seen.add(key)
            if key in self._there and content == self._there[key].content:
                unchanged += 1
            else:
                self._contents[key] = content
        editions = {key: self._there[key].seen for key in self._contents if key in self._there}
        return Sheet(self._contents, editions, self._faults, unchanged)

    def _read(self, row: dict[str, str], *, is_twice: bool) -> ProductContent:
        key, edited = row["key"], self._there.get(row["key"])
        if not key:
            raise Faulty([Fault("key", REQUIRED)])
        if is_twice:
            raise Faulty([Fault("key", TWICE, {"what": key[:40]})])
        if edited is None:
            return self._read_new(row)
        if edited.managed != "office":
            raise Faulty([Fault("key", BY_FILE)])
        if edited.draft is not None:
            raise Faulty([Fault("key", HAS_DRAFT)])
        content = _content(edited)
        fixed = {"digital": "yes" if content.is_digital else "no", "currency": content.currency}
        for name, value in fixed.items():
            if row.get(name, value).strip().lower() != value.lower():
                raise Faulty([Fault(name, FIXED)])
        typed = {**typed_product(content, self.customer_keys), **row}
        _refuse_other_kind(typed, is_digital=content.is_digital)
        return read_product(
            typed, self._known, is_digital=content.is_digital, currency=content.currency, picture=content.picture
        )

    def _read_new(self, row: dict[str, str]) -> ProductContent:
        if (
            len(row["key"]) > MOST_KEY
            or any(character in row["key"] for character in "/,;")
            or not row["key"].isprintable()
        ):
            raise Faulty([Fault("key", BAD_KEY)])
        digital, currency = row.get("digital", "").strip().lower(), row.get("currency", "").strip().upper()
        if digital not in {"yes", "no"}:
            raise Faulty([Fault("digital", NOT_YES)])
        if currency not in self.currencies:
            raise Faulty([Fault("currency", UNKNOWN_CURRENCY, {"what": currency[:40]})])
        typed = {"active": "yes", **row}
        _refuse_other_kind(typed, is_digital=digital == "yes")
        return read_product(typed, self._known, is_digital=digital == "yes", currency=currency)

    @property
    def _known(self) -> Names:
        """The customers that rows name, and those of products whose rows leave them out."""
        return Names({**{key: one for one, key in self.customer_keys.items()}, **self._names.customers})


def _refuse_other_kind(typed: Mapping[str, str], *, is_digital: bool) -> None:
    """Raises Faulty for what only products of the other kind have."""
    own = fields_of("product", is_digital=is_digital)
    others = [name for name in PRODUCT_FIELDS if name not in own and typed.get(name, "").strip() not in {"", "stock"}]
    if others:
        raise Faulty([Fault(name, OTHER_KIND) for name in others])
