"""Reads a bank's CSV file of incoming transfers. Banks use different columns, so it requires little of them.

One column has the amount and one the currency. They are found by their headings, or named. The currency of a file with one currency can be
given instead. References are found in any column.
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from largesse.base.amounts import ANY_CURRENCY, number_in, readings
from largesse.base.errors import FileRefused
from largesse.ledger.transfer_references import mistyped_references_in, transfer_references_in

MAX_BYTES = 20 * 1024 * 1024
MAX_LINES = 100_000
_MAX_COLUMNS = 200
_HEADING_WITHIN = 30  # lines: some banks begin with the account and the period
_DELIMITERS = ",;\t|"
_ENCODINGS = ("utf-8-sig", "cp1252")
_AMOUNTS = ("amount", "betrag", "montant", "credit", "paid in", "umsatz")
_CURRENCIES = ("currency", "währung", "waehrung", "devise", "ccy")


@dataclass(frozen=True, slots=True)
class BankLine:
    """A line of the file, by its number. `mark` is unique to it, and the same in a file with the same line.

    `named` are the references in any of its columns; without any, what was meant as one and is mistyped.
    """

    line: int
    amount: str
    currency: str
    named: tuple[str, ...]
    mark: bytes


@dataclass(frozen=True, slots=True)
class Columns:
    """How to read the file, if given: the headings of its columns, or its currency."""

    amount: str | None = None
    currency: str | None = None
    all_in: str | None = None  # ISO 4217


def read_bank_file(name: str, content: bytes, columns: Columns, *, most: int | None = None) -> list[BankLine]:
    """Returns the lines of a file without blank ones. Raises FileRefused with the fault."""
    most = MAX_LINES if most is None else most
    rows = _rows(_text(name, content), name)
    at, amount, currency = _heading(rows, columns, name)
    found: list[BankLine] = []
    seen: Counter[tuple[str, ...]] = Counter()
    for line, cells in rows[at + 1 :]:
        if not any(cells):
            continue
        if len(found) == most:
            raise FileRefused("too_many_lines", f"{name} has more than {most:,} lines", most=most)
        seen[cells] += 1
        found.append(
            BankLine(
                line,
                _cell(cells, amount),
                columns.all_in or _cell(cells, currency).upper(),
                _references(cells),
                _mark(cells, seen[cells]),
            )
        )
    return found


def read_decimal(text: str, decimal: str | None = None, currency: str = ANY_CURRENCY) -> Decimal:
    """Returns an amount as banks write it: `1,234.50`, `1.234,50`, `1 234,50`, `1'234.50`, `+100`, `£5`. Raises ValueError.

    If a single comma or point could also separate thousands (`1,234`), `decimal` must say which it is.
    """
    sign = text.strip()[:1]
    unsigned = text.strip().removeprefix(sign) if sign in {"+", "-"} else text
    try:
        read = readings(number_in(unsigned, currency))
    except ValueError:
        raise ValueError(f"{text!r} is not an amount") from None
    if decimal is None and read.whole is not None and read.with_decimals is not None:
        raise ValueError(f"{text!r} could be two amounts: say which sign is the decimal one")
    is_decimal = read.whole is None if decimal is None else read.mark == decimal
    amount = read.with_decimals if is_decimal else read.whole
    if amount is None:
        raise ValueError(f"{text!r} is not an amount")
    return -amount if sign == "-" else amount


def _references(cells: Sequence[str]) -> tuple[str, ...]:
    named = transfer_references_in("\n".join(cells))
    return tuple(named or dict.fromkeys(one for cell in cells for one in mistyped_references_in(cell)))


def _mark(cells: Sequence[str], time: int) -> bytes:
    """Returns the mark of a line. Two equal lines are two transfers, so the mark includes which of them it is."""
    return hashlib.sha256("\x1f".join((*cells, str(time))).encode()).digest()


def _text(name: str, content: bytes) -> str:
    if len(content) > MAX_BYTES:
        megabytes = MAX_BYTES // 1024 // 1024
        raise FileRefused("too_large", f"{name} has more than {megabytes} MB", most=megabytes)
    for encoding in _ENCODINGS:
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            return text
    raise FileRefused("no_text", f"{name} is not text")


def _rows(text: str, name: str) -> list[tuple[int, tuple[str, ...]]]:
    """Yields each row, with trimmed cells, and the number of its last line."""
    lines = text.splitlines(keepends=True)
    delimiter = max(_DELIMITERS, key=lambda sign: sum(line.count(sign) for line in lines[:_HEADING_WITHIN]))
    reader = csv.reader(iter(lines), delimiter=delimiter)
    try:
        rows = [(reader.line_num, tuple(cell.strip() for cell in cells)) for cells in reader]
    except csv.Error as error:
        said = f"{name} is not a CSV file: line {reader.line_num}: {error}"
        raise FileRefused("no_csv", said, line=reader.line_num) from None
    if wide := next((line for line, cells in rows if len(cells) > _MAX_COLUMNS), None):
        raise FileRefused(
            "too_wide", f"{name}: line {wide} has more than {_MAX_COLUMNS} columns", line=wide, most=_MAX_COLUMNS
        )
    return rows


def _heading(rows: Sequence[tuple[int, Sequence[str]]], columns: Columns, name: str) -> tuple[int, int, int]:
    """Returns the number of the heading row, and the columns of amount and currency."""
    for at, (_, cells) in enumerate(rows[:_HEADING_WITHIN]):
        names = [cell.casefold() for cell in cells]
        amount = _place(names, columns.amount, _AMOUNTS)
        currency = -1 if columns.all_in else _place(names, columns.currency, _CURRENCIES)
        if amount is not None and currency is not None:
            return at, amount, currency
    raise FileRefused(
        "no_heading",
        f"{name}: no line is a heading with an amount and a currency: name the columns with --amount-column and "
        "--currency-column, or the one currency with --currency",
    )


def _place(names: Sequence[str], named: str | None, usual: Sequence[str]) -> int | None:
    """Returns the index of a column. A heading may continue after its usual word: `Amount (GBP)`."""
    if named is not None:
        return names.index(named.casefold()) if named.casefold() in names else None
    return next((at for word in usual for at, name in enumerate(names) if re.match(rf"{word}\b", name)), None)


def _cell(cells: Sequence[str], at: int) -> str:
    return cells[at] if 0 <= at < len(cells) else ""
