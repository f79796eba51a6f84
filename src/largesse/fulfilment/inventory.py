"""The voucher inventory: imports numbers from CSV files, and lists the stock."""

import csv
import io
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec

from largesse.base import clock
from largesse.base.amounts import UnreadableAmount, read_amount
from largesse.base.confidential import Confidential
from largesse.base.errors import FileRefused, OperatorError
from largesse.base.file_text import EAST_ASIAN, SINGLE_BYTE, NotText, open_text
from largesse.base.money import label
from largesse.base.text import folded, is_error, is_rounded, trimmed, without_apostrophe
from largesse.customers.actor import Actor
from largesse.customers.staff_roles import StaffRight
from largesse.db.pool import Connection
from largesse.encryption.vault import Vault
from largesse.fulfilment import store
from largesse.fulfilment.vouchers import NO_DATE, SealedVoucher, Voucher, allocate_waiting, seal_voucher

_LONGEST_FIELD = 500
_MOST_COLUMNS = 200
_DELIMITERS = ",;\t"
_BLANK = _DELIMITERS + " \r\n"  # the characters of an empty line of a spreadsheet
_DIGIT = re.compile("[0-9]")
_QUOTES = "\u201c\u201d\u201e\u2018\u2019\xab\xbb"  # word processors and chats put them around a text
_TOTALS = frozenset({"total", "totals", "sum", "summe", "gesamt", "gesamtsumme", "totaux", "somme"})
# `31.12.2030`, as spreadsheets in many countries save a day. A day with slashes may have the month first.
_DOTTED = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})", re.ASCII)
_SEPARATOR = re.compile("sep=.[\r\n]", re.IGNORECASE)


# Other headings of each column, in English, German and French, without blanks, signs and accents. Not `Nr.`: lists count their rows with it.
_HEADINGS = {
    "number": "nummer numero code vouchernumber vouchercode giftcode cardnumber couponcode gutscheinnummer gutscheincode kartennummer numerodecarte codecadeau",
    "value": "amount facevalue denomination wert betrag nennwert gutscheinwert valeur montant valeurfaciale",
    "pin": "pincode codepin geheimzahl codesecret",
    "use_by": "useby expiry expirydate expirationdate expires validuntil validto gultigbis gueltigbis einlosbarbis ablaufdatum verfallsdatum"
    " valablejusquau datedexpiration dateexpiration datelimite",
    "shipment": "parcel sendung paket envoi colis",
    "carrier": "versanddienst versanddienstleister paketdienst zusteller transporteur",
    "tracking_number": "tracking trackingno trackingcode trackingid trackingnummer trackingnr sendungsnummer sendungsnr sendungsverfolgungsnummer"
    " numerodesuivi nodesuivi ndesuivi suivi codedesuivi",
}  # fmt: skip
_KNOWN_AS = {heading: name for name, headings in _HEADINGS.items() for heading in headings.split()}
_SIGNS = re.compile(r"[\W_]+")


class Upload(Confidential, frozen=True):
    """An uploaded file, which is read like a file on disk."""

    name: str
    content: bytes

    def open(self, mode: Literal["rb"]) -> BinaryIO:  # noqa: ARG002 - as a path is opened
        """Opens it to be read."""
        return io.BytesIO(self.content)


def read_rows(
    path: Path | Upload, required: Sequence[str], optional: Sequence[str] = (), *, alone: str | None = None
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yields each row with its line number, fields trimmed, by the names of the heading line.

    A file with one column may lack the heading if `alone` names the column. A first line without a digit is a heading.
    Separators are comma, semicolon and tab. Raises FileRefused with the line.
    """
    try:
        with path.open("rb") as file, open_text(file) as text:
            yield from _read(text, required, optional, alone)
    except NotText:
        raise FileRefused("no_text", "this is not a text file: save it as CSV in UTF-8") from None
    except csv.Error as error:
        raise FileRefused("no_csv", f"this is not a CSV file: {error}") from None


def _read(
    file: Iterator[str], required: Sequence[str], optional: Sequence[str], alone: str | None
) -> Iterator[tuple[int, dict[str, str]]]:
    heading_at, first, delimiter, names = _heading(file)
    known = {*required, *optional}
    skipped = heading_at
    if not known.intersection(names) and len(names) == 1 and alone is not None and _DIGIT.search(first):
        names, skipped = [alone], heading_at - 1
        file = chain([first], file)
    missing = [name for name in required if name not in names]
    if missing:
        lacks, may_have = ", ".join(missing), ", ".join([*required, *optional])
        said = f"line {heading_at} must be a heading, and it lacks {lacks}; it may have {may_have}"
        raise FileRefused("no_heading", said, lacks=lacks, may_have=may_have)
    if twice := next((name for at, name in enumerate(names) if name in known and name in names[:at]), None):
        said = f"line {heading_at}: the heading names {twice} twice"
        raise FileRefused("heading_twice", said, column=twice)
    reader = csv.reader(file, delimiter=delimiter, strict=True)
    for fields in reader:
        at = reader.line_num + skipped
        if not any(field.strip() for field in fields):
            continue
        if any(field.strip() for field in fields[len(names) :]):
            said = f"line {at}: there are {len(fields)} fields, the heading has {len(names)}"
            raise FileRefused("too_wide", said, line=at, most=len(names))
        row = {
            name: without_apostrophe(trimmed(field).strip(_QUOTES))
            for name, field in zip(names, fields, strict=False)
            if name in known
        }
        _refuse_unreadable(at, row.values())
        for name in required:
            if not row.get(name):
                raise FileRefused("empty", f"line {at}: {name} is empty", line=at, column=name)
        yield at, row


def _refuse_unreadable(at: int, fields: Collection[str]) -> None:
    """Raises FileRefused for a field that is too long, or that a spreadsheet has spoilt."""
    if any(len(field) > _LONGEST_FIELD for field in fields):
        said = f"line {at}: a field has more than {_LONGEST_FIELD} characters"
        raise FileRefused("too_long", said, line=at, most=_LONGEST_FIELD)
    if any(map(is_error, fields)):
        said = f"line {at}: a spreadsheet has written what it shows for a failed formula or a column that is too narrow, such as #N/A or ####"
        raise FileRefused("formula", said, line=at)
    if any(map(is_rounded, fields)):
        said = f"line {at}: a spreadsheet has shortened a number to one such as 1.23E+11: make its column text there"
        raise FileRefused("shortened", said, line=at)


def _heading(file: Iterator[str]) -> tuple[int, str, str, list[str]]:
    """Returns the number of the first line that is neither blank nor Excel's `sep=;`, its text, the delimiter, and the names in it.

    Raises FileRefused if it has too many: to compare a hundred thousand names with each other takes minutes.
    """
    lines = ((at, text) for at, text in enumerate(file, 1) if text.strip(_BLANK) and not _SEPARATOR.match(text))
    heading_at, first = next(lines, (1, ""))
    delimiter = max(_DELIMITERS, key=first.count)
    if first.count(delimiter) >= _MOST_COLUMNS:
        said = f"line {heading_at}: there are more than {_MOST_COLUMNS} columns"
        raise FileRefused("too_wide", said, line=heading_at, most=_MOST_COLUMNS)
    typed = [name.strip().strip('"') for name in first.rstrip("\r\n").split(delimiter)]
    names = [name.lower().replace(" ", "_") for name in typed]
    meant = [_KNOWN_AS.get(_SIGNS.sub("", folded(name)), "") for name in typed]
    names = [other if other and other not in names else name for name, other in zip(names, meant, strict=True)]
    return heading_at, first, delimiter, names


_COLUMNS = ("number", "value", "pin", "use_by")
_MOST_UNREAD = 20  # columns named in a result
_IMPORTED_AT_ONCE = 1_000
_MOST_REFUSED = 1_000  # numbers named in a result, with their lines
_MOST_SEEN = 100_000  # numbers of a file that are compared to find duplicates
_LONGEST_NUMBER = 100


class InventoryProduct(msgspec.Struct, frozen=True):
    """A product that vouchers are imported for."""

    id: int
    key: str
    name: str
    currency: str
    amounts_minor: tuple[int, ...]  # its denominations; empty for a range of amounts
    waited_minor: tuple[int, ...] = ()  # the values for which recipients wait, such as a former denomination


class RefusedNumber(msgspec.Struct, frozen=True):
    """A number that exists already, with its line in the file. `why` is stock, sold, or twice in the file."""

    line: int
    why: str


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import: new numbers, numbers that existed already, and waiting lines that were served.

    `refused` are the first thousand existing numbers, `unread` the headings of columns that were not read, such as a misspelt `use_by`.
    """

    added: int
    duplicates: int
    served: int
    refused: tuple[RefusedNumber, ...] = field(default=(), compare=False, repr=False)
    unread: tuple[str, ...] = field(default=(), compare=False)


class InventoryLevel(msgspec.Struct, frozen=True):
    """The inventory of a product at one value."""

    product: str
    name: str
    currency: str
    value_minor: int
    free: int
    handed_out: int
    waiting: int


class _Item(Confidential, frozen=True):
    line: int  # the line number in the file
    value_minor: int
    voucher: Voucher


async def find_inventory_product(connection: Connection, product: str) -> InventoryProduct:
    """Returns the digital product of a key of the seed file, or of an id. Raises OperatorError."""
    row = await connection.fetchrow(store.PRODUCT, product)
    if row is None:
        raise OperatorError(f"there is no product {product!r}")
    if not row["is_digital"]:
        raise OperatorError(f"{row['key']} is a physical gift: it is shipped, and has no voucher numbers")
    return InventoryProduct(
        row["id"],
        row["key"],
        row["name"],
        row["currency"],
        tuple(sorted(row["denominations_minor"])),
        tuple(row["waited_minor"]),
    )


async def import_vouchers(
    actor: Actor,
    vault: Vault,
    stocked: InventoryProduct,
    path: Path | Upload,
    *,
    value: str | None = None,
    most: int | None = None,
    on_progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Imported:
    """Adds the numbers of a CSV file to the inventory, encrypted. A command also serves waiting lines, oldest first; otherwise a worker does.

    Columns: `number`; `value` in major units, or the argument `value` for all rows; optionally `pin` and `use_by`. Checks the whole file first:
    an invalid row, or more than `most` rows, raises FileRefused with the line, and nothing is imported. Existing numbers are skipped and
    counted, so that a file can be imported again. The audit log has each transaction that added numbers. `on_progress` gets the number of
    finished rows and of all rows.
    """
    total = 0
    for item in _inventory_read(stocked, path, value):
        total += 1
        if most is not None and total > most:
            raise FileRefused("too_many_lines", f"line {item.line}: a file has at most {most:,} numbers", most=most)
    added, done = 0, 0
    refused: list[RefusedNumber] = []
    values: set[int] = set()
    seen: set[int] = set()
    items = _inventory_read(stocked, path, value)
    while batch := list(islice(items, _IMPORTED_AT_ONCE)):
        async with actor.transaction(StaffRight.STOCK) as transaction:
            new, known = await _add(transaction.connection, vault, stocked, batch, seen)
            if new:
                await transaction.record("stock.imported", f"gift {stocked.key}"[:200], after={"added": new})
        added, done = added + new, done + len(batch)
        refused += known[: _MOST_REFUSED - len(refused)]
        values.update(item.value_minor for item in batch)
        on_progress(done, total)
    served = 0
    if actor.staff is None:
        for value_minor in sorted(values):
            served += await allocate_waiting(lambda: actor.begin(False), vault, stocked.id, value_minor)
    return Imported(added, done - added, served, tuple(refused), _unread_in(path))


def _unread_in(path: Path | Upload) -> tuple[str, ...]:
    """Returns the headings of the columns that an import does not read; none for a file without a heading."""
    with path.open("rb") as file, open_text(file) as text:
        *_, names = _heading(text)
    unread = [name[:_LONGEST_NUMBER] for name in names if name and name not in _COLUMNS]
    return tuple(unread[:_MOST_UNREAD]) if len(unread) < len(names) else ()


async def list_inventory(connection: Connection) -> list[InventoryLevel]:
    """Returns every product's stock by value, with the number of waiting lines. Those with waiting lines come first."""
    rows = await connection.fetch(store.LEVELS)
    return [InventoryLevel(*row) for row in rows]


async def _add(
    connection: Connection, vault: Vault, stocked: InventoryProduct, items: Sequence[_Item], seen: set[int]
) -> tuple[int, list[RefusedNumber]]:
    """Writes the new numbers of `items`. Returns how many, and the refused ones. `seen` has the look-up numbers of earlier items of the file."""
    sealed = [seal_voucher(vault, item.voucher, stocked.id) for item in items]
    await connection.execute(store.LOCK_IMPORT, stocked.id)
    known = await _known(connection, [lookup for one in sealed for lookup in one.lookups])
    new: list[tuple[_Item, SealedVoucher]] = []
    refused: list[RefusedNumber] = []
    for item, one in zip(items, sealed, strict=True):
        sold = [known[lookup] for lookup in one.lookups if lookup in known]
        if one.lookups[0] in seen:
            refused.append(RefusedNumber(item.line, "twice"))
        elif sold:
            refused.append(RefusedNumber(item.line, "sold" if any(sold) else "stock"))
        else:
            new.append((item, one))
        seen.add(one.lookups[0])
    if len(seen) > _MOST_SEEN:
        seen.clear()
    rows = await connection.fetch(
        store.ADD_VOUCHERS,
        stocked.id,
        [item.value_minor for item, _ in new],
        [one.lookups[0] for _, one in new],
        [one.sealed for _, one in new],
        [item.voucher.use_by or NO_DATE for item, _ in new],
    )
    # The unique index refuses numbers that another import adds at the same time.
    written = {row["lookup"] for row in rows}
    refused += [RefusedNumber(item.line, "stock") for item, one in new if one.lookups[0] not in written]
    return len(rows), sorted(refused, key=lambda one: one.line)


async def _known(connection: Connection, lookups: Sequence[int]) -> dict[int, bool]:
    """Returns which numbers are in the inventory, and whether each was allocated."""
    rows = await connection.fetch(store.KNOWN, lookups)
    return {row["lookup"]: row["is_sold"] for row in rows}


def _inventory_read(stocked: InventoryProduct, path: Path | Upload, value: str | None) -> Iterator[_Item]:
    implied, is_certain = _implied(stocked, value), False
    for line, row in read_rows(path, _COLUMNS[:1], _COLUMNS[1:], alone="number"):
        number = row["number"]
        if len(number) > _LONGEST_NUMBER or not number.isprintable():
            said = f"line {line}: a number has at most {_LONGEST_NUMBER} printable characters"
            raise FileRefused("number", said, line=line, most=_LONGEST_NUMBER)
        if not is_certain and not f"{number}{row.get('pin')}".isascii():
            if _is_guessed(path):
                said = f"line {line}: the letters of a number or PIN cannot be read for certain: save the file as CSV in UTF-8"
                raise FileRefused("encoding", said, line=line)
            is_certain = True  # of the whole file
        if number.casefold().rstrip(":") in _TOTALS:
            raise FileRefused("total", f"line {line}: this is a sum, not a number: remove the line", line=line)
        value_minor = _amount(stocked, row["value"], line) if row.get("value") else implied
        if value_minor is None:
            said = f"line {line}: say what it is worth, in a column `value` or with --value"
            raise FileRefused("no_value", said, line=line)
        yield _Item(line, value_minor, Voucher(number, row.get("pin") or None, _use_by(row.get("use_by"), line)))


def _is_guessed(path: Path | Upload) -> bool:
    """Returns whether the encoding of a file is a guess, as for Shift-JIS, which is taken for another one."""
    with path.open("rb") as file, open_text(file) as text:
        return text.encoding in {*SINGLE_BYTE, *EAST_ASIAN}


def _implied(stocked: InventoryProduct, value: str | None) -> int | None:
    if value is not None:
        return _amount(stocked, value, None)
    return stocked.amounts_minor[0] if len(stocked.amounts_minor) == 1 else None


def _amount(stocked: InventoryProduct, text: str, line: int | None) -> int:
    """Returns a value in minor units: of a line, or of the whole file if `line` is None. Raises FileRefused."""
    what, of_all, values = ("--value", "all_", {}) if line is None else (f"line {line}: value", "", {"line": line})
    try:
        value_minor = read_amount(text, stocked.currency)
    except UnreadableAmount as error:
        raise FileRefused(f"{of_all}value", f"{what}: {error}", **values) from None
    taken = {*stocked.amounts_minor, *stocked.waited_minor}
    if stocked.amounts_minor and value_minor not in taken:
        amounts = ", ".join(label(amount, stocked.currency) for amount in sorted(taken))
        said = f"{what} must be one that {stocked.key} is sent at: {amounts}"
        raise FileRefused(f"{of_all}other_value", said, amounts=amounts, **values)
    return value_minor


def _use_by(text: str | None, line: int) -> date | None:
    if not text:
        return None
    dotted = _DOTTED.fullmatch(text)
    try:
        day = date.fromisoformat(
            "{2}-{1:0>2}-{0:0>2}".format(*dotted.groups()) if dotted else text.removesuffix(" 00:00:00")
        )
    except ValueError:
        raise FileRefused("use_by", f"line {line}: use_by must be a date such as 2030-12-31", line=line) from None
    if day < clock.now().date():
        raise FileRefused("over", f"line {line}: use_by is in the past, so the number could not be used", line=line)
    return day
