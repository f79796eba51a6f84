"""The shared parts of our OpenAPI documents: info, schemas, parameters, problems and headers.

msgspec makes the schemas from types, which have no formats. This module adds them: an integer is an int32 and a number a double unless
the type says otherwise.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import msgspec

from largesse import __version__
from largesse.web.api.operation import NoQuery, Operation
from largesse.web.kit.problems import MethodNotAllowed, ProblemType, problem_type

Json = dict[str, Any]

REF = "#/components/schemas/{name}"


def info(title: str, description: str) -> Json:
    """Returns the info object of a document."""
    return {
        "title": title,
        "version": __version__,
        "summary": "A self-hosted gift ordering service",
        "description": description,
        "contact": {"name": "The operator of this service"},
        "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
    }


def schema_components(types: Sequence[Any]) -> tuple[dict[int, Json], Json]:
    """Returns the schema of each type by the type's `id()`, and the named schemas they refer to."""
    refs, schemas = msgspec.json.schema_components(types, ref_template=REF)
    schema_of = {id(type_): publish(ref) for type_, ref in zip(types, refs, strict=True)}
    return schema_of, {_public_name(name): publish(schema) for name, schema in schemas.items()}


def publish(schema: Any) -> Any:
    """Returns a schema as published: public names, formats, `T or null` in the short form, no null defaults."""
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
    """Returns `anyOf: [T, null]` as T with `null` as a second type. Its own description and examples replace those of T."""
    match schema.get("anyOf"):
        case [{"type": str(kind)} as inner, {"type": "null"}]:
            outer = {name: value for name, value in schema.items() if name != "anyOf"}
            return {**inner, "type": [kind, "null"], **outer}
    return schema


def _public_name(name: str) -> str:
    return name.removesuffix("Shape")


def path_parameters(operation: Operation) -> Iterator[Json]:
    """Yields the parameters in the path of an operation, each required."""
    for name, schema in operation.path_types.items():
        yield _parameter(name, "path", publish(schema), required=True)


def query_parameters(query: type[msgspec.Struct]) -> Iterator[Json]:
    """Yields the members of a query type as parameters. A query has no null: callers leave a parameter out instead."""
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


_EXAMPLE_REQUEST_ID = "5b1f0c9a7e3d2846"

# Example details. The text is for people and may change; `type` and `status` are for programs.
_DETAILS = {
    "invalid-request": "`codeQuantity` must be at most 5000.",
    "unauthorized": "The API key is not valid here.",
    "plan-required": "The API is available on the Pro plan and above; this customer is on Starter.",
    "insufficient-balance": "The order costs 250.00 GBP, the account holds 100.00 GBP.",
    "inactive-service-account": "The service account 'HR bot' is not active.",
    "other-service-account": "Another service account placed order 0WBQK7M2PXR4D9VA1C3E: use a key of that service account.",
    "scope-required": "This API key may not be used for `send`, only for `read`.",
    "network-not-allowed": "This API key may not be used from 203.0.113.7.",
    "budget-exceeded": "The order costs 50.00 GBP, and the budget 'Marketing' has 20.00 of 500.00 GBP left until 2030-02-01 (UTC).",
    "order-limit": "The order costs 250.00 GBP, and the service account 'HR bot' may order 100.00 GBP at once.",
    "daily-limit": "The order costs 50.00 GBP, and the service account 'HR bot' has ordered 480.00 of the 500.00 GBP that it may "
    "order in a day (UTC).",
    "not-found": "There is nothing at this address.",
    "method-not-allowed": "PUT is not allowed here. Use GET or POST.",
    "reference-used": "`externalReference` is already used by order 0WBQK7M2PXR4D9VA1C3E; nothing was placed.",
    "quote-changed": "The order was quoted at 10.00 GBP and would cost 12.00 GBP; nothing was placed.",
    "quote-expired": "The quote held until 2030-01-02T09:15:00Z; nothing was placed.",
    "state-conflict": "The state does not allow this: it was done before, or something else was done at the same time.",
    "slow-request": "The body did not arrive within 30 seconds, or nothing of it for 10.",
    "too-large": "At most 4194304 bytes of a body are read.",
    "misdirected": "This is for the user of the machine it runs on, and answers to that machine's names alone.",
    "unsupported-body": "The `Content-Type` must be application/json.",
    "headers-too-large": "The headers have 40000 bytes; at most 32768 are read.",
    "too-many-requests": "This key may send 600 requests a minute.",
    "internal-error": "The failure was logged under the request id of this answer.",
    "unavailable": "The database cannot be reached.",
}

_INSTANCES = {"reference-used": "/orders/0WBQK7M2PXR4D9VA1C3E"}

PROBLEM_SCHEMA: Json = {
    "title": "Problem",
    "description": "An error (RFC 9457).",
    "type": "object",
    "properties": {
        "type": {
            "description": "Address of a page that explains this kind of error; the part to write programs against",
            "type": ["string", "null"],
            "format": "uri-reference",
        },
        "title": {"description": "The kind of error in a few words", "type": ["string", "null"]},
        "status": {"description": "The HTTP status", "type": ["integer", "null"], "format": "int32"},
        "detail": {
            "description": "What is wrong with this request; names the member and the limit",
            "type": ["string", "null"],
        },
        "instance": {
            "description": "Address of what the error is about, such as the order that holds a reference",
            "type": ["string", "null"],
            "format": "uri-reference",
        },
        "errors": {
            "description": "What is wrong member by member: the recipients, the first 100 at most, and of a quote all there is",
            "type": "array",
            "items": {"$ref": "#/components/schemas/FieldError"},
        },
    },
    "required": ["type", "title", "status", "detail", "instance"],
}

HEADERS: Json = {
    "X-Request-Id": {
        "description": "Names this request in the service's log. It is the request's own `X-Request-Id` when that has "
        "1 to 64 letters, digits, dots, hyphens and underscores.",
        "required": True,
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
        "example": _EXAMPLE_REQUEST_ID,
    },
    "X-Ignored": {
        "description": "The query parameters and members of the body that there are none of, and that were ignored: misspelt ones, perhaps. "
        "A member of a list is named once, as `recipients[].emial`. Also the header `Idempotency-Key`: an order's key is its `externalReference`. "
        "Other characters than letters, digits and `._-~[]` are "
        "percent-encoded. `...` says that there were more, or that a name was longer. Left out if nothing was ignored.",
        "required": False,
        "schema": {"type": "string", "pattern": r"^[A-Za-z0-9._~%\[\], -]*$"},
        "example": "externalRef, recipients[].emial",
    },
    "RateLimit-Policy": {
        "description": "How many requests (`q`) a key may send in how many seconds (`w`), as draft-ietf-httpapi-ratelimit-headers-11 has "
        "it. Left out if the operator sets no limit, and if the request has no valid key.",
        "required": False,
        "schema": {"type": "string", "pattern": r'^"key";q=[0-9]+;w=[0-9]+$'},
        "example": '"key";q=600;w=60',
    },
    "RateLimit": {
        "description": "How many requests (`r`) the key of this one may send at most within the next `t` seconds. Left out as "
        "`RateLimit-Policy` is.",
        "required": False,
        "schema": {"type": "string", "pattern": r'^"key";r=[0-9]+;t=[0-9]+$'},
        "example": '"key";r=599;t=1',
    },
    "Retry-After": {
        "description": "Seconds to wait before trying again",
        "required": True,
        "schema": {"type": "integer", "minimum": 1},
        "example": 1,
    },
    "WWW-Authenticate": {
        "description": "How to authenticate",
        "required": True,
        "schema": {"type": "string"},
        "example": 'Bearer realm="Largesse"',
    },
}

_HEADERS_OF_STATUS = {401: "WWW-Authenticate", 429: "Retry-After", 503: "Retry-After"}


def problem_responses(operations: Iterable[Operation]) -> Json:
    """Returns an answer for every set of problems that share a status in some operation."""
    responses: Json = {}
    for operation in operations:
        for status, problems in by_status(operation.all_problems):
            responses[response_name(problems)] = _problem_response(status, problems)
    return responses


def method_not_allowed() -> Json:
    """Returns the answer to a method that an address does not have. No operation refers to it, so it is not a component."""
    problem = problem_type(MethodNotAllowed)
    response = _problem_response(problem.status, [problem])
    response["headers"]["Allow"] = {
        "description": "The methods this address has",
        "required": True,
        "schema": {"type": "string"},
        "example": "GET, POST",
    }
    return response


def _problem_response(status: int, problems: list[ProblemType]) -> Json:
    lines = [f"[{problem.title}](/problems/{problem.slug}). {problem.explanation}" for problem in problems]
    return {
        "description": "\n\n".join(lines),
        "headers": headers_of(status),
        "content": {
            "application/problem+json": {
                "schema": {"$ref": REF.format(name="Problem")},
                "examples": {
                    problem.slug: {"summary": problem.title, "value": example_problem(problem)} for problem in problems
                },
            }
        },
    }


def example_problem(problem: ProblemType) -> Json:
    """Returns an example body of a problem."""
    return {
        "type": f"/problems/{problem.slug}",
        "title": problem.title,
        "status": problem.status,
        "detail": _DETAILS[problem.slug],
        "instance": _INSTANCES.get(problem.slug),
    }


def by_status(problems: Iterable[ProblemType]) -> Iterator[tuple[int, list[ProblemType]]]:
    """Yields the problems of each status. They share one answer."""
    for status, group in groupby(problems, key=lambda problem: problem.status):
        yield status, list(group)


def response_name(problems: Sequence[ProblemType]) -> str:
    """Returns the name of the component for the answer with these problems."""
    return "Or".join(problem.name for problem in problems)


def headers_of(status: int) -> Json:
    """Returns references to the headers that every answer of that status has."""
    names = ["X-Request-Id", "X-Ignored", "RateLimit-Policy", "RateLimit"]
    if status in _HEADERS_OF_STATUS:
        names.append(_HEADERS_OF_STATUS[status])
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}
