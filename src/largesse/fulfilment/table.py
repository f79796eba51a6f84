"""Reading an operator's CSV file, row by row."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from largesse.base.errors import StartError

_LONGEST_FIELD = 500
_DELIMITERS = ",;\t"


def read_rows(
    path: Path, required: Sequence[str], optional: Sequence[str] = (), *, alone: str | None = None
) -> Iterator[tuple[int, dict[str, str]]]:
    """Each row with its line number, fields trimmed, by the names of the heading line.

    A file of one column may lack the heading when `alone` names that column. Comma, semicolon and tab all separate.
    Raises StartError naming the line.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield from _read(file, required, optional, alone)
    except UnicodeDecodeError:
        raise StartError(f"{path.name} is not a text in UTF-8") from None
    except csv.Error as error:
        raise StartError(f"{path.name} is no CSV file: {error}") from None


def _read(
    file: Iterator[str], required: Sequence[str], optional: Sequence[str], alone: str | None
) -> Iterator[tuple[int, dict[str, str]]]:
    first = next(file, "")
    delimiter = max(_DELIMITERS, key=first.count)
    names = [
        name.strip().strip('"').lower().replace(" ", "_") for name in first.rstrip("\r\n").split(delimiter)
    ]
    known = {*required, *optional}
    skipped = 1
    if not known.intersection(names) and len(names) == 1 and alone is not None:
        names, skipped = [alone], 0
        file = _again(first, file)
    missing = [name for name in required if name not in names]
    if missing:
        raise StartError(
            f"line 1: the heading lacks {', '.join(missing)}; it may have {', '.join([*required, *optional])}"
        )
    reader = csv.reader(file, delimiter=delimiter, strict=True)
    for fields in reader:
        at = reader.line_num + skipped
        if not any(field.strip() for field in fields):
            continue
        if len(fields) > len(names):
            raise StartError(f"line {at}: there are {len(fields)} fields, the heading has {len(names)}")
        row = {name: field.strip() for name, field in zip(names, fields, strict=False) if name in known}
        if any(len(field) > _LONGEST_FIELD for field in row.values()):
            raise StartError(f"line {at}: a field has more than {_LONGEST_FIELD} characters")
        for name in required:
            if not row.get(name):
                raise StartError(f"line {at}: {name} is empty")
        yield at, row


def _again(first: str, rest: Iterator[str]) -> Iterator[str]:
    if first:
        yield first
    yield from rest
