"""What is wrong with a world file: gathered, so that one run shows many mistakes.

Reading the fields of one mapping: each by the rule of its kind (`values`), each mistake with its line.

A mistake does not end the reading: it is noted and a stand-in goes on, so that one run shows many mistakes.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator
from decimal import Decimal

from largesse.base.errors import OperatorError
from largesse.base.text import cleaned
from largesse.seed import values
from largesse.seed.document import Place
from largesse.seed.nodes import Mapping, Node, Scalar, Sequence
from largesse.seed.values import InvalidValue, Rule, Value, is_null

_SHOWN = 20  # in one run


class SeedErrors:
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
        """Raises OperatorError with the first mistakes, one per line, if there are any."""
        if not self._found:
            return
        lines = [text for _, text in sorted(self._found, key=lambda found: found[0])]
        more = len(lines) - _SHOWN
        raise OperatorError("\n".join(lines[:_SHOWN] + ([f"… and {more} more"] if more > 0 else [])))


_KEY_LENGTH = 100


class Fields:
    """Reads one mapping; `done` makes a mistake of every field that nobody asked for.

    Each reader returns None, or its `default`, for a field that is missing or null; `required` makes that a mistake.
    """

    def __init__(self, node: Node, path: str, mistakes: SeedErrors) -> None:
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
        self._mistakes.add(self._lines.get(name, self._line), self._path_of(name), text)

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return name in self._items and not is_null(self._items[name][1])

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
        """A key, or a reference to one; empty after a mistake that leaves none."""
        key = self._one(name, values.text(_KEY_LENGTH), required=True) or ""
        if "/" in key:
            self.mistake(name, "must not contain a slash")
        return key

    def reference(self, name: str) -> str | None:
        """The key of something else in the file; None where there is none."""
        return self._one(name, values.text(_KEY_LENGTH))

    def references(self, name: str, *, required: bool = False) -> tuple[str, ...] | None:
        """Keys in a list; none of them twice and at least one."""
        found = self._each(name, values.text(_KEY_LENGTH), "{!r} comes twice", required=required)
        return found if self.has(name) else None

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
        return self._one(name, values.text(most, line_ends=line_ends), required=required)

    def email(self, name: str) -> str:
        """An e-mail address in its normal form; empty after a mistake."""
        return self._one(name, values.email, required=True) or ""

    def choice(self, name: str, options: Collection[str], default: str | None = None) -> str:
        """One of `options`; required without a default."""
        return self._one(name, values.choice(options), required=default is None) or default or ""

    def currency(self, name: str = "currency") -> str:
        """An ISO 4217 code in capitals; empty after a mistake."""
        return self._one(name, values.currency, required=True) or ""

    def country(self, name: str, *, required: bool = False) -> str | None:
        """An ISO 3166-1 alpha-2 code in capitals."""
        return self._one(name, values.country, required=required)

    def countries(self, name: str) -> tuple[str, ...]:
        """ISO 3166-1 alpha-2 codes in capitals, in the file's order, none of them twice."""
        return self._each(name, values.country, "{} comes twice", required=True)

    # Numbers

    def flag(self, name: str, *, default: bool | None = None) -> bool:
        """True or false; required without a default."""
        found = self._one(name, values.flag, required=default is None)
        return bool(default) if found is None else found

    def whole(self, name: str, least: int, most: int) -> int | None:
        """A whole number from `least` to `most`; None where it is missing or a mistake."""
        return self._one(name, values.whole(least, most))

    def percent(self, name: str) -> Decimal:
        """A percentage from 0 to 1000, 0 where the field is missing."""
        return self._one(name, values.percent) or Decimal(0)

    def percents(self, name: str) -> dict[str, Decimal]:
        """Percentages by country."""
        return self._by_country(name, values.percent)

    def amount(self, name: str, currency: str, *, least: int = 1, required: bool = False) -> int | None:
        """Minor units of `currency`, at least `least` of them; None too after a mistake."""
        return self._one(name, values.amount(currency, least=least), required=required)

    def amounts(self, name: str, currency: str) -> tuple[int, ...]:
        """Minor units, all positive and different, brought into ascending order."""
        found = self._each(name, values.amount(currency), "comes twice")
        return tuple(sorted(minor for minor in found if minor is not None))

    def amounts_by_country(self, name: str, currency: str) -> dict[str, int]:
        """Minor units by country, none of them negative."""
        found = self._by_country(name, values.amount(currency, least=0), required=True)
        return {country: minor for country, minor in found.items() if minor is not None}

    # Lists of objects

    def objects(self, name: str) -> Iterator[Fields]:
        """The mappings of a list, each to be read in turn; none where the field is missing."""
        for item, node in self._list(name, empty=True):
            yield Fields(node, self._path_of(item), self._mistakes)

    # What the readers are made of. `item` names a field or an element: `countries[1]`.

    def _one(self, name: str, rule: Rule[Value], *, required: bool = False) -> Value | None:
        node = self._node(name, required=required)
        return None if node is None else self._read(name, node, rule)

    def _each(self, name: str, rule: Rule[Value], twice: str, *, required: bool = False) -> tuple[Value, ...]:
        """The values of a list that are no mistakes; `twice` says what is wrong with one that has come before."""
        found: dict[Value, None] = {}
        for item, node in self._list(name, required=required):
            value = self._read(item, node, rule)
            if value is None:
                continue
            if value in found:
                self.mistake(item, twice.format(value))
            found[value] = None
        return tuple(found)

    def _by_country(self, name: str, rule: Rule[Value], *, required: bool = False) -> dict[str, Value]:
        node = self._node(name, required=required)
        if node is None:
            return {}
        if not isinstance(node, Mapping):
            self.mistake(name, "must be a mapping of countries, as {GB: 4.95}")
            return {}
        if not node.items and required:
            self.mistake(name, "must name at least one country")
        found: dict[str, Value | None] = {}
        for written, (line, element) in node.items.items():
            item = f"{name}.{written[:40]}"
            self._lines[item] = line
            country = self._read(item, Scalar(written, plain=True, line=line), values.country)
            if country in found:
                self.mistake(item, f"{country} comes twice")
            elif country is not None:
                found[country] = self._read(item, element, rule)
        return {country: value for country, value in found.items() if value is not None}

    def _list(self, name: str, *, required: bool = False, empty: bool = False) -> Iterator[tuple[str, Node]]:
        node = self._node(name, required=required)
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

    def _node(self, name: str, *, required: bool) -> Node | None:
        self._asked.append(name)
        if self.has(name):
            return self._items[name][1]
        if required:
            self.mistake(name, "is required")
        return None

    def _read(self, item: str, node: Node, rule: Rule[Value]) -> Value | None:
        try:
            return rule(node)
        except InvalidValue as wrong:
            self.mistake(item, str(wrong))
            return None

    def _path_of(self, item: str) -> str:
        return f"{self._path}.{item}" if self._path else item
