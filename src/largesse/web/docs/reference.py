"""The operations of the reference: the OpenAPI document cut up for reading, with code samples.

Everything is read from the document, so the page cannot say anything else than the document does.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from markupsafe import Markup

from largesse.web.docs.samples import Sample, pretty, read_samples
from largesse.web.docs.shapes import Field, prose, read_field, type_in_words

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StatusRow:
    """One status an operation answers with."""

    status: str
    phrase: str
    description: Markup
    kind: Markup
    is_error: bool


@dataclass(frozen=True, slots=True)
class Described:
    """One operation of the reference."""

    id: str
    method: str
    path: str
    summary: str
    description: Markup
    needs_key: bool
    parameters: list[Field]
    body: str  # name of the schema; empty when it takes no body
    samples: list[Sample]
    example: str  # a successful answer as JSON; empty for none
    status: str
    answers: list[StatusRow]


@dataclass(frozen=True, slots=True)
class Section:
    """The operations of one tag."""

    name: str
    description: str
    operations: list[Described]


def read_sections(document: Json, base_url: str) -> list[Section]:
    """The operations by tag, in the document's order; samples call `base_url`."""
    described: dict[str, list[Described]] = {tag["name"]: [] for tag in document["tags"]}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            shown = _describe(document, method.upper(), path, operation, base_url)
            described[operation["tags"][0]].append(shown)
    return [Section(tag["name"], tag["description"], described[tag["name"]]) for tag in document["tags"]]


def _describe(document: Json, method: str, path: str, operation: Json, base_url: str) -> Described:
    needs_key = operation.get("security") != []
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    examples = {name: example["value"] for name, example in body.get("examples", {}).items()}
    parameters = operation.get("parameters", [])
    status, success = next(iter(operation["responses"].items()))
    content = success.get("content", {}).get("application/json", {})
    url = base_url + _example_path(path, parameters)
    return Described(
        id=operation["operationId"],
        method=method,
        path=path,
        summary=operation["summary"],
        description=prose(operation.get("description", "")),
        needs_key=needs_key,
        parameters=[
            read_field(p["name"], p["in"], {**p["schema"], **_said(p)}, required=p["required"])
            for p in parameters
        ],
        body=body["schema"]["$ref"].rpartition("/")[2] if body else "",
        samples=list(read_samples(method, url, examples, needs_key=needs_key)),
        example=pretty(content["example"]) if content else "",
        status=f"{status} {HTTPStatus(int(status)).phrase}",
        answers=[_answer(document, status, response) for status, response in operation["responses"].items()],
    )


def _said(parameter: Json) -> Json:
    return {"description": parameter["description"]} if "description" in parameter else {}


def _answer(document: Json, status: str, response: Json) -> StatusRow:
    if "$ref" in response:
        response = document["components"]["responses"][response["$ref"].rpartition("/")[2]]
    content = next(iter(response.get("content", {}).values()), None)
    is_error = "application/problem+json" in response.get("content", {})
    return StatusRow(
        status=status,
        phrase=HTTPStatus(int(status)).phrase,
        description=Markup("<br>").join(prose(line) for line in response["description"].split("\n\n")),
        kind=type_in_words(content["schema"]) if content else Markup("no body"),
        is_error=is_error,
    )


def _example_path(path: str, parameters: list[Json]) -> str:
    for parameter in parameters:
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", str(parameter["example"]))
    return path
