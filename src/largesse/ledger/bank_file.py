"""Reads a bank's CSV or CAMT file of incoming transfers. Banks use different columns, so it requires little of a CSV file.

One column has the amount and one the currency. They are found by their headings, or named. The currency of a file with one currency can be
given instead. References are found in any column.
"""

import csv
import hashlib
import io
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import chain, islice
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers.expat import ExpatError, ParserCreate

import msgspec

from largesse.base.amounts import ANY_CURRENCY, normal_marks, number_in, readings
from largesse.base.errors import FileRefused
from largesse.base.file_text import NotText, read_text
from largesse.ledger.top_ups import mistyped_references_in, transfer_references_in

MAX_BYTES = 20 * 1024 * 1024
MAX_LINES = 100_000
_MAX_ROWS = 20 * MAX_LINES  # this also counts blank rows, which take time, too
_MAX_COLUMNS = 200
_HEADING_WITHIN = 30  # lines: some banks first name the account and the period
_LONGEST_WORD = 200  # characters of a heading or a state that are compared; to order thousands of accents takes long
_LONGEST_CELL = 100  # characters of an amount or a currency; longer texts are cut, as they are neither and take long to search for a sign
_DELIMITERS = ",;\t|"
# "Haben" comes first: a file with that column may use "Betrag" for something else.
_AMOUNTS = (
    "haben", "amount", "betrag", "montant", "credit", "crédit", "gutschrift", "paid in", "money in", "umsatz", "bedrag", "importe", "importo",
    "belopp", "kwota", "deposit",
)  # fmt: skip
_CURRENCIES = ("currency", "währung", "waehrung", "devise", "ccy", "munt", "divisa", "waluta")
_CODE = re.compile("[A-Z]{3}")  # ISO 4217
# Headings of the column that says which amounts were paid out. Banks that have it write amounts without a sign.
_DIRECTIONS = frozenset((
    "s/h", "soll/haben", "soll-/haben-kennzeichen", "d/c", "c/d", "dr/cr", "cr/dr", "debit/credit", "credit/debit", "débit/crédit",
    "credit debit indicator", "creditdebitindicator", "cdtdbtind", "sens", "direction", "af bij", "af/bij", "bij/af",
))  # fmt: skip
_OUT = frozenset(("s", "soll", "d", "dr", "dbit", "debit", "débit", "af", "out"))
# Words that mean "paid out" in a column with any heading, such as "Transaction type".
_OUT_ANYWHERE = frozenset(("soll", "dbit", "debit", "débit"))
# Words in a column of states for money that has not arrived, or was taken back.
_NOT_BOOKED = frozenset((
    "pending", "processing", "in progress", "in_progress", "on hold", "declined", "rejected", "denied", "failed", "cancelled", "canceled",
    "reverted", "reversed", "returned", "refunded", "partially refunded",
    "vorgemerkt", "umsatz vorgemerkt", "ausstehend", "in bearbeitung", "abgelehnt", "storniert",
    "en attente", "en cours", "refusé", "refusée", "rejeté", "rejetée", "annulé", "annulée",
))  # fmt: skip
# A word for the direction after the number: `1,234.50 CR`, `1.234,50 S`.
_WORD_AFTER = re.compile("(?P<number>.*[0-9]) ?(?P<word>[cd]r|[cdhs])", re.IGNORECASE)
# A plus or minus before or after the number, beside the currency. Not the minus of `25,-`.
_SIGN_BEFORE = re.compile("(?P<before>[^0-9]*?)(?P<sign>[-+\u2212\u2013])(?P<after>[^0-9]*[0-9].*)")
_SIGN_AFTER = re.compile("(?P<before>.*[0-9]) ?(?P<sign>[-+\u2212\u2013])(?P<after>[^0-9]*)")
# Matches an amount of zero or less, in Python and in PostgreSQL.
NO_PAYMENT = (
    r"^[^0-9]*[-\u2212\u2013][^0-9]*[0-9]|[0-9]\s?[-\u2212\u2013][^0-9]*$|^\([^()]*[0-9][^()]*\)$|^[0.,]*0[0.,]*$"
)
# Matches such an amount if no payment was taken back: of zero, or with a state of `_NOT_BOOKED` that says it never came.
NOT_COME = r"^[0.,]*0[0.,]*$| - (?!re(?:versed|verted|turned|funded)$|partially refunded$)[^0-9]+$"
# A CAMT file (ISO 20022: camt.052, camt.053 and camt.054) is read as the rows of a CSV file with this heading.
_CAMT_HEADING = ("Amount", "Currency", "CdtDbtInd", "State", "Text")
_CAMT_ENTRY, _CAMT_TRANSACTION = "*/*/Ntry", "NtryDtls/TxDtls"
# The amount of a transaction, by version of the format.
_CAMT_AMOUNTS = ("Amt", "AmtDtls/TxAmt/Amt")
# What banks offer beside CSV and CAMT, by how such files begin. An MT940 file may have lines of the bank before its first field.
_OTHER_FORMATS = {
    "PDF": re.compile(rb"\s*%PDF-"),
    "XLS": re.compile(rb"\xd0\xcf\x11\xe0"),
    "XLSX": re.compile(rb"PK\x03\x04.{26}(?:\[Content_Types\]|_rels|docProps|xl/)", re.DOTALL),
    "ZIP": re.compile(rb"PK\x03\x04"),
    "MT940": re.compile(rb"(?:[^\n]*\n){0,4}\s*(?:\{4:\s*)?:20:"),
    "OFX": re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?(?:OFXHEADER|<\?OFX|<OFX>)"),
    "QIF": re.compile(rb"\s*!Type:"),
}
_THREE_DECIMALS = re.compile(r"[0-9]{1,3}\.[0-9]{3}")  # in a CSV file, the point could separate thousands


class BankLine(msgspec.Struct, frozen=True):
    """A line of the file, by its number. `mark` identifies it, and is the same in another file with the same line.

    `named` are the references in its columns; if there are none, texts that look like mistyped references.
    """

    line: int
    amount: str
    currency: str
    named: tuple[str, ...]
    mark: bytes


class Columns(msgspec.Struct, frozen=True):
    """How to read the file, if given: the headings of its columns, or its currency."""

    amount: str | None = None
    currency: str | None = None
    all_in: str | None = None  # ISO 4217


def read_bank_file(name: str, content: bytes, columns: Columns, *, most: int | None = None) -> list[BankLine]:
    """Returns the lines of a file without blank ones. Raises FileRefused with the fault."""
    most = MAX_LINES if most is None else most
    if other := next((format_ for format_, begins in _OTHER_FORMATS.items() if begins.match(content[:1_000])), None):
        said = f"{name} has the format {other}: import the CSV or CAMT file that the bank offers beside it"
        raise FileRefused("other_format", said, format=other)
    text = _text(name, content)
    if _is_camt(text):
        rows, columns = _camt_rows(name, text, most), Columns(all_in=columns.all_in)
    else:
        rows = _rows(text, _delimiter(text, columns), name, most)
    heading = _heading([cells for _, cells in rows[:_HEADING_WITHIN]], columns)
    if heading is None:
        raise FileRefused(
            "no_heading",
            f"{name}: no line is a heading with an amount and a currency: name the columns with --amount-column and "
            "--currency-column, or the one currency with --currency",
        )
    at, amount, currency = heading
    directions = _directions(rows[at][1])
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
                _signed(_cell(cells, amount), cells, directions),
                _currency(_cell(cells, currency), columns.all_in),
                _references(cells),
                _mark(cells, seen[cells]),
            )
        )
    return found


def read_decimal(text: str, decimal: str | None = None, currency: str = ANY_CURRENCY) -> Decimal:
    """Returns an amount as banks write it: `1,234.50`, `1.234,50`, `1 234,50`, `1'234.50`, `+100`, `100-`, `(100)`, `£5`. Raises ValueError.

    If a single comma or point could also separate thousands (`1,234`), `decimal` must say which it is.
    """
    sign, unsigned = _sign(text)
    try:
        read = readings(number_in(unsigned, currency))
    except ValueError:
        raise ValueError(f"{text!r} is not an amount") from None
    if decimal is None and read.whole is not None and read.with_decimals is not None:
        raise ValueError(f"{text!r} could be two amounts: name the decimal sign")
    is_decimal = read.whole is None if decimal is None else read.mark == decimal
    amount = read.with_decimals if is_decimal else read.whole
    if amount is None:
        raise ValueError(f"{text!r} is not an amount")
    return -amount if sign == "-" else amount


def is_no_payment(amount: str) -> bool:
    """Returns whether an amount, in any format, is zero or less, so that no money came."""
    return re.search(NO_PAYMENT, amount) is not None


def is_taken_back(amount: str) -> bool:
    """Returns whether an amount says that money went back: it was paid out, or the payment was reversed after it came."""
    return is_no_payment(amount) and re.search(NOT_COME, amount) is None


def _currency(said: str, all_in: str | None) -> str:
    """Returns the currency of a line: its own code, even if one currency was given for the whole file."""
    code = said.upper()
    return code if all_in is None or _CODE.fullmatch(code) else all_in


def _directions(heading: Sequence[str]) -> list[int]:
    """Returns the columns that may say which amounts were paid out. Some banks leave the heading of that column empty."""
    named = [at for at, cell in enumerate(heading) if _folded(cell) in _DIRECTIONS]
    return named[:1] or [at for at, cell in enumerate(heading) if not cell]


def _signed(amount: str, cells: Sequence[str], directions: Sequence[int]) -> str:
    """Returns an amount with a minus if another column says that it was paid out, or has not come: `8.00 - pending`."""
    words = [_folded(cell) for cell in cells if len(cell) <= _LONGEST_CELL]
    said = [_folded(_cell(cells, at)) for at in directions]
    if found := _WORD_AFTER.fullmatch(normal_marks(amount)):
        amount, said = found["number"], [*said, _folded(found["word"])]
    if not amount or _sign(amount)[0] == "-":
        return amount
    if state := next((word for word in words if word in _NOT_BOOKED), None):
        return f"{amount} - {state}"
    is_out = not _OUT.isdisjoint(said) or not _OUT_ANYWHERE.isdisjoint(words)
    return f"-{amount}" if is_out and not _sign(amount)[0] else amount


def _sign(text: str) -> tuple[str, str]:
    """Returns the sign of an amount, if it has one, and the rest."""
    plain = normal_marks(text)
    if plain.startswith("(") and plain.endswith(")"):
        return "-", plain[1:-1]
    found = _SIGN_BEFORE.fullmatch(plain) or _SIGN_AFTER.fullmatch(plain)
    if found is None:
        return "", plain
    return "+" if found["sign"] == "+" else "-", f"{found['before']}{found['after']}"


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
    try:
        return read_text(content).text
    except NotText:
        raise FileRefused("no_text", f"{name} is not text") from None


def _delimiter(text: str, columns: Columns) -> str:
    """Returns the delimiter that splits the heading into the most columns; the most frequent one if no heading is found."""
    lines = list(islice(io.StringIO(text, newline=""), _HEADING_WITHIN))

    def fit(delimiter: str) -> tuple[int, int]:
        heading = None
        try:
            rows = list(csv.reader(lines, delimiter=delimiter))
            heading = _heading(rows, columns)
        except csv.Error:
            pass
        return 0 if heading is None else len(rows[heading[0]]), sum(line.count(delimiter) for line in lines)

    return max(_DELIMITERS, key=fit)


def _rows(text: str, delimiter: str, name: str, most: int) -> list[tuple[int, tuple[str, ...]]]:
    """Returns the rows, with trimmed cells, and the number of their last lines. Leaves out blank rows, except where a heading may be.

    Stops once the file has more than `most` rows after any heading: it may have millions. Raises FileRefused if millions are blank.
    """
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows: list[tuple[int, tuple[str, ...]]] = []
    try:
        for number, cells in enumerate(reader):
            line = reader.line_num
            if number == _MAX_ROWS:
                said = f"{name} has more than {_MAX_ROWS:,} lines, with the blank ones"
                raise FileRefused("too_many_lines", said, most=_MAX_ROWS)
            if len(cells) > _MAX_COLUMNS:
                said = f"{name}: line {line} has more than {_MAX_COLUMNS} columns"
                raise FileRefused("too_wide", said, line=line, most=_MAX_COLUMNS)
            row = tuple(map(str.strip, cells))
            if any(row) or len(rows) < _HEADING_WITHIN:
                rows.append((line, row))
            if len(rows) > _HEADING_WITHIN + most:
                break
    except csv.Error as error:
        said = f"{name} is not a CSV file: line {reader.line_num}: {error}"
        raise FileRefused("no_csv", said, line=reader.line_num) from None
    return rows


def _heading(rows: Sequence[Sequence[str]], columns: Columns) -> tuple[int, int, int] | None:
    """Returns the number of the heading row, and the columns of amount and currency. None if no row is one."""
    for at, cells in enumerate(rows):
        if len(cells) > _MAX_COLUMNS:  # no file may have such a line, and to search millions of columns takes long
            continue
        names = [_folded(cell) for cell in cells]
        amount = _place(names, columns.amount, _AMOUNTS)
        currency = _place(names, columns.currency, _CURRENCIES)
        if currency is None and columns.all_in:
            currency = -1
        if amount is not None and currency is not None:
            return at, amount, currency
    return None


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name.strip()[:_LONGEST_WORD].casefold())


def _place(names: Sequence[str], named: str | None, usual: Sequence[str]) -> int | None:
    """Returns the index of a column. A heading may continue after its usual word: `Amount (GBP)`."""
    if named is not None:
        return names.index(_folded(named)) if _folded(named) in names else None
    for word in usual:
        found = [at for at, name in enumerate(names) if re.match(rf"{word}\b", name)]
        if found:
            return next((at for at in found if names[at] == word), found[0])
    return None


def _cell(cells: Sequence[str], at: int) -> str:
    return cells[at][:_LONGEST_CELL] if 0 <= at < len(cells) else ""


def _is_camt(text: str) -> bool:
    """Returns whether a file is XML, so that it is no CSV file."""
    return text.lstrip().startswith("<")


def _camt_rows(name: str, text: str, most: int) -> list[tuple[int, tuple[str, ...]]]:
    """Returns the heading, and a row for each of the first `most` + 1 transactions with its number in the file. Raises FileRefused."""
    root = _camt_root(text)
    if root is None or root.tag != "Document":
        raise FileRefused("no_camt", f"{name} is neither a CSV file nor a CAMT file")
    rows = chain.from_iterable(map(_camt_rows_of, root.iterfind(_CAMT_ENTRY)))
    # No row is blank, so one more than allowed is enough to refuse the file. It may have millions.
    return [(0, _CAMT_HEADING), *enumerate(islice(rows, most + 1), 1)]


def _camt_root(text: str) -> Element | None:
    """Returns the root of an XML file; None if it is not XML. The names of elements have no namespace.

    The parser would write the address of a namespace into the name of every element: a file with a long one would take minutes, while the
    process answers nobody.
    """
    if "<!DOCTYPE" in text:  # without it, no entity expands
        return None
    builder, parser = TreeBuilder(), ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = lambda name, attributes: builder.start(_local(name), attributes)
    parser.EndElementHandler = lambda name: builder.end(_local(name))
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(text, True)
    except (ExpatError, ValueError):
        return None
    return builder.close()


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def _camt_rows_of(entry: Element) -> Iterator[tuple[str, ...]]:
    """Yields a row for an entry; or for each of its transactions, if each has an amount of its own."""
    direction = _short_text_in(entry.find("CdtDbtInd"))
    is_booked = _texts_in(entry.find("Sts")) == "BOOK"
    is_reversal = _texts_in(entry.find("RvslInd")) in {"true", "1"}
    state = "reversed" if is_reversal else "" if is_booked else "pending"
    transactions = entry.findall(_CAMT_TRANSACTION)
    # The whole text has the references, wherever the bank puts them, and its own number of the entry.
    if len(transactions) > 1 and all(_camt_amount(one) is not None for one in transactions):
        number = _short_text_in(entry.find("AcctSvcrRef"))
        for one in transactions:
            own = _texts_in(one.find("CdtDbtInd")) or direction
            yield _camt_row(_camt_amount(one), own, state, f"{number}\n{_texts_in(one)}")
    else:
        yield _camt_row(entry.find("Amt"), direction, state, _texts_in(entry))


def _camt_amount(transaction: Element) -> Element | None:
    return next((found for path in _CAMT_AMOUNTS if (found := transaction.find(path)) is not None), None)


def _camt_row(amount: Element | None, direction: str, state: str, texts: str) -> tuple[str, ...]:
    value, currency = ("", "") if amount is None else (_texts_in(amount), amount.get("Ccy", ""))
    if _THREE_DECIMALS.fullmatch(value):
        value += "0"
    return value, currency, direction, state, texts


def _short_text_in(element: Element | None) -> str:
    """Returns the start of the texts of an element that all transactions of an entry share: a long one would be searched for each of them."""
    return _texts_in(element)[:_LONGEST_CELL]


def _texts_in(element: Element | None) -> str:
    """Returns the texts of an element and of those in it, a line each."""
    return "" if element is None else "\n".join(one.strip() for one in element.itertext() if one.strip())
