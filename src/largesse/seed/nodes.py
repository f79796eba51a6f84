"""Reads YAML text as a tree in which every value has its line and its text as written.

Values are read as text: `1000.00` stays exact, and the country `NO` is not the boolean that YAML 1.1 makes of it. The tree is
built from the parser's events, without recursion, so that depth, size and repetition by aliases are limited early. Decision 55 says why PyYAML's `compose` is not used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
import yaml

from largesse.base.errors import OperatorError

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
