"""Parameters of a page's address: pages declare each with its kind, and only this module decodes and limits them.

A parameter that breaks a limit or is not declared counts as absent, since we cannot ask anybody to correct an address. Pages that must
know use `is_wrong`. `require_fit_path` checks the parameters of the path.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

import msgspec

from largesse.base.errors import NotFound
from largesse.base.text import cleaned, unfit_key

if TYPE_CHECKING:
    from starlette.requests import Request

INT32, INT64 = 2**31 - 1, 2**63 - 1
_MAX_PARAMETERS = 500
_MAX_PATH_PARAMETER = 400
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MONTH = re.compile(r"2[01][0-9]{2}-(0[1-9]|1[0-2])")


class Line(msgspec.Struct, frozen=True):
    """A text of one line: its first `most` characters, without control characters."""

    most: int

    def read(self, text: str) -> str:
        """Returns the text."""
        return cleaned(text, "")[: self.most]


class Whole(msgspec.Struct, frozen=True):
    """A whole number from 0 to `highest`, in digits."""

    highest: int = INT32

    def read(self, text: str) -> int | None:
        """Returns the number; None for anything else."""
        is_number = text.isascii() and text.isdigit() and len(text) <= len(str(self.highest))
        return int(text) if is_number and int(text) <= self.highest else None


class Day(msgspec.Struct, frozen=True):
    """A date such as 2026-11-30."""

    def read(self, text: str) -> date | None:
        """Returns the date; None for anything else."""
        try:
            return date.fromisoformat(text) if _DAY.fullmatch(text) else None
        except ValueError:
            return None


class Month(msgspec.Struct, frozen=True):
    """A month such as 2026-11, of this century or the next."""

    def read(self, text: str) -> date | None:
        """Returns the first day of the month; None for anything else."""
        return Day().read(f"{text}-01") if _MONTH.fullmatch(text) else None


Kind = Line | Whole | Day | Month
_SHOWN = Line(40)  # limits the text of a number or day that a page shows again as it was sent


class Query:
    """The declared parameters of an address."""

    def __init__(self, raw: bytes, declared: Mapping[str, Kind]) -> None:
        self._declared = declared
        self.pairs = [
            (name, kind.read(text) if isinstance(kind := declared[name], Line) else _SHOWN.read(text))
            for name, text in _pairs(raw)
            if name in declared
        ]
        self._texts = dict(reversed(self.pairs))
        self._read = {name: declared[name].read(text) for name, text in self._texts.items()}

    def text(self, name: str) -> str:
        """Returns the first parameter with that name as text, within its limit; empty without one."""
        assert name in self._declared, f"{name} is not declared"
        return self._texts.get(name, "")

    def texts(self, name: str) -> list[str]:
        """Returns the parameters with that name as texts."""
        assert name in self._declared, f"{name} is not declared"
        return [text for given, text in self.pairs if given == name]

    def number(self, name: str, highest: int = INT32) -> int | None:
        """Returns a parameter that is declared as a whole number, at most `highest`; None without one.

        A number above the highest id counts as the highest, so that a list begins or ends there.
        """
        assert isinstance(self._declared[name], Whole), f"{name} is not declared a whole number"
        found = self._read.get(name)
        return min(found, highest) if isinstance(found, int) else None

    def day(self, name: str) -> date | None:
        """Returns a parameter that is declared as a day or a month; None without one."""
        assert isinstance(self._declared[name], Day | Month), f"{name} is not declared a day"
        found = self._read.get(name)
        return found if isinstance(found, date) else None

    def is_wrong(self, name: str) -> bool:
        """Returns whether a parameter was sent and is not valid."""
        return bool(self._texts.get(name)) and self._read.get(name) is None


def query_of(request: Request, declared: Mapping[str, Kind]) -> Query:
    """Returns the declared parameters of a request's address."""
    return Query(request.scope["query_string"], declared)


def require_fit_path(request: Request) -> None:
    """Raises NotFound if a parameter of the path has a value that none can have."""
    for value in request.path_params.values():
        is_fit = (
            len(value) <= _MAX_PATH_PARAMETER and not unfit_key(value) if isinstance(value, str) else value <= INT64
        )
        if not is_fit:
            raise NotFound("There is nothing at this address.")


def _pairs(raw: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            raw.decode("latin-1"), keep_blank_values=True, errors="replace", max_num_fields=_MAX_PARAMETERS
        )
    except ValueError:
        return []
