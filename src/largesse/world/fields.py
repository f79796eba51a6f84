"""Reading the fields of one mapping: each kind of value with its rule, each mistake with its line.

A mistake does not end the reading: it is noted and a stand-in goes on, so that one run shows many mistakes.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator
from decimal import Decimal

from largesse.base.email import MAX_EMAIL, EmailError, normalise_email
from largesse.base.errors import StartError
from largesse.base.money import AmountError, to_minor
from largesse.base.text import cleaned, unfit
from largesse.world.document import Place
from largesse.world.nodes import Mapping, Node, Scalar, Sequence

# YAML 1.1 in its plain scalars; a leading zero would make an octal number, an underscore is allowed in none.
_NUMBER = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)")
_NUMBER_LENGTH = 24  # far inside the precision of Decimal arithmetic, which rounds beyond 28 digits
_LIKE_A_NUMBER = re.compile(r"[-+]?\.?[0-9][0-9_]*(?:\.[0-9_]*)?")
_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_TRUE = frozenset(("true", "yes", "on"))
_FALSE = frozenset(("false", "no", "off"))
_SHOWN = 20  # mistakes in one run
_KEY_LENGTH = 100
_PERCENT_MAX = 1000
_PERCENT_DECIMALS = 4


class Mistakes:
    """What is wrong with a file, in the order of its lines."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._found: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return len(self._found)

    def add(self, line: int, path: str, text: str) -> None:
        """Notes one at a line and a path of the file, its text fit for a terminal."""
        self._found.append((line, cleaned(f"{self.file}:{line}: {path}: {text}", "\ufffd")))

    def note(self, place: Place, name: str, text: str) -> None:
        """Adds one about a field of an object that has been read."""
        self._found.append((place.line_of(name), place.mistake(name, text)))

    def refuse_any(self) -> None:
        """Raises StartError with the first mistakes, one per line, if there are any."""
        if not self._found:
            return
        lines = [text for _, text in sorted(self._found, key=lambda found: found[0])]
        more = len(lines) - _SHOWN
        raise StartError("\n".join(lines[:_SHOWN] + ([f"… and {more} more"] if more > 0 else [])))


class Fields:
    """Reads one mapping; `done` makes a mistake of every field that nobody asked for.

    Each reader returns None, or its `default`, for a field that is missing or null; `required` makes that a mistake.
    """

    def __init__(self, node: Node, path: str, mistakes: Mistakes) -> None:
        self._path = path
        self._mistakes = mistakes
        self._asked: list[str] = []
        self._items: dict[str, tuple[int, Node]] = {}
        self._line = node.line
        if isinstance(node, Mapping):
            self._items = node.items
        else:
            mistakes.add(node.line, path or "the file", "must be a mapping of fields")
        self._lines = {name: line for name, (line, _) in self._items.items()}
        self.place = Place(mistakes.file, node.line, path, self._lines)

    def mistake(self, name: str, text: str) -> None:
        """Notes one about the field `name`, at its line, or at the mapping's where it is not there."""
        self._mistakes.add(
            self._lines.get(name, self._line), f"{self._path}.{name}" if self._path else name, text
        )

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return name in self._items and not _is_null(self._items[name][1])

    def refuse(self, names: Collection[str], text: str) -> None:
        """Makes a mistake of each of these fields that is there."""
        for name in names:
            self._asked.append(name)
            if self.has(name):
                self.mistake(name, text)

    def done(self) -> None:
        """Makes a mistake of every field that nobody asked for, with the name it may have been meant to be."""
        for name in self._items.keys() - set(self._asked):
            near = difflib.get_close_matches(name, self._asked, n=1)
            self.mistake(name[:40], f"unknown field{f', did you mean `{near[0]}`?' if near else ''}")

    # Text

    def key(self, name: str = "key") -> str:
        """A key, or a reference to one."""
        return self._as_key(name, self.text(name, _KEY_LENGTH, required=True) or "")

    def reference(self, name: str) -> str | None:
        """The key of something else in the file; None where there is none."""
        return self.text(name, _KEY_LENGTH)

    def references(self, name: str, *, required: bool = False) -> tuple[str, ...] | None:
        """Keys in a list; none of them twice and at least one."""
        found: dict[str, None] = {}
        for item, node in self._list(name, required=required):
            text = self._text_of(item, node, _KEY_LENGTH)
            if text in found:
                self.mistake(item, f"{text!r} comes twice")
            elif text is not None:
                found[text] = None
        return tuple(found) if self.has(name) else None

    def references_or_all(self, name: str) -> tuple[str, ...] | None:
        """Keys in a list, or None for the word `all`, which a missing field means too."""
        if self.has(name) and isinstance(node := self._items[name][1], Scalar):
            self._asked.append(name)
            if node.text != "all":
                self.mistake(name, "must be `all` or a list of keys")
            return None
        return self.references(name)

    def text(self, name: str, most: int, *, required: bool = False, line_ends: bool = False) -> str | None:
        """Text of at most `most` characters without blanks around it."""
        node = self._value(name, required=required)
        return None if node is None else self._text_of(name, node, most, line_ends=line_ends)

    def email(self, name: str) -> str:
        """An e-mail address in its normal form; empty after a mistake."""
        text = self.text(name, MAX_EMAIL, required=True)
        if text is None:
            return ""
        try:
            return normalise_email(text)
        except EmailError as error:
            self.mistake(name, f"must be an e-mail address: {error}")
            return ""

    def choice(self, name: str, options: Collection[str], default: str | None = None) -> str:
        """One of `options`; required without a default."""
        node = self._value(name, required=default is None)
        if node is None:
            return default or ""
        if isinstance(node, Scalar) and node.text in options:
            return node.text
        self.mistake(name, f"must be one of {', '.join(options)}")
        return default or ""

    def currency(self, name: str = "currency") -> str:
        """An ISO 4217 code in capitals; empty after a mistake."""
        return self._code(name, 3, "a currency of three letters, as GBP", required=True) or ""

    def country(self, name: str, *, required: bool = False) -> str | None:
        """An ISO 3166-1 alpha-2 code in capitals."""
        return self._code(name, 2, "a country of two letters, as GB", required=required)

    def countries(self, name: str) -> tuple[str, ...]:
        """ISO 3166-1 alpha-2 codes in capitals, in the file's order, none of them twice."""
        found: list[str] = []
        for item, node in self._list(name, required=True):
            code = self._code_of(item, node, 2, "a country of two letters, as GB")
            if code in found:
                self.mistake(item, f"{code} comes twice")
            elif code is not None:
                found.append(code)
        return tuple(found)

    # Numbers

    def flag(self, name: str, *, default: bool | None = None) -> bool:
        """True or false; required without a default."""
        node = self._value(name, required=default is None)
        if node is None:
            return default or False
        text = node.text.lower() if isinstance(node, Scalar) and node.plain else ""
        if text not in _TRUE and text not in _FALSE:
            self.mistake(name, "must be true or false")
        return text in _TRUE

    def whole(self, name: str, least: int, most: int) -> int | None:
        """A whole number from `least` to `most`; None where it is missing or a mistake."""
        node = self._value(name)
        number = None if node is None else self._number_of(name, node)
        if number is None:
            return None
        if number != int(number) or not least <= number <= most:
            self.mistake(name, f"must be a whole number from {least} to {most}")
            return None
        return int(number)

    def percent(self, name: str) -> Decimal:
        """A percentage from 0 to 1000, 0 where the field is missing."""
        node = self._value(name)
        return Decimal(0) if node is None else self._percent_of(name, node)

    def percents(self, name: str) -> dict[str, Decimal]:
        """Percentages by country."""
        return {country: self._percent_of(item, node) for item, country, node in self._by_country(name)}

    def amount(self, name: str, currency: str, *, least: int = 1, required: bool = False) -> int | None:
        """Minor units of `currency`, at least `least` of them; None too after a mistake."""
        node = self._value(name, required=required)
        return None if node is None else self._amount_of(name, node, currency, least)

    def amounts(self, name: str, currency: str) -> tuple[int, ...]:
        """Minor units, all positive and different, brought into ascending order."""
        found: list[int] = []
        for item, node in self._list(name):
            minor = self._amount_of(item, node, currency, 1)
            if minor in found:
                self.mistake(item, "comes twice")
            elif minor is not None:
                found.append(minor)
        return tuple(sorted(found))

    def amounts_by_country(self, name: str, currency: str) -> dict[str, int]:
        """Minor units by country, none of them negative."""
        found = {}
        for item, country, node in self._by_country(name, required=True):
            minor = self._amount_of(item, node, currency, 0)
            if minor is not None:
                found[country] = minor
        return found

    # Lists of objects

    def objects(self, name: str) -> Iterator[Fields]:
        """The mappings of a list, each to be read in turn; none where the field is missing."""
        for item, node in self._list(name, empty=True):
            yield Fields(node, f"{self._path}.{item}" if self._path else item, self._mistakes)

    # What the readers are made of. `item` names a field or an element: `countries[1]`.

    def _value(self, name: str, *, required: bool = False) -> Node | None:
        self._asked.append(name)
        if self.has(name):
            return self._items[name][1]
        if required:
            self.mistake(name, "is required")
        return None

    def _list(self, name: str, *, required: bool = False, empty: bool = False) -> Iterator[tuple[str, Node]]:
        node = self._value(name, required=required)
        if node is None:
            return
        if not isinstance(node, Sequence):
            self.mistake(name, "must be a list")
            return
        if not node.items and not empty:
            self.mistake(name, "must not be an empty list")
        for number, element in enumerate(node.items):
            item = f"{name}[{number}]"
            self._lines[item] = element.line
            yield item, element

    def _by_country(self, name: str, *, required: bool = False) -> Iterator[tuple[str, str, Node]]:
        node = self._value(name, required=required)
        if node is None:
            return
        if not isinstance(node, Mapping):
            self.mistake(name, "must be a mapping of countries, as {GB: 4.95}")
            return
        if not node.items and required:
            self.mistake(name, "must name at least one country")
        seen = set()
        for written, (line, element) in node.items.items():
            item = f"{name}.{written[:40]}"
            self._lines[item] = line
            country = self._code_of(
                item, Scalar(written, plain=True, line=line), 2, "a country of two letters, as GB"
            )
            if country in seen:
                self.mistake(item, f"{country} comes twice")
            elif country is not None:
                seen.add(country)
                yield item, country, element

    def _as_key(self, name: str, text: str) -> str:
        if "/" in text:
            self.mistake(name, "must not contain a slash")
        return text

    def _text_of(self, item: str, node: Node, most: int, *, line_ends: bool = False) -> str | None:
        if not isinstance(node, Scalar):
            self.mistake(item, "must be text")
            return None
        if node.plain and (node.text.lower() in {"true", "false"} or _LIKE_A_NUMBER.fullmatch(node.text)):
            self.mistake(item, "must be text: put it in quotes")
            return None
        text = node.text.strip()
        if not text:
            self.mistake(item, "must not be empty")
        elif len(text) > most:
            self.mistake(item, f"must have at most {most} characters, not {len(text)}")
        elif found := unfit(text, line_breaks=line_ends):
            self.mistake(item, f"must not contain {found}")
        else:
            return text
        return None

    def _code(self, name: str, length: int, what: str, *, required: bool) -> str | None:
        node = self._value(name, required=required)
        return None if node is None else self._code_of(name, node, length, what)

    def _code_of(self, item: str, node: Node, length: int, what: str) -> str | None:
        # From the letters as written: YAML 1.1 makes a boolean of NO, and so would a reader of YAML values.
        text = node.text if isinstance(node, Scalar) else ""
        if len(text) == length and text.isascii() and text.isalpha():
            return text.upper()
        self.mistake(item, f"must be {what}")
        return None

    def _number_of(self, item: str, node: Node) -> Decimal | None:
        text = node.text if isinstance(node, Scalar) and node.plain else ""
        if len(text) <= _NUMBER_LENGTH and _NUMBER.fullmatch(text):
            return Decimal(text)
        quoted = isinstance(node, Scalar) and not node.plain and _NUMBER.fullmatch(node.text)
        self.mistake(item, f"must be a number{', without quotes' if quoted else ''}")
        return None

    def _percent_of(self, item: str, node: Node) -> Decimal:
        number = self._number_of(item, node)
        if number is None:
            return Decimal(0)
        if not 0 <= number <= _PERCENT_MAX:
            self.mistake(item, f"must be from 0 to {_PERCENT_MAX}")
        elif number != round(number, _PERCENT_DECIMALS):
            self.mistake(item, f"must have at most {_PERCENT_DECIMALS} decimals")
        return number

    def _amount_of(self, item: str, node: Node, currency: str, least: int) -> int | None:
        number = self._number_of(item, node)
        if number is None or not currency:
            return None
        try:
            minor = to_minor(number, currency)
        except AmountError as error:
            self.mistake(item, str(error))
            return None
        if minor < least:
            self.mistake(item, "must be greater than zero" if least else "must not be negative")
            return None
        return minor


def _is_null(node: Node) -> bool:
    return isinstance(node, Scalar) and node.plain and node.text in _NULLS
