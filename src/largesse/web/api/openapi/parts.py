"""What our OpenAPI documents share: what they say of themselves, and schemas, which msgspec tells of a type.

What JSON Schema calls a format, and types cannot say, is filled in here: an integer is an int32 and a number a double unless
its type says otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from largesse import __version__

Json = dict[str, Any]

REF = "#/components/schemas/{name}"


def info(title: str, description: str) -> Json:
    """What a document says of itself."""
    return {
        "title": title,
        "version": __version__,
        "summary": "A self-hosted gift ordering service",
        "description": description,
        "contact": {"name": "The operator of this service"},
        "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
    }


def schema_components(types: Sequence[Any]) -> tuple[dict[int, Json], Json]:
    """The schema of each type by the type's `id()`, and the named schemas those refer to."""
    refs, schemas = msgspec.json.schema_components(types, ref_template=REF)
    schema_of = {id(type_): publish(ref) for type_, ref in zip(types, refs, strict=True)}
    return schema_of, {_public_name(name): publish(schema) for name, schema in schemas.items()}


def publish(schema: Any) -> Any:
    """A schema as published: public names, formats filled in, `T or null` in the short form, no null defaults."""
    if isinstance(schema, list):
        return [publish(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    published = {
        name: value if name in {"examples", "default", "enum", "const"} else publish(value)
        for name, value in schema.items()
    }
    if "$ref" in published:
        path, _, name = published["$ref"].rpartition("/")
        published["$ref"] = f"{path}/{_public_name(name)}"
    if "title" in published and isinstance(published["title"], str):
        published["title"] = _public_name(published["title"])
    if published.get("default", ...) is None:
        del published["default"]
    published = _shortened(published)
    kinds = published.get("type", [])
    if "integer" in kinds:
        published.setdefault("format", "int32")
    elif "number" in kinds:
        published.setdefault("format", "double")
    elif "enum" in published and "type" not in published:
        published["type"] = "string"
    return published


def _shortened(schema: Json) -> Json:
    """`anyOf: [T, null]` as T with a second type, its description and examples on the outside."""
    match schema.get("anyOf"):
        case [{"type": str(kind)} as inner, {"type": "null"}]:
            outer = {name: value for name, value in schema.items() if name != "anyOf"}
            return {**inner, "type": [kind, "null"], **outer}
    return schema


def _public_name(name: str) -> str:
    return name.removesuffix("Shape")
