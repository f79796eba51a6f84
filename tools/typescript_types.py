"""Writes sdk/typescript/src/generated from the OpenAPI documents: types, tables of shapes, limits and operations, and classes of problems.

python -m tools.typescript_types            writes it
python -m tools.typescript_types --check    exits with 1 if it is not what would be written
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from largesse.web.api.openapi.document import build_document, build_events_document
from largesse.web.api.routes import operations_of
from largesse.web.kit.problems import PROBLEMS, ProblemType

FOLDER = Path(__file__).parents[1] / "sdk/typescript/src/generated"
# The document's names for what both clients call otherwise.
NAMES = {
    "SendResponse": "Order",
    "LineRecord": "Line",
    "Subscription": "NewSubscription",
    "ListedSubscription": "Subscription",
    "DeliveryRecord": "Delivery",
    "AttemptRecord": "Attempt",
    "Event": "StreamedEvent",
}
# Members that the contract lets be null, and that no response of the service leaves so.
NEVER_NULL = {("Order", "reference"), ("NewSubscription", "secret")}
_HEAD = "// Written by tools/typescript_types.py from the OpenAPI documents. Do not edit it: `make typescript-types` writes it anew.\n"
MAX_SAFE = 2**53 - 1  # the largest integer that a number of JavaScript holds exactly, with all below
_LIMITS = {
    "minimum": "least",
    "maximum": "most",
    "maxLength": "longest",
    "minItems": "fewest",
    "maxItems": "longest",
    "pattern": "pattern",
}

Json = Mapping[str, Any]


class Writer:
    """Writes the files of one document, together with the payloads of another."""

    def __init__(self, document: Json, events: Json) -> None:
        self._schemas: dict[str, Json] = {**events["components"]["schemas"], **document["components"]["schemas"]}
        self._events = {
            name: self._name(methods["post"]["requestBody"]["content"]["application/json"]["schema"])
            for name, methods in events["webhooks"].items()
        }
        self._operations = [
            (method.upper(), path, operation)
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
        ]

    def files(self) -> dict[str, str]:
        """Returns the text of each file by its name."""
        bodies = {self._name(body) for _, _, operation in self._operations if (body := _body(operation))}
        bodies |= {name for body in bodies for name in self._reached(self._schema(body))}
        # Problems are no shape: each has its class.
        answers = {name for name in map(self._public, self._schemas) if name not in bodies} - {"Problem", "FieldError"}
        types = [
            'import type { AmountInput, Decimal } from "../decimal.js";\n',
            *(self._interface(name, is_input=name in bodies) for name in sorted(answers | bodies)),
            self._event_types(),
            self._operation_types(),
        ]
        tables = [
            'import type { Inputs } from "../inputs.js";\n',
            _table("SHAPES", {name: self._shape(name) for name in sorted(answers)}),
            _table("INPUTS", {name: self._inputs(name) for name in sorted(bodies)}, "Readonly<Record<string, Inputs>>"),
            _table("EVENTS", self._events, "Readonly<Record<string, string>>"),
            _table("OPERATIONS", dict(self._operation_entries())),
            _table("QUERIES", dict(self._query_entries()), "Readonly<Record<string, Inputs>>"),
        ]
        problems = [
            'import { Problem } from "../problem.js";\n',
            *map(_problem_class, PROBLEMS),
            _table("PROBLEMS", {one.slug: one for one in PROBLEMS}, "Readonly<Record<string, typeof Problem>>"),
        ]
        parts = {"types.ts": types, "tables.ts": tables, "problems.ts": problems}
        return {name: "\n".join([_HEAD + first, *others]) for name, (first, *others) in parts.items()}

    def _public(self, name: str) -> str:
        return NAMES.get(name, name)

    def _name(self, schema: Json) -> str:
        return self._public(schema["$ref"].rpartition("/")[2])

    def _schema(self, public: str) -> Json:
        (name,) = [name for name in self._schemas if self._public(name) == public]
        return self._schemas[name]

    def _reached(self, schema: Any) -> Iterator[str]:
        """Yields the names of the schemas that a schema refers to."""
        if isinstance(schema, Mapping):
            if "$ref" in schema:
                yield self._name(schema)
                yield from self._reached(self._schema(self._name(schema)))
            for value in schema.values():
                yield from self._reached(value)
        elif isinstance(schema, list):
            for value in schema:
                yield from self._reached(value)

    def _interface(self, name: str, *, is_input: bool) -> str:
        schema = self._schema(name)
        lines = [_comment(schema.get("description", "")), f"export interface {name} {{\n"]
        for member, given in schema["properties"].items():
            inner, may_be_null = _nullable(given)
            may_be_null &= (name, member) not in NEVER_NULL
            is_required = member in schema.get("required", ())
            kind = self._type(inner, is_input=is_input) + (" | null" if may_be_null else "")
            optional = "" if is_required else "?"
            kind += " | undefined" if optional else ""
            lines += [_comment(given.get("description", ""), "  "), f"  {member}{optional}: {kind};\n"]
        return "".join([*lines, "}\n"])

    def _type(self, schema: Json, *, is_input: bool) -> str:
        if "$ref" in schema:
            return self._name(schema)
        if values := schema.get("enum") or schema.get("x-extensible-enum"):
            return " | ".join([*map(json.dumps, values), "(string & {})"])
        match schema.get("type"):
            case "number":
                return "AmountInput" if is_input else "Decimal"
            case "integer":
                return "number"
            case "array":
                item = self._type(schema["items"], is_input=is_input)
                item = f"{item} | string" if is_input and item == "Recipient" else item
                return f"readonly ({item})[]" if " " in item else f"readonly {item}[]"
            case "object" if schema.get("additionalProperties"):
                inner, may_be_null = _nullable(schema["additionalProperties"])
                kind = self._type(inner, is_input=is_input) + (" | null" if may_be_null else "")
                return f"Readonly<Record<string, {kind}>>"
            case "object" | None:
                return "unknown"
            case "string" if is_input and schema.get("format") == "date-time":
                return "Date | string"
            case kind:
                return str(kind)

    def _shape(self, name: str) -> dict[str, str]:
        """Returns what each member is, for the check of a response: `?` in front: may be left out; behind: may be null."""
        schema = self._schema(name)
        shape = {}
        for member, given in schema["properties"].items():
            inner, may_be_null = _nullable(given)
            may_be_null &= (name, member) not in NEVER_NULL
            optional = "" if member in schema.get("required", ()) else "?"
            shape[member] = optional + self._kind(inner) + ("?" if may_be_null else "")
        return shape

    def _kind(self, schema: Json) -> str:
        if "$ref" in schema:
            return self._name(schema)
        match schema.get("type"):
            case "number":
                return "amount"
            case "array":
                return f"{self._kind(schema['items'])}[]"
            case "object" if schema.get("additionalProperties"):
                inner, may_be_null = _nullable(schema["additionalProperties"])
                return self._kind(inner) + ("?" if may_be_null else "") + "{}"
            case "string" | "integer" | "boolean" as kind:
                return str(kind)
            case _:
                return "any"

    def _inputs(self, name: str) -> dict[str, Any]:
        """Returns the limits of each member of a body."""
        schema = self._schema(name)
        required = schema.get("required", ())
        return {member: self._input(given, member in required) for member, given in schema["properties"].items()}

    def _input(self, given: Json, is_required: bool) -> dict[str, Any]:
        schema, may_be_null = _nullable(given)
        kind = self._kind(schema)
        if kind == "string" and schema.get("format") in {"date-time", "uuid"}:
            kind = {"date-time": "instant", "uuid": "uuid"}[schema["format"]]
        limits = {ours: schema[theirs] for theirs, ours in _LIMITS.items() if theirs in schema}
        if "most" in limits:
            limits["most"] = min(limits["most"], MAX_SAFE)
        flags = {"required": is_required, "nullable": may_be_null}
        return {"kind": kind, **limits, **{name: True for name, is_set in flags.items() if is_set}}

    def _event_types(self) -> str:
        members = "".join(f'  "{event}": {payload};\n' for event, payload in self._events.items())
        return f"/** What each event is about. */\nexport interface EventPayloads {{\n{members}}}\n"

    def _operation_types(self) -> str:
        lines = ["/** The response of each operation. */\nexport interface Answers {\n"]
        for _, _, operation in self._operations:
            schema = _answer(operation)
            lines.append(f"  {operation['operationId']}: {self._type(schema, is_input=False) if schema else 'void'};\n")
        return "".join([*lines, "}\n"])

    def _operation_entries(self) -> Iterator[tuple[str, Json]]:
        for method, path, operation in self._operations:
            schema = _answer(operation)
            also = [int(status) for status, one in operation["responses"].items() if _is_also(status, one)]
            entry = {"method": method, "path": path, "answer": self._kind(schema) if schema else "nothing"}
            yield operation["operationId"], {**entry, **({"also": also} if also else {})}

    def _query_entries(self) -> Iterator[tuple[str, Json]]:
        for _, _, operation in self._operations:
            given = [one for one in operation.get("parameters", ()) if one["in"] == "query"]
            if given:
                yield operation["operationId"], {one["name"]: self._input(one["schema"], False) for one in given}


def _nullable(schema: Json) -> tuple[Json, bool]:
    """Returns the schema of what is not null, and whether null is allowed."""
    for alternatives in ("anyOf", "oneOf"):
        if alternatives in schema:
            others = [one for one in schema[alternatives] if one.get("type") != "null"]
            assert len(others) == 1, schema
            return others[0], len(others) < len(schema[alternatives])
    kind = schema.get("type")
    if isinstance(kind, list):
        (one,) = [one for one in kind if one != "null"]
        return {**schema, "type": one}, "null" in kind
    return schema, False


def _body(operation: Json) -> Json | None:
    schema: Json | None = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    return schema


def _answer(operation: Json) -> Json | None:
    """Returns the schema of a successful response; None for one without a body."""
    (success,) = [response for status, response in operation["responses"].items() if status.startswith("2")]
    schema: Json | None = success.get("content", {}).get("application/json", {}).get("schema")
    return schema


def _is_also(status: str, response: Json) -> bool:
    """Returns whether a status other than 2xx comes with the body of success."""
    return not status.startswith("2") and "application/json" in response.get("content", {})


def _comment(text: str, indent: str = "") -> str:
    return f"{indent}/** {' '.join(text.split())} */\n" if text else ""


def _table(name: str, entries: Mapping[str, Any], kind: str = "") -> str:
    lines = "".join(f"  {_key(key)}: {_literal(value)},\n" for key, value in entries.items())
    return (
        f"export const {name}: {kind} = {{\n{lines}}};\n"
        if kind
        else f"export const {name} = {{\n{lines}}} as const;\n"
    )


def _literal(value: Any) -> str:
    if isinstance(value, ProblemType):
        return _class_name(value.slug)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key}: {_literal(one)}" for key, one in value.items()) + " }"
    return json.dumps(value)


def _key(name: str) -> str:
    return name if name.isidentifier() else json.dumps(name)


def _class_name(slug: str) -> str:
    return slug.title().replace("-", "")


def _problem_class(problem: ProblemType) -> str:
    name = _class_name(problem.slug)
    fields = ""
    if problem.slug == "reference-used":
        fields = """\
  /** The order that holds the reference. */
  orderReference: string | null = null;
  /** The members that differ, `serviceAccount` among them if another one placed that order; empty if that is unknown. */
  differences: readonly string[] = [];
"""
    return (
        _comment(f"{problem.status}: {problem.title}. {problem.explanation}")
        + f"export class {name} extends Problem {{\n"
        + f'  static override readonly slug: string = "{problem.slug}";\n'
        + f'  override name = "{name}";\n{fields}}}\n'
    )


def main() -> None:
    """Writes the files, or checks them."""
    files = Writer(build_document(operations_of("production")), build_events_document()).files()
    if "--check" not in sys.argv[1:]:
        FOLDER.mkdir(exist_ok=True)
        for name, text in files.items():
            (FOLDER / name).write_text(text, encoding="utf-8")
    elif {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*")} != files:
        sys.exit("sdk/typescript/src/generated is not up to date: run make typescript-types")


if __name__ == "__main__":
    main()
