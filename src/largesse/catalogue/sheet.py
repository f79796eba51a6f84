"""Products and curated collections as CSV files: written for a spreadsheet, and read as drafts. All mistakes are found at once."""

import csv
import io
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import NamedTuple

from largesse.base.file_text import NotText, read_text
from largesse.base.text import is_error, is_rounded, without_apostrophe
from largesse.catalogue import draft_store, store
from largesse.catalogue.content import NOT_YES, REQUIRED, TWICE, Content, Fault, Faulty, ProductContent
from largesse.catalogue.draft_store import Edited
from largesse.catalogue.editing import MOST_AT_ONCE, MOST_KEY, read_names
from largesse.catalogue.typed import (
    COLLECTION_FIELDS,
    PRODUCT_FIELDS,
    Names,
    fields_of,
    read_collection,
    read_product,
    typed_collection,
    typed_product,
)
from largesse.db.pool import Connection

COLUMNS = {
    "product": ("key", "digital", "currency", *PRODUCT_FIELDS),
    "collection": ("key", "currency", *COLLECTION_FIELDS),
}
MOST_ROWS = MOST_AT_ONCE
MOST_BYTES = 2 * 2**20
_PAGE = 500
_BEYOND = ""  # the key of a row's values after the last named column

NOT_TEXT = "This is not a text file. Save it as CSV in UTF-8."
NO_HEADER = "The first row must name the columns, and one of them must be key."
MORE_VALUES = (
    "The row has more values than the first row names. Put one that contains the separator between quotation marks."
)
UNKNOWN_COLUMN = "There is no column %(what)s."
TOO_MANY_ROWS = "The file has more than %(most)s rows."
TOO_LARGE = "The file has more than %(most)s KiB."
NO_ROWS = "The file has no rows."
BY_FILE = "The seed file manages this. Release it first."
HAS_DRAFT = "This has a draft. Publish or discard it first, or leave the row out."
SPOILT = (
    "A spreadsheet shows this for a failed formula, a column that is too narrow or a long number. Correct it there."
)
FIXED = "This cannot change after it was created."
UNKNOWN_CURRENCY = "%(what)s is not a currency in use."
BAD_KEY = "A key has at most 100 characters, and no slash, comma or semicolon."
OTHER_KIND = "Only products of the other kind have this. Leave it empty."
FAULTS = (
    NOT_TEXT, NO_HEADER, MORE_VALUES, UNKNOWN_COLUMN, TOO_MANY_ROWS, TOO_LARGE, NO_ROWS, BY_FILE, HAS_DRAFT, SPOILT, FIXED, UNKNOWN_CURRENCY,
    BAD_KEY, OTHER_KIND,
)  # fmt: skip


class RowFault(NamedTuple):
    """A fault of a row. `row` is its number in a spreadsheet, where the heading is 1; 0 means a fault of the file."""

    row: int
    key: str
    fault: Fault


class Sheet(NamedTuple):
    """A file that was read: the changed contents by key, the editions of existing objects by key, and all faults."""

    contents: Mapping[str, Content]
    seen: Mapping[str, int]
    faults: Sequence[RowFault]
    unchanged: int


async def write_rows(connection: Connection, kind: str) -> AsyncIterator[list[str]]:
    """Yields the header and then all products or curated collections as they are published, by key."""
    yield list(COLUMNS[kind])
    after = ""
    while rows := await draft_store.list_contents(connection, kind, after, _PAGE):
        keys = await _keys_of(connection, rows)
        for edited in rows:
            row = {"key": edited.key, **_fixed(edited.content), **_typed(edited.content, keys)}
            yield [row.get(name, "") for name in COLUMNS[kind]]
        after = rows[-1].key


async def read_sheet(connection: Connection, kind: str, file: bytes) -> Sheet:
    """Reads a CSV file of products or curated collections. Saves nothing.

    A missing column leaves its values unchanged. A row that equals the published content or the draft changes nothing.
    """
    rows, fault = _rows(file, COLUMNS[kind])
    if fault is not None:
        return Sheet({}, {}, [RowFault(0, "", fault)], 0)
    there = await draft_store.read_many(connection, kind, [row["key"] for _, row in rows])
    reader = _SheetReader(kind, there, await read_names(connection, [row for _, row in rows]))
    reader.currencies = frozenset(await store.list_currencies(connection))
    reader.keys = await _keys_of(connection, list(there.values()))
    return reader.read(rows)


async def _keys_of(connection: Connection, rows: Sequence[Edited]) -> Mapping[int, str]:
    """Returns the keys of the customers that products are sold to, or of the products in collections, by id."""
    contents = [one.content for one in rows]
    customers = {
        one for content in contents if isinstance(content, ProductContent) for one in content.customer_ids or ()
    }
    products = {one for content in contents if not isinstance(content, ProductContent) for one in content.product_ids}
    if customers:
        return await draft_store.customer_keys(connection, customers)
    return await draft_store.product_keys(connection, products) if products else {}


def _fixed(content: Content) -> dict[str, str]:
    """Returns the values that cannot change after the creation, as they are typed."""
    if isinstance(content, ProductContent):
        return {"digital": "yes" if content.is_digital else "no", "currency": content.currency}
    return {"currency": content.currency}


def _typed(content: Content, keys: Mapping[int, str]) -> dict[str, str]:
    return typed_product(content, keys) if isinstance(content, ProductContent) else typed_collection(content, keys)


def _rows(file: bytes, columns: Sequence[str]) -> tuple[list[tuple[int, dict[str, str]]], Fault | None]:
    """Returns the rows with their numbers, or the fault of the file."""
    if len(file) > MOST_BYTES:
        return [], Fault("file", TOO_LARGE, {"most": MOST_BYTES // 1024})
    try:
        text = read_text(file).text
    except NotText:
        return [], Fault("file", NOT_TEXT)
    first = text.partition("\n")[0]
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count))
    try:
        header = [name.strip().lower() for name in next(lines, [])]
        while header and not header[-1]:  # empty columns at the right, as spreadsheets write them
            header.pop()
        fault = _fault_of(header, columns)
        if fault is not None:
            return [], fault
        found = []
        for number, cells in enumerate(lines, start=2):
            if any(cell.strip() for cell in cells):
                values = [without_apostrophe(cell) for cell in cells]
                row = dict(zip(header, values, strict=False))
                beyond = "".join(values[len(header) :]).strip()
                found.append((number, {**row, "key": row.get("key", "").strip(), _BEYOND: beyond}))
            if len(found) > MOST_ROWS:
                return [], Fault("file", TOO_MANY_ROWS, {"most": MOST_ROWS})
    except csv.Error:
        return [], Fault("file", NO_HEADER)
    return (found, None) if found else ([], Fault("file", NO_ROWS))


def _fault_of(header: Sequence[str], columns: Sequence[str]) -> Fault | None:
    """Returns the first fault of the column names; None if there is none."""
    if "key" not in header:
        return Fault("file", NO_HEADER)
    for at, name in enumerate(header):
        if name not in columns:
            return Fault("file", UNKNOWN_COLUMN, {"what": name[:40]})
        if name in header[:at]:
            return Fault("file", TWICE, {"what": name})
    return None


class _SheetReader:
    """Reads rows, and compares each with the object that has its key."""

    def __init__(self, kind: str, there: Mapping[str, Edited], names: Names) -> None:
        self._kind, self._there, self._names = kind, there, names
        self._contents: dict[str, Content] = {}
        self._faults: list[RowFault] = []
        self.currencies: frozenset[str] = frozenset()
        self.keys: Mapping[int, str] = {}  # keys of the customers or products in `there`, by id

    def read(self, rows: Sequence[tuple[int, dict[str, str]]]) -> Sheet:
        """Returns the contents of the rows, and their faults."""
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
            if key in self._there and content in (self._there[key].content, self._there[key].newest):
                unchanged += 1
            else:
                self._contents[key] = content
        editions = {key: self._there[key].seen for key in self._contents if key in self._there}
        return Sheet(self._contents, editions, self._faults, unchanged)

    def _read(self, row: dict[str, str], *, is_twice: bool) -> Content:
        key, edited = row["key"], self._there.get(row["key"])
        if row.pop(_BEYOND):
            raise Faulty([Fault("key", MORE_VALUES)])
        if not key:
            raise Faulty([Fault("key", REQUIRED)])
        if is_twice:
            raise Faulty([Fault("key", TWICE, {"what": key[:40]})])
        _refuse_spoilt(row)
        if edited is None:
            return self._read_new(row)
        content = edited.content
        noted = [
            Fault(name, FIXED)
            for name, value in _fixed(content).items()
            if row.get(name, value).strip().lower() != value.lower()
        ]
        try:
            read = self._read_content({**_typed(content, self.keys), **row}, content.currency, content)
        except Faulty as faulty:
            noted += faulty.faults
            read = None
        if edited.managed != "office" and (noted or read != content):
            noted.insert(0, Fault("key", BY_FILE))
        elif edited.draft is not None and (noted or read not in (edited.content, edited.newest)):
            noted.insert(0, Fault("key", HAS_DRAFT))
        if read is None or noted:
            raise Faulty(noted)
        return read

    def _read_new(self, row: dict[str, str]) -> Content:
        if (
            len(row["key"]) > MOST_KEY
            or any(character in row["key"] for character in "/,;")
            or not row["key"].isprintable()
        ):
            raise Faulty([Fault("key", BAD_KEY)])
        if self._kind == "product" and row.get("digital", "").strip().lower() not in {"yes", "no"}:
            raise Faulty([Fault("digital", NOT_YES)])
        currency = row.get("currency", "").strip().upper()
        if currency not in self.currencies:
            raise Faulty([Fault("currency", UNKNOWN_CURRENCY, {"what": currency[:40]})])
        return self._read_content({"active": "yes", **row}, currency)

    def _read_content(self, typed: Mapping[str, str], currency: str, former: Content | None = None) -> Content:
        names = self._names
        if self._kind == "collection":
            known = {key: (one, currency) for one, key in self.keys.items()}
            return read_collection(typed, names._replace(products={**known, **names.products}), currency=currency)
        is_digital, picture = typed.get("digital", "").strip().lower() == "yes", None
        if isinstance(former, ProductContent):
            is_digital, picture = former.is_digital, former.picture
        _refuse_other_kind(typed, is_digital=is_digital)
        customers = {key: one for one, key in self.keys.items()}
        names = names._replace(customers={**customers, **names.customers})
        return read_product(typed, names, is_digital=is_digital, currency=currency, picture=picture)


def _refuse_spoilt(row: Mapping[str, str]) -> None:
    """Raises Faulty for cells that contain only a spreadsheet's error, and for a key that a spreadsheet has rounded."""
    spoilt = [name for name, cell in row.items() if len(cell.split()) == 1 and is_error(cell)]
    spoilt += ["key"] if is_rounded(row["key"]) else []
    if spoilt:
        raise Faulty([Fault(name, SPOILT) for name in spoilt])


def _refuse_other_kind(typed: Mapping[str, str], *, is_digital: bool) -> None:
    """Raises Faulty for values that only products of the other kind, digital or physical, can have."""
    own = fields_of("product", is_digital=is_digital)
    others = [name for name in PRODUCT_FIELDS if name not in own and typed.get(name, "").strip() not in {"", "stock"}]
    if others:
        raise Faulty([Fault(name, OTHER_KIND) for name in others])
