"""Reads the fields of a mapping, each by the rule of its kind (`values`), and collects mistakes with their lines.

A mistake does not stop the reading: it is recorded, and a substitute is returned, so that one run shows many mistakes.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Sized

from largesse.base.errors import OperatorError
from largesse.base.text import cleaned
from largesse.seed import values
from largesse.seed.document import Place
from largesse.seed.values import InvalidValue, Mapping, Node, Rule, Scalar, Sequence, Value, is_null

_SHOWN = 20  # mistakes shown in one run


class SeedErrors:
    """The mistakes of a file, in the order of its lines."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._found: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return len(self._found)

    def add(self, line: int, path: str, text: str) -> None:
        """Adds a mistake at a line and a path of the file, and makes its text safe for a terminal."""
        self._found.append((line, cleaned(f"{self.file}:{line}: {path}: {text}", "\ufffd")))

    def note(self, place: Place, name: str, text: str) -> None:
        """Adds a mistake in a field of an object that was read."""
        self._found.append((place.line_of(name), place.mistake(name, text)))

    def refuse_any(self) -> None:
        """Raises OperatorError with the first 20 mistakes, one per line, if there are any."""
        if not self._found:
            return
        lines = [text for _, text in sorted(self._found, key=lambda found: found[0])]
        more = len(lines) - _SHOWN
        raise OperatorError("\n".join(lines[:_SHOWN] + ([f"… and {more} more"] if more > 0 else [])))


_KEY_LENGTH = 100


class Fields:
    """Reads one mapping. `finish` adds a mistake for each field that was not read.

    Each reader returns None, or its `default`, for a field that is missing or null. With `required` that is a mistake.
    """

    def __init__(self, node: Node, path: str, mistakes: SeedErrors) -> None:
        self._path = path
        self._mistakes = mistakes
        self._count_before = len(mistakes)
        self._read_names: list[str] = []
        self._items: dict[str, tuple[int, Node]] = {}
        self._line = node.line
        if isinstance(node, Mapping):
            self._items = node.items
        else:
            mistakes.add(node.line, path or "the file", "must be a mapping of fields")
        self._lines = {name: line for name, (line, _) in self._items.items()}
        self.place = Place(mistakes.file, node.line, path, self._lines)

    @property
    def is_valid(self) -> bool:
        """Whether this mapping has no mistakes so far."""
        return len(self._mistakes) == self._count_before

    def mistake(self, name: str, text: str) -> None:
        """Adds a mistake in the field `name`, at its line, or at the line of the mapping if it is missing."""
        self._mistakes.add(self._lines.get(name, self._line), self._path_of(name), text)

    def has(self, name: str) -> bool:
        """Returns whether the field is there and not null."""
        return name in self._items and not is_null(self._items[name][1])

    def at_most(self, name: str, most: int, found: Sized) -> None:
        """Notes a mistake in the list `name` if more was found in it than there may be."""
        if len(found) > most:
            self.mistake(name, f"must have at most {most}, not {len(found)}")

    def refuse(self, names: Collection[str], text: str) -> None:
        """Adds a mistake for each of these fields that is given."""
        for name in names:
            self._read_names.append(name)
            if self.has(name):
                self.mistake(name, text)

    def finish(self, value: Value) -> Value:
        """Returns `value`. Adds a mistake for every field that was not read, with the name that was probably meant."""
        for name in self._items.keys() - set(self._read_names):
            near = difflib.get_close_matches(name, self._read_names, n=1)
            self.mistake(name[:40], f"unknown field{f', did you mean `{near[0]}`?' if near else ''}")
        return value

    # Text

    def key(self, name: str = "key", *, slash: bool = False) -> str:
        """Returns a key, or a reference to one; empty after a mistake. With `slash`, it may have slashes."""
        key = self.one(name, values.text(_KEY_LENGTH), required=True) or ""
        if "/" in key and not slash:
            self.mistake(name, "must not contain a slash")
        return key

    def reference(self, name: str) -> str | None:
        """Returns the key of another object, or None."""
        return self.one(name, values.text(_KEY_LENGTH))

    def references(self, name: str, *, required: bool = False) -> tuple[str, ...] | None:
        """Returns the keys in a list: at least one, none of them twice."""
        found = self.each(name, values.text(_KEY_LENGTH), "{!r} comes twice", required=required)
        return found if self.has(name) else None

    def references_or_all(self, name: str) -> tuple[str, ...] | None:
        """Returns the keys in a list, which may be empty, or None for the word `all` and for a missing field."""
        if self.has(name) and isinstance(node := self._items[name][1], Scalar):
            self._read_names.append(name)
            if node.text != "all":
                self.mistake(name, "must be `all` or a list of keys")
            return None
        return self.each(name, values.text(_KEY_LENGTH), "{!r} comes twice", empty=True) if self.has(name) else None

    def text(self, name: str, most: int, *, required: bool = False, line_ends: bool = False) -> str | None:
        """Returns text of at most `most` characters, without spaces around it."""
        return self.one(name, values.text(most, line_ends=line_ends), required=required)

    def choice(self, name: str, options: Collection[str], default: str | None = None) -> str:
        """Returns one of `options`. Required without a default."""
        return self.one(name, values.choice(options), required=default is None) or default or ""

    def managed(self) -> str:
        """Returns who manages the object once it is loaded: `file` or `office`."""
        return self.choice("managed", ("file", "office"), "file")

    def currency(self, name: str = "currency") -> str:
        """Returns an ISO 4217 code in capitals; empty after a mistake."""
        return self.one(name, values.currency, required=True) or ""

    # Numbers

    def flag(self, name: str, *, default: bool | None = None) -> bool:
        """Returns true or false; required without a default."""
        found = self.one(name, values.flag, required=default is None)
        return bool(default) if found is None else found

    def amount(self, name: str, currency: str, *, least: int = 1, required: bool = False) -> int | None:
        """Returns minor units of `currency`, at least `least`; None if missing or after a mistake."""
        return self.one(name, values.amount(currency, least=least), required=required)

    def balance(self, name: str, currency: str) -> int:
        """Returns minor units of `currency`, not negative; 0 if missing or after a mistake."""
        return self.one(name, values.balance(currency)) or 0

    def amounts(self, name: str, currency: str) -> tuple[int, ...]:
        """Returns minor units in ascending order, all positive and different."""
        found = self.each(name, values.amount(currency), "comes twice")
        return tuple(sorted(minor for minor in found if minor is not None))

    def amounts_by_country(self, name: str, currency: str) -> dict[str, int]:
        """Returns minor units by country, none of them negative."""
        found = self.by_country(name, values.amount(currency, least=0), required=True)
        return {country: minor for country, minor in found.items() if minor is not None}

    # Lists of objects

    def objects(self, name: str) -> Iterator[Fields]:
        """Yields the mappings of a list, none if the field is missing."""
        for item, node in self._list(name, empty=True):
            yield Fields(node, self._path_of(item), self._mistakes)

    # By any rule. `item` names a field or an element: `countries[1]`.

    def one(self, name: str, rule: Rule[Value], *, required: bool = False) -> Value | None:
        """Returns the value of a field, by its rule. Returns None if it is missing or a mistake."""
        node = self._node(name, required=required)
        return None if node is None else self._read(name, node, rule)

    def each(
        self, name: str, rule: Rule[Value], twice: str, *, required: bool = False, empty: bool = False
    ) -> tuple[Value, ...]:
        """Returns the valid values of a list. `twice` is the text of the mistake for a repeated one."""
        found: dict[Value, None] = {}
        for item, node in self._list(name, required=required, empty=empty):
            value = self._read(item, node, rule)
            if value is None:
                continue
            if value in found:
                self.mistake(item, twice.format(value))
            found[value] = None
        return tuple(found)

    def by_country(self, name: str, rule: Rule[Value], *, required: bool = False) -> dict[str, Value]:
        """Returns the valid values of a mapping by country: ISO 3166-1 alpha-2 codes in capitals."""
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
        self._read_names.append(name)
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
