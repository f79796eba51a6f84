"""Reading an operator's CSV file, row by row.

The voucher inventory: importing numbers, and what is left of it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import islice
from pathlib import Path

from largesse.audit.service import Acting
from largesse.base.amounts import UnreadableAmount, read_amount
from largesse.base.errors import OperatorError
from largesse.base.money import label
from largesse.db.pool import Connection, Database, Row
from largesse.db.scope import OPERATOR
from largesse.encryption.vault import Vault
from largesse.fulfilment import store
from largesse.fulfilment.allocation import allocate_waiting
from largesse.fulfilment.vouchers import Voucher, seal_voucher

_LONGEST_FIELD = 500
_DELIMITERS = ",;\t"


def read_rows(
    path: Path, required: Sequence[str], optional: Sequence[str] = (), *, alone: str | None = None
) -> Iterator[tuple[int, dict[str, str]]]:
    """Each row with its line number, fields trimmed, by the names of the heading line.

    A file of one column may lack the heading when `alone` names that column. Comma, semicolon and tab all separate.
    Raises OperatorError naming the line.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield from _read(file, required, optional, alone)
    except UnicodeDecodeError:
        raise OperatorError(f"{path.name} is not a text in UTF-8") from None
    except csv.Error as error:
        raise OperatorError(f"{path.name} is no CSV file: {error}") from None


def _read(
    file: Iterator[str], required: Sequence[str], optional: Sequence[str], alone: str | None
) -> Iterator[tuple[int, dict[str, str]]]:
    first = next(file, "")
    delimiter = max(_DELIMITERS, key=first.count)
    names = [name.strip().strip('"').lower().replace(" ", "_") for name in first.rstrip("\r\n").split(delimiter)]
    known = {*required, *optional}
    skipped = 1
    if not known.intersection(names) and len(names) == 1 and alone is not None:
        names, skipped = [alone], 0
        file = _again(first, file)
    missing = [name for name in required if name not in names]
    if missing:
        raise OperatorError(
            f"line 1: the heading lacks {', '.join(missing)}; it may have {', '.join([*required, *optional])}"
        )
    reader = csv.reader(file, delimiter=delimiter, strict=True)
    for fields in reader:
        at = reader.line_num + skipped
        if not any(field.strip() for field in fields):
            continue
        if len(fields) > len(names):
            raise OperatorError(f"line {at}: there are {len(fields)} fields, the heading has {len(names)}")
        row = {name: field.strip() for name, field in zip(names, fields, strict=False) if name in known}
        if any(len(field) > _LONGEST_FIELD for field in row.values()):
            raise OperatorError(f"line {at}: a field has more than {_LONGEST_FIELD} characters")
        for name in required:
            if not row.get(name):
                raise OperatorError(f"line {at}: {name} is empty")
        yield at, row


def _again(first: str, rest: Iterator[str]) -> Iterator[str]:
    if first:
        yield first
    yield from rest


_IMPORTED_AT_ONCE = 1_000
_LONGEST_NUMBER = 100


@dataclass(frozen=True, slots=True)
class InventoryProduct:
    """A product that vouchers are imported for."""

    id: int
    key: str
    name: str
    currency: str
    amounts_minor: tuple[int, ...]  # its denominations; none where it takes any amount of a range


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import came to: numbers added, numbers that were there already, and waiting lines served from it."""

    added: int
    duplicates: int
    served: int


@dataclass(frozen=True, slots=True)
class InventoryLevel:
    """The inventory of a product at one value."""

    product: str
    name: str
    currency: str
    value_minor: int
    free: int
    handed_out: int
    waiting: int


@dataclass(frozen=True, slots=True, repr=False)
class _Item:
    line: int  # of the file
    value_minor: int
    voucher: Voucher


async def find_inventory_product(connection: Connection, product: str) -> InventoryProduct:
    """The digital product of a key of the world file, or an id. Raises OperatorError."""
    row = await connection.fetchrow(store.PRODUCT, product)
    if row is None:
        raise OperatorError(f"there is no product {product!r}")
    if not row["is_digital"]:
        raise OperatorError(f"{row['key']} is a physical gift: it is shipped, and has no voucher numbers")
    return InventoryProduct(
        row["id"], row["key"], row["name"], row["currency"], tuple(sorted(row["denominations_minor"]))
    )


async def import_vouchers(
    database: Database,
    vault: Vault,
    stocked: InventoryProduct,
    path: Path,
    *,
    acting: Acting,
    value: str | None = None,
    on_progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Imported:
    """Adds the numbers of a CSV file to the inventory, sealed, and serves lines that wait for them, oldest first.

    Columns: `number`; `value` in major units, or `value` of the call for all; `pin` and `use_by` where the shop has
    them. The whole file is read before anything is written: a row that cannot be taken raises OperatorError with its
    line, and nothing was imported. A number already in the inventory is passed over and counted, so that a file may be
    imported again. `acting` keeps each transaction that added some; `on_progress` hears how many of how many rows are done.
    """
    total = sum(1 for _ in _inventory_read(stocked, path, value))
    added = duplicates = 0
    values: set[int] = set()
    items = _inventory_read(stocked, path, value)
    while batch := list(islice(items, _IMPORTED_AT_ONCE)):
        async with database.transaction(OPERATOR) as connection:
            new = await _add(connection, vault, stocked, batch)
            if new:
                await acting.record(connection, "stock.imported", f"gift {stocked.key}"[:200], after={"added": new})
        added += new
        duplicates += len(batch) - new
        values.update(item.value_minor for item in batch)
        on_progress(added + duplicates, total)
    served = sum(
        [await allocate_waiting(database, OPERATOR, vault, stocked.id, value_minor) for value_minor in sorted(values)]
    )
    return Imported(added, duplicates, served)


async def list_inventory(connection: Connection) -> list[InventoryLevel]:
    """What every product has in its inventory by value, and how many lines wait for it; the waiting ones first."""
    rows = await connection.fetch(store.LEVELS)
    return [InventoryLevel(*row) for row in rows]


async def _add(connection: Connection, vault: Vault, stocked: InventoryProduct, items: Sequence[_Item]) -> int:
    """Writes those of `items` that are new; returns how many."""
    sealed = [seal_voucher(vault, item.voucher, stocked.id) for item in items]
    known = await _known(connection, [lookup for one in sealed for lookup in one.lookups])
    new = [(item, one) for item, one in zip(items, sealed, strict=True) if not known.intersection(one.lookups)]
    # Two of one file, or of two imports at once, meet in the unique index.
    rows: list[Row] = await connection.fetch(
        store.ADD_VOUCHERS,
        stocked.id,
        [item.value_minor for item, _ in new],
        [one.lookups[0] for _, one in new],
        [one.sealed for _, one in new],
    )
    return len(rows)


async def _known(connection: Connection, lookups: Sequence[int]) -> set[int]:
    rows = await connection.fetch(store.KNOWN, lookups)
    return {row["lookup"] for row in rows}


def _inventory_read(stocked: InventoryProduct, path: Path, value: str | None) -> Iterator[_Item]:
    implied = _implied(stocked, value)
    for line, row in read_rows(path, ["number"], ["value", "pin", "use_by"], alone="number"):
        number = row["number"]
        if len(number) > _LONGEST_NUMBER or not number.isprintable():
            raise OperatorError(f"line {line}: a number has at most {_LONGEST_NUMBER} printable characters")
        value_minor = _amount(stocked, row["value"], f"line {line}: value") if row.get("value") else implied
        if value_minor is None:
            raise OperatorError(f"line {line}: say what it is worth, in a column `value` or with --value")
        yield _Item(line, value_minor, Voucher(number, row.get("pin") or None, _use_by(row.get("use_by"), line)))


def _implied(stocked: InventoryProduct, value: str | None) -> int | None:
    if value is not None:
        return _amount(stocked, value, "--value")
    return stocked.amounts_minor[0] if len(stocked.amounts_minor) == 1 else None


def _amount(stocked: InventoryProduct, text: str, what: str) -> int:
    try:
        value_minor = read_amount(text, stocked.currency)
    except UnreadableAmount as error:
        raise OperatorError(f"{what}: {error}") from None
    if stocked.amounts_minor and value_minor not in stocked.amounts_minor:
        amounts = ", ".join(label(amount, stocked.currency) for amount in stocked.amounts_minor)
        raise OperatorError(f"{what} must be one that {stocked.key} is sent at: {amounts}")
    return value_minor


def _use_by(text: str | None, line: int) -> date | None:
    if not text:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise OperatorError(f"line {line}: use_by must be a date such as 2030-12-31") from None
