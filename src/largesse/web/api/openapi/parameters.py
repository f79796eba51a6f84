"""What a document says of parameters: those of the path, and the members of a query type."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from largesse.web.api.openapi.parts import Json, publish
from largesse.web.api.operation import NoQuery, Operation


def path_parameters(operation: Operation) -> Iterator[Json]:
    """The parameters in an operation's path, each required."""
    for name, schema in operation.path_types.items():
        yield _parameter(name, "path", publish(schema), required=True)


def query_parameters(query: type[msgspec.Struct]) -> Iterator[Json]:
    """The members of a query type as parameters; a query cannot hold null, so only absence says nothing."""
    if query is NoQuery:
        return
    schema = msgspec.json.schema(query)["$defs"][query.__name__]
    required = schema.get("required", ())
    for name, member in schema["properties"].items():
        published = publish(member)
        if isinstance(published.get("type"), list):
            published["type"] = next(kind for kind in published["type"] if kind != "null")
        yield _parameter(name, "query", published, required=name in required)


def _parameter(name: str, place: str, schema: Json, *, required: bool) -> Json:
    parameter: Json = {"name": name, "in": place, "required": required}
    if "description" in schema:
        parameter["description"] = schema.pop("description")
    if "examples" in schema:
        parameter["example"] = schema.pop("examples")[0]
    return {**parameter, "schema": schema}
