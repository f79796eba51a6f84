"""Members, parameters and their rules in words, as the tables of the reference show them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

Json = dict[str, Any]

_CODE = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\[([^\]]+)\]\((/[^)\s]*)\)")


@dataclass(frozen=True, slots=True)
class Field:
    """A row of a table: a member of a body or answer, or a parameter. Texts are HTML."""

    name: str
    place: str  # path, query or header; empty for members
    kind: Markup
    required: bool
    rules: Markup
    description: Markup


@dataclass(frozen=True, slots=True)
class Table:
    """The fields of one named schema."""

    name: str
    description: Markup
    fields: list[Field]
    used_by: list[str]  # operation ids


def read_tables(document: Json) -> list[Table]:
    """The document's schemas, each a table."""
    users = _users(document)
    return [
        Table(
            name,
            prose(schema.get("description", "")),
            [
                read_field(member, "", value, required=member in schema.get("required", ()))
                for member, value in schema["properties"].items()
            ],
            users.get(name, []),
        )
        for name, schema in document["components"]["schemas"].items()
    ]


def prose(text: str) -> Markup:
    """A text of the document as HTML: code in backticks, links to pages of ours, nothing else."""
    html = str(escape(text))
    html = _CODE.sub(r"<code>\1</code>", html)
    return Markup(_LINK.sub(r'<a href="\2">\1</a>', html))  # noqa: S704 - escaped first


def read_field(name: str, place: str, schema: Json, *, required: bool) -> Field:
    """A member or parameter of that schema; `place` as in Field."""
    return Field(
        name=name,
        place=place,
        kind=type_in_words(schema),
        required=required,
        rules=Markup(", ").join(_rules(schema)),
        description=prose(schema.get("description", "")),
    )


def type_in_words(schema: Json) -> Markup:
    """The type in words, with links to the tables of other schemas."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return Markup('<a href="#schema-{0}">{0}</a>').format(name)
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    words = []
    for kind in kinds:
        if kind == "array":
            words.append(Markup("array of {}").format(type_in_words(schema["items"])))
        elif kind == "object" and "additionalProperties" in schema:
            words.append(Markup("object of {}").format(type_in_words(schema["additionalProperties"])))
        elif kind != "null" and "format" in schema:
            words.append(escape(f"{kind} ({schema['format']})"))
        else:
            words.append(escape(kind))
    return Markup(" or ").join(words)


def _rules(schema: Json) -> Iterator[Markup]:
    """What a value must keep to, in words."""
    if "enum" in schema:
        yield Markup(" or ").join(Markup("<code>{}</code>").format(value) for value in schema["enum"])
    lowest, highest = schema.get("minimum"), schema.get("maximum")
    if lowest is not None and highest is not None:
        yield Markup("{} to {}").format(_number(lowest), _number(highest))
    elif lowest is not None:
        yield Markup("at least {}").format(_number(lowest))
    if "maxLength" in schema:
        yield Markup("at most {} characters").format(_number(schema["maxLength"]))
    if "maxItems" in schema:
        yield Markup("at most {} items").format(_number(schema["maxItems"]))
    if "pattern" in schema:
        yield Markup("matches <code>{}</code>").format(schema["pattern"])
    if "default" in schema:
        yield Markup("default <code>{}</code>").format(schema["default"])


def _number(number: float) -> str:
    return f"{number:,}"


def _users(document: Json) -> dict[str, list[str]]:
    """Which operations take or answer each schema, directly or within another."""
    schemas = document["components"]["schemas"]
    users: dict[str, list[str]] = {}
    for methods in document.get("paths", {}).values():
        for operation in methods.values():
            for name in _reached(operation, schemas, set()):
                users.setdefault(name, []).append(operation["operationId"])
    return users


def _reached(node: Any, schemas: Json, seen: set[str]) -> set[str]:
    if isinstance(node, dict):
        name = str(node.get("$ref", "")).removeprefix("#/components/schemas/")
        if name in schemas and name not in seen:
            seen.add(name)
            _reached(schemas[name], schemas, seen)
        for value in node.values():
            _reached(value, schemas, seen)
    elif isinstance(node, list):
        for item in node:
            _reached(item, schemas, seen)
    return seen
