"""Prints lists as tables for people, and with --json or --csv for programs. Long lists are printed in pieces."""

import csv
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import click
from msgspec.structs import asdict

from largesse.base.money import to_decimal
from largesse.base.settings import ENVIRONMENTS
from largesse.base.text import plain_text

Row = Mapping[str, Any]
_Command = Callable[..., Any]


def format_options(command: _Command) -> _Command:
    """Adds --json and --csv. The command gets `form`: json, csv, or None for a table."""
    for name, said in (("csv", "Print CSV, with a heading."), ("json", "Print a JSON array.")):
        command = click.option(f"--{name}", "form", flag_value=name, help=said)(command)
    return command


def customer_option(only: str) -> Callable[[_Command], _Command]:
    """Adds --customer. The command gets `customer`: the key of a customer, or None for all. `only` is what is listed, for the help."""
    return click.option("--customer", help=f"Key of a customer: only {only}.")


def environment_option(said: str | None = None) -> Callable[[_Command], _Command]:
    """Adds --environment, production by default. `said` is its help."""
    environments = click.Choice(ENVIRONMENTS)
    return click.option("--environment", default="production", show_default=True, type=environments, help=said)


def major(minor: int | None, currency: str) -> Decimal | None:
    """Returns an amount in major units; None if there is no amount."""
    return None if minor is None else to_decimal(minor, currency)


def in_major_units(record: Any, *amounts: str) -> dict[str, Any]:
    """Returns the members of a record as a dictionary. Adds the named amounts in major units: `total` from `total_minor`."""
    return asdict(record) | {name: major(getattr(record, f"{name}_minor"), record.currency) for name in amounts}


def show(form: str | None, columns: Sequence[str], rows: Iterable[Row], *, empty: str) -> None:
    """Prints rows, each with all of `columns`. A table without rows is replaced by the text `empty`.

    Amounts are numbers in major units, and instants are ISO 8601 in UTC. A table shows both in a shorter form.
    """
    with listing(form, columns, empty=empty) as add:
        add(rows)


@contextmanager
def listing(form: str | None, columns: Sequence[str], *, empty: str) -> Iterator[Callable[[Iterable[Row]], None]]:
    """Yields a function that prints rows as `show` does. Call it with one piece of rows after another."""
    kinds: dict[str | None, type[_Listing]] = {"json": _Json, "csv": _Csv, None: _Table}
    printed = kinds[form](columns, empty)
    yield printed.add
    printed.end()


class _Listing:
    def __init__(self, columns: Sequence[str], empty: str) -> None:
        self._columns = columns
        self._empty = empty
        self._is_empty = True

    def add(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self._print([row[column] for column in self._columns])
            self._is_empty = False

    def _print(self, values: Sequence[Any]) -> None:
        raise NotImplementedError

    def end(self) -> None:
        """Prints the end of the list."""


class _Json(_Listing):
    def _print(self, values: Sequence[Any]) -> None:
        row = json.dumps(dict(zip(self._columns, map(_plain, values), strict=True)), ensure_ascii=False)
        click.echo(("[\n  " if self._is_empty else ",\n  ") + row, nl=False)

    def end(self) -> None:
        click.echo("[]" if self._is_empty else "\n]")


class _Csv(_Listing):
    def __init__(self, columns: Sequence[str], empty: str) -> None:
        super().__init__(columns, empty)
        self._writer = csv.writer(sys.stdout, lineterminator="\n")
        self._writer.writerow(columns)

    def _print(self, values: Sequence[Any]) -> None:
        self._writer.writerow(map(_csv_cell, values))


class _Table(_Listing):
    """A table. The first piece of rows sets the widths of its columns."""

    def __init__(self, columns: Sequence[str], empty: str) -> None:
        super().__init__(columns, empty)
        self._widths: list[int] = []
        self._is_right: list[bool] = []

    def add(self, rows: Iterable[Row]) -> None:
        cells = [[_shown(row[column]) for column in self._columns] for row in rows]
        if cells and self._is_empty:
            headings = [column.replace("_", " ") for column in self._columns]
            self._widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
            self._is_right = [all(map(_is_number, column)) for column in zip(*cells, strict=True)]
            self._print(headings)
            self._is_empty = False
        for row in cells:
            self._print(row)

    def _print(self, values: Sequence[Any]) -> None:
        aligned = (
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(values, self._widths, self._is_right, strict=True)
        )
        click.echo("  ".join(aligned).rstrip())

    def end(self) -> None:
        if self._is_empty:
            click.echo(self._empty)


def _plain(value: Any) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) else value


def _csv_cell(value: Any) -> Any:
    if isinstance(value, str):
        return plain_text(value)
    if isinstance(value, list):
        return plain_text(" ".join(value))
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, Decimal) else _plain(value)


def _shown(value: Any) -> str:
    if value is None or value == []:
        return "-"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(value)
    return f"{value:,}" if isinstance(value, Decimal) else str(value)


def _is_number(text: str) -> bool:
    return text == "-" or text.replace(",", "").replace(".", "").lstrip("-").isdigit()
