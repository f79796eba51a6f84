"""Reads YAML text as a tree in which every value has its line and its text as written, and has the rules for single values, by kind.

The rules use the text as written: `1000.00` stays exact, and the country `NO` is not the boolean that YAML 1.1 makes of it. The tree is
built from the parser's events, without recursion, so that depth, size and repetition by aliases are limited early. Decision 55 says why PyYAML's `compose` is not used.

A rule takes a node and returns its value, or raises InvalidValue.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from decimal import Decimal
from typing import TypeAlias, TypeVar

import msgspec
import yaml

from largesse.base.email import MAX_EMAIL, EmailError, normalise_email
from largesse.base.errors import OperatorError
from largesse.base.i18n.languages import country_codes
from largesse.base.money import MAX_AMOUNT, MAX_BALANCE, AmountError, to_minor
from largesse.base.text import trimmed, unfit

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAX_DEPTH = 16
_MAX_NODES = 5_000_000  # values repeated by aliases count each time
_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "seq", "map", "timestamp")
)
_UNREADABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LINE_END = re.compile("\r\n|[\r\n\x85\u2028\u2029]")  # the line ends that the parser counts


class Scalar(msgspec.Struct, frozen=True):
    """One value as written. `plain` means without quotes."""

    text: str
    plain: bool
    line: int


class Sequence(msgspec.Struct, frozen=True):
    """A list."""

    items: list[Node]
    line: int


class Mapping(msgspec.Struct, frozen=True):
    """Names and values in the order of the file. No name comes twice."""

    items: dict[str, tuple[int, Node]]  # the line and the value of each name
    line: int


Node = Scalar | Sequence | Mapping


def compose(text: str, file: str) -> Node | None:
    """Returns the tree of a YAML text, or None if it is empty.

    Raises OperatorError with file and line for anything but one plain YAML document: broken syntax, tags of
    programming languages, repeated names, and nesting or repetition beyond the limits.
    """
    bad = _UNREADABLE.search(text)
    if bad:
        line = len(_LINE_END.findall(text, 0, bad.start())) + 1
        raise OperatorError(f"{file}:{line}: the character U+{ord(bad[0]):04X} is not allowed")
    builder = _Builder(file)
    for event in _events(text, file):
        builder.take(event)
    return builder.root


def _events(text: str, file: str) -> Iterator[yaml.Event]:
    try:
        yield from yaml.parse(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark, begun = error.problem_mark or error.context_mark, error.context_mark
        line = mark.line + 1 if mark else 1
        inside = f" ({error.context}, from line {begun.line + 1} on)" if error.context and begun else ""
        raise OperatorError(f"{file}:{line}: this is not YAML: {error.problem or 'unreadable'}{inside}") from None


class _Open(msgspec.Struct):
    """A list or mapping that has not ended."""

    node: Sequence | Mapping
    anchor: str | None
    nodes_before: int
    name: str | None = None  # in a mapping: the name whose value comes next
    name_line: int = 0


class _Builder(msgspec.Struct):
    """Builds the tree from events."""

    file: str
    root: Node | None = None
    _open: list[_Open] = []
    _anchors: dict[str, tuple[Node, int]] = {}  # each with the number of nodes in it
    _nodes: int = 0
    _documents: int = 0

    def take(self, event: yaml.Event) -> None:
        assert event.start_mark is not None
        line = event.start_mark.line + 1
        if isinstance(event, yaml.ScalarEvent):
            self._check_tag(event, line)
            node = Scalar(event.value, event.implicit[0], line)
            self._add(node, line)
            if event.anchor:
                self._anchors[event.anchor] = (node, 1)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._check_tag(event, line)
            started = Sequence([], line) if isinstance(event, yaml.SequenceStartEvent) else Mapping({}, line)
            self._add(started, line)
            self._open.append(_Open(started, event.anchor, self._nodes - 1))
            if len(self._open) > _MAX_DEPTH:
                raise self._refuse(line, "lists and mappings are nested too deeply")
        elif isinstance(event, yaml.CollectionEndEvent):
            ended = self._open.pop()
            if ended.anchor:
                self._anchors[ended.anchor] = (ended.node, self._nodes - ended.nodes_before)
        elif isinstance(event, yaml.AliasEvent):
            self._repeat(event, line)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise self._refuse(line, "a seed file must be one YAML document, but a second one begins here")

    def _repeat(self, event: yaml.AliasEvent, line: int) -> None:
        if event.anchor not in self._anchors:
            raise self._refuse(line, f"*{event.anchor} must repeat a value that is complete above it")
        node, nodes = self._anchors[event.anchor]
        self._add(node, line, nodes)

    def _add(self, node: Node, line: int, nodes: int = 1) -> None:
        self._nodes += nodes
        if self._nodes > _MAX_NODES:
            raise self._refuse(line, f"the file holds more than {_MAX_NODES} values")
        if not self._open:
            self.root = node
            return
        parent = self._open[-1]
        if isinstance(parent.node, Sequence):
            parent.node.items.append(node)
        elif parent.name is None:
            self._name(parent, node, line)
        else:
            parent.node.items[parent.name] = (parent.name_line, node)
            parent.name = None

    def _name(self, parent: _Open, node: Node, line: int) -> None:
        assert isinstance(parent.node, Mapping)
        if not isinstance(node, Scalar):
            raise self._refuse(line, "the name of a field must be a word, not a list or a mapping")
        if node.plain and node.text == "<<":
            raise self._refuse(line, "merge keys (<<) are not supported")
        if node.text in parent.node.items:
            raise self._refuse(line, f"{node.text[:40]!r} is repeated in one mapping")
        parent.name, parent.name_line = node.text, line

    def _check_tag(self, event: yaml.NodeEvent, line: int) -> None:
        tag = getattr(event, "tag", None)
        if tag not in (None, "!") and tag not in _TAGS:
            raise self._refuse(line, f"the tag {tag!r} is not supported")

    def _refuse(self, line: int, text: str) -> OperatorError:
        return OperatorError(f"{self.file}:{line}: {text}")


Value = TypeVar("Value")
Rule: TypeAlias = Callable[[Node], Value]

# Numbers of YAML 1.1, without octal numbers (leading zero) and underscores.
_NUMBER = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)")
_NUMBER_LENGTH = 24  # Decimal arithmetic rounds beyond 28 digits
_LIKE_A_NUMBER = re.compile(r"[-+]?\.?[0-9][0-9_]*(?:\.[0-9_]*)?")
_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_TRUE = frozenset(("true", "yes", "on"))
_FALSE = frozenset(("false", "no", "off"))
_PERCENT_MAX = 1000
_PERCENT_DECIMALS = 4


class InvalidValue(Exception):
    """A value that breaks its rule. The message follows the value's place."""


def is_null(node: Node) -> bool:
    """Returns whether a value is null."""
    return isinstance(node, Scalar) and node.plain and node.text in _NULLS


def text(most: int, *, line_ends: bool = False) -> Rule[str]:
    """Returns the rule for text of at most `most` characters, without the spaces around it."""

    def rule(node: Node) -> str:
        if not isinstance(node, Scalar):
            raise InvalidValue("must be text")
        if node.plain and (node.text.lower() in {"true", "false"} or _LIKE_A_NUMBER.fullmatch(node.text)):
            raise InvalidValue("must be text: put it in quotes")
        found = node.text.strip()
        if not trimmed(found):
            raise InvalidValue("must not be empty")
        if len(found) > most:
            raise InvalidValue(f"must have at most {most} characters, not {len(found)}")
        if bad := unfit(found, line_breaks=line_ends):
            raise InvalidValue(f"must not contain {bad}")
        return found

    return rule


def email(node: Node) -> str:
    """Returns a normalised e-mail address."""
    try:
        return normalise_email(text(MAX_EMAIL)(node))
    except EmailError as error:
        raise InvalidValue(f"must be an e-mail address: {error}") from None


def choice(options: Collection[str]) -> Rule[str]:
    """Returns the rule for one of `options`, as written."""

    def rule(node: Node) -> str:
        if not isinstance(node, Scalar) or node.text not in options:
            raise InvalidValue(f"must be one of {', '.join(options)}")
        return node.text

    return rule


def currency(node: Node) -> str:
    """Returns an ISO 4217 code in capitals. Loading checks that the database has the currency."""
    return _code(node, 3, "a currency of three letters, as GBP")


def country(node: Node) -> str:
    """Returns an ISO 3166-1 alpha-2 code in capitals."""
    what = "the code of a country in ISO 3166-1, as GB"
    code = _code(node, 2, what)
    if code not in country_codes():
        raise InvalidValue(f"must be {what}")
    return code


def flag(node: Node) -> bool:
    """Returns a boolean."""
    word = node.text.lower() if isinstance(node, Scalar) and node.plain else ""
    if word not in _TRUE and word not in _FALSE:
        is_quoted = isinstance(node, Scalar) and not node.plain and node.text.lower() in _TRUE | _FALSE
        raise InvalidValue(f"must be true or false{', without quotes' if is_quoted else ''}")
    return word in _TRUE


def whole(least: int, most: int) -> Rule[int]:
    """Returns the rule for a whole number from `least` to `most`."""

    def rule(node: Node) -> int:
        number = _number(node)
        if number != int(number) or not least <= number <= most:
            raise InvalidValue(f"must be a whole number from {least} to {most}")
        return int(number)

    return rule


def percent(node: Node) -> Decimal:
    """Returns a percentage from 0 to 1000 with at most 4 decimals."""
    number = _number(node)
    if not 0 <= number <= _PERCENT_MAX:
        raise InvalidValue(f"must be from 0 to {_PERCENT_MAX}")
    if number != round(number, _PERCENT_DECIMALS):
        raise InvalidValue(f"must have at most {_PERCENT_DECIMALS} decimals")
    return number


def balance(currency: str) -> Rule[int | None]:
    """Returns the rule for a balance. Unlike an amount, it may be above the largest amount, as several top-ups may add up to more."""

    def rule(node: Node) -> int | None:
        number = _number(node)
        if number < 0:
            raise InvalidValue("must not be negative")
        if number > MAX_BALANCE:
            raise InvalidValue(f"must be at most {MAX_BALANCE}")
        if not currency:
            return None
        largest, rest = divmod(number, MAX_AMOUNT)
        try:
            return int(largest) * to_minor(MAX_AMOUNT, currency) + to_minor(rest, currency)
        except AmountError as error:
            raise InvalidValue(str(error)) from None

    return rule


def amount(currency: str, *, least: int = 1) -> Rule[int | None]:
    """Returns the rule for an amount of at least `least` (0 or 1) minor units; it returns None if the currency is empty after a mistake."""

    def rule(node: Node) -> int | None:
        number = _number(node)
        if not currency:
            return None
        try:
            minor = to_minor(number, currency)
        except AmountError as error:
            raise InvalidValue(str(error)) from None
        if minor < least:
            raise InvalidValue("must be greater than zero" if least else "must not be negative")
        return minor

    return rule


def _code(node: Node, length: int, what: str) -> str:
    letters = node.text if isinstance(node, Scalar) else ""
    if len(letters) == length and letters.isascii() and letters.isalpha():
        return letters.upper()
    raise InvalidValue(f"must be {what}")


def _number(node: Node) -> Decimal:
    if not isinstance(node, Scalar):
        raise InvalidValue("must be a number")
    is_number = _NUMBER.fullmatch(node.text) is not None
    if node.plain and is_number and len(node.text) <= _NUMBER_LENGTH:
        return Decimal(node.text)
    raise InvalidValue(f"must be a number{', without quotes' if is_number and not node.plain else ''}")
