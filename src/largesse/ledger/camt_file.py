"""Reads a bank's CAMT file (ISO 20022: camt.052, camt.053 and camt.054) as the rows of a CSV file, with a heading."""

import re
from collections.abc import Iterator
from itertools import chain
from xml.etree.ElementTree import Element, ParseError, fromstring

from largesse.base.errors import FileRefused

Row = tuple[int, tuple[str, ...]]
_HEADING = ("Amount", "Currency", "CdtDbtInd", "State", "Text")
_ENTRY, _TRANSACTION = "*/*/{*}Ntry", "{*}NtryDtls/{*}TxDtls"
# The amount of a transaction, by version of the format.
_OWN_AMOUNTS = ("{*}Amt", "{*}AmtDtls/{*}TxAmt/{*}Amt")

_THREE_DECIMALS = re.compile(r"[0-9]{1,3}\.[0-9]{3}")  # in a CSV file, the point could separate thousands


def is_camt(text: str) -> bool:
    """Returns whether a file is XML, so that it is no CSV file."""
    return text.lstrip().startswith("<")


def camt_rows(name: str, text: str) -> list[Row]:
    """Returns the heading, and a row for each transaction with its number in the file. Raises FileRefused."""
    try:
        root = None if "<!DOCTYPE" in text else fromstring(text)  # noqa: S314 - without a DOCTYPE, no entity expands
    except (ParseError, ValueError):
        root = None
    if root is None or root.tag.rpartition("}")[2] != "Document":
        raise FileRefused("no_csv", f"{name} is neither a CSV file nor a CAMT file")
    rows = chain.from_iterable(map(_rows_of, root.iterfind(_ENTRY)))
    return [(0, _HEADING), *enumerate(rows, 1)]


def _rows_of(entry: Element) -> Iterator[tuple[str, ...]]:
    """Yields a row for an entry; or for each of its transactions, if each has an amount of its own."""
    transactions = entry.findall(_TRANSACTION)
    amounts = [_own_amount(one) for one in transactions]
    if len(transactions) > 1 and None not in amounts:
        for transaction, amount in zip(transactions, amounts, strict=True):
            yield _row(entry, transaction, amount)
    else:
        yield _row(entry, entry, entry.find("{*}Amt"))


def _own_amount(transaction: Element) -> Element | None:
    return next((found for path in _OWN_AMOUNTS if (found := transaction.find(path)) is not None), None)


def _row(entry: Element, part: Element, amount: Element | None) -> tuple[str, ...]:
    value, currency = ("", "") if amount is None else (_text(amount), amount.get("Ccy", ""))
    if _THREE_DECIMALS.fullmatch(value):
        value += "0"
    direction = _text(part.find("{*}CdtDbtInd")) or _text(entry.find("{*}CdtDbtInd"))
    is_booked = _text(entry.find("{*}Sts")) == "BOOK"
    is_reversal = _text(entry.find("{*}RvslInd")) in {"true", "1"}
    # The whole text has the references, wherever the bank puts them, and its own number of the entry.
    texts = _text(part) if part is entry else f"{_text(entry.find('{*}AcctSvcrRef'))}\n{_text(part)}"
    return value, currency, direction, "reversed" if is_reversal else "" if is_booked else "pending", texts


def _text(element: Element | None) -> str:
    """Returns the texts of an element and of those in it, a line each."""
    return "" if element is None else "\n".join(one.strip() for one in element.itertext() if one.strip())
