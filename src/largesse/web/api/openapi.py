"""The OpenAPI 3.1 document, built from the operations that the application serves.

Schemas come from the types that requests are decoded into and answers are encoded from, so the limits in the document
are the ones that hold. It is written so that generators make usable clients of it (tests/generators): no alternatives of
which they would make types, and no events, which have a document of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from inspect import get_annotations
from itertools import groupby
from typing import Any

import msgspec

from largesse.base.errors import FieldError, NotFound
from largesse.web.api.openapi_parts import REF, Json, info, publish, schema_components
from largesse.web.api.operation import NoQuery, Operation
from largesse.web.api.shapes.sending import SendBody
from largesse.web.kit.problems import MethodNotAllowed, ProblemType, problem_type

_EXAMPLE_REQUEST_ID = "5b1f0c9a7e3d2846"

_DESCRIPTION = """\
Place gift orders and issue redeemable codes.

Every request but `GET /health` carries an API key, as `Authorization: Bearer …` or as `X-Api-Key: …`, never both.
Members and parameters that the service does not know are ignored; those it knows must have the type and keep to the limits given here.
`HEAD` works wherever `GET` does.

Money is a number in major units of its currency. An amount finer than the currency's minor unit is refused, never rounded.
Errors are problem details (RFC 9457); the `type` of each is an address that explains it.
Beside the answers listed with each operation, any other path answers 404 and any other method 405.
What is sent to subscriptions is in [a document of its own](/openapi-events.json).
"""

_TAGS = {
    "Orders": "Send gifts and read back what was sent.",
    "Quotes": "What an order would cost, and whether it would be placed at all.",
    "Catalogue": "What can be sent: single products, and collections that recipients choose from.",
    "Templates": "Saved send presets, made in the customer's web application.",
    "Funding": "The balances that orders are paid from.",
    "Webhooks": "Have events delivered to an address of yours.",
    "Identity": "Whom the key acts for, and the people on the account.",
    "Service": "The service itself.",
}

# What a detail reads like; the text is for people and may change, `type` and `status` are for programs.
_DETAILS = {
    "invalid-request": "`codeQuantity` must be at most 5000.",
    "unauthorized": "The API key is not valid here.",
    "plan-required": "The API is available on the Pro plan and above; this customer is on Starter.",
    "insufficient-balance": "The order costs 250.00 GBP, the account holds 100.00 GBP.",
    "inactive-service-account": "The service account 'HR bot' is not active.",
    "other-service-account": "Another service account placed order 0WBQK7M2PXR4D9VA1C3E: a key of that one is needed here.",
    "not-found": "There is nothing at this address.",
    "method-not-allowed": "PUT is not allowed here; GET, POST is.",
    "reference-used": "`externalReference` is already used by order 0WBQK7M2PXR4D9VA1C3E; nothing was placed.",
    "quote-changed": "The order was quoted at 10.00 GBP and would cost 12.00 GBP; nothing was placed.",
    "quote-expired": "The quote held until 2030-01-02T09:15:00Z; nothing was placed.",
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

_PROBLEM_SCHEMA: Json = {
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

_HEADERS: Json = {
    "X-Request-Id": {
        "description": "Names this request in the service's log. It is the request's own `X-Request-Id` when that has "
        "1 to 64 letters, digits, dots, hyphens and underscores.",
        "required": True,
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
        "example": _EXAMPLE_REQUEST_ID,
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

# What an answer leads to: operations with their parameters, each a runtime expression on the request or the answer.
_OF_ORDER = {
    name: {"reference": "$response.body#/reference"}
    for name in ("getOrder", "cancelOrder", "listOrderDeliveries", "resendOrderMail")
}
_OF_WEBHOOK = {
    name: {"id": "$response.body#/id"} for name in ("deleteWebhook", "testWebhook", "listWebhookDeliveries")
}
_LINKS = {
    "sendGift": _OF_ORDER,
    "sendCollection": _OF_ORDER,
    "sendTemplate": _OF_ORDER,
    "createWebhook": _OF_WEBHOOK,
    "testWebhook": {"redeliverWebhook": {"id": "$request.path.id", "deliveryId": "$response.body#/id"}},
}

# Which members of a send body exclude each other; types cannot say it (`largesse.orders.request` checks it). Not by `oneOf`:
# generators make a type of each alternative, and lose the other members. That there are others is what Redocly's rules want
# to be told.
_OTHERS_TOO: Json = {"unevaluatedProperties": True}
_DELIVERY: Json = {
    "if": {
        "properties": {"codeQuantity": {"type": "integer"}},
        "required": ["codeQuantity"],
        **_OTHERS_TOO,
    },
    "then": {"properties": {"recipients": {"maxItems": 0}}, **_OTHERS_TOO},
    "else": {
        "properties": {"recipients": {"not": {"type": "null"}, "minItems": 1}},
        "required": ["recipients"],
        **_OTHERS_TOO,
    },
}


def build_document(operations: Sequence[Operation]) -> Json:
    """The document of `operations`, ready to be encoded."""
    shapes = [operation.shape for operation in operations if operation.shape is not None]
    bodies = [operation.body for operation in operations if operation.body is not None]
    schema_of, schemas = schema_components([*bodies, *shapes, FieldError])
    for body in bodies:
        if issubclass(body, SendBody):
            _tell_gift_first(schemas[body.__name__], body)
            schemas[body.__name__] |= _DELIVERY
    paths: Json = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, schema_of)
    return {
        "openapi": "3.1.0",
        "info": info("Largesse", _DESCRIPTION),
        "servers": [{"url": "/", "description": "The service that serves this document"}],
        "security": [{"bearer": []}, {"apiKey": []}],
        "tags": [{"name": name, "description": description} for name, description in _TAGS.items()],
        "paths": paths,
        "x-other-answers": {
            "404": {"$ref": f"#/components/responses/{_response_name([problem_type(NotFound)])}"},
            "405": _method_not_allowed(),
        },
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "The API key"},
                "apiKey": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "X-Api-Key",
                    "description": "For clients that cannot set `Authorization`",
                },
            },
            "schemas": {**schemas, "Problem": _PROBLEM_SCHEMA},
            "responses": _problem_responses(operations),
            "headers": _HEADERS,
        },
    }


def _tell_gift_first(schema: Json, body: type[SendBody]) -> None:
    """Puts the members of `body` itself first, then those of each class it is made from."""
    members = schema["properties"]
    encode_name = {field.name: field.encode_name for field in msgspec.structs.fields(body)}
    own = (name for kind in body.__mro__ for name in get_annotations(kind))
    schema["properties"] = {encode_name[name]: members[encode_name[name]] for name in own}


def _operation(operation: Operation, schema_of: dict[int, Json]) -> Json:
    described: Json = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [operation.tag],
    }
    if operation.description:
        described["description"] = operation.description
    # One of the two ways: generated clients send a key in each that an operation lists, and two of them are refused.
    described["security"] = [{"bearer": []}] if operation.needs_key else []
    parameters = [*_path_parameters(operation), *_query_parameters(operation.query)]
    if parameters:
        described["parameters"] = parameters
    if operation.body is not None:
        described["requestBody"] = {
            "required": True,
            "content": {
                "application/json": {
                    "schema": schema_of[id(operation.body)],
                    "examples": {name: {"value": value} for name, value in operation.body_examples.items()},
                }
            },
        }
    described["responses"] = dict(_responses(operation, schema_of))
    return described


def _responses(operation: Operation, schema_of: dict[int, Json]) -> Iterator[tuple[str, Json]]:
    schema = schema_of.get(id(operation.shape)) if operation.shape is not None else None
    success = _response("Done" if schema is None else "Success", operation.status, schema, operation.example)
    if operation.name in _LINKS:
        success["links"] = {
            name: {"operationId": name, "parameters": parameters}
            for name, parameters in _LINKS[operation.name].items()
        }
    yield str(operation.status), success
    for status, example in operation.also.items():
        yield str(status), _response("The same, with other news", status, schema, example)
    for status, problems in _by_status(operation.all_problems):
        if status not in operation.also:
            yield str(status), {"$ref": f"#/components/responses/{_response_name(problems)}"}


def _response(description: str, status: int, schema: Json | None, example: Any) -> Json:
    response: Json = {"description": description, "headers": _headers(status)}
    if schema is not None:
        response["content"] = {"application/json": {"schema": schema, "example": example}}
    return response


def _problem_responses(operations: Iterable[Operation]) -> Json:
    """Every set of problems that share a status in some operation."""
    responses: Json = {}
    for operation in operations:
        for status, problems in _by_status(operation.all_problems):
            responses[_response_name(problems)] = _problem_response(status, problems)
    return responses


def _method_not_allowed() -> Json:
    """What no operation answers, but any address does when it has not the method: no component, as nothing refers to it."""
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
        "headers": _headers(status),
        "content": {
            "application/problem+json": {
                "schema": {"$ref": REF.format(name="Problem")},
                "examples": {
                    problem.slug: {"summary": problem.title, "value": example_problem(problem)}
                    for problem in problems
                },
            }
        },
    }


def example_problem(problem: ProblemType) -> Json:
    """What a problem body of this kind reads like."""
    return {
        "type": f"/problems/{problem.slug}",
        "title": problem.title,
        "status": problem.status,
        "detail": _DETAILS[problem.slug],
        "instance": _INSTANCES.get(problem.slug),
    }


def _by_status(problems: Iterable[ProblemType]) -> Iterator[tuple[int, list[ProblemType]]]:
    for status, group in groupby(problems, key=lambda problem: problem.status):
        yield status, list(group)


def _response_name(problems: Sequence[ProblemType]) -> str:
    return "Or".join(problem.name for problem in problems)


def _headers(status: int) -> Json:
    names = ["X-Request-Id"]
    if status in _HEADERS_OF_STATUS:
        names.append(_HEADERS_OF_STATUS[status])
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _path_parameters(operation: Operation) -> Iterator[Json]:
    for name, schema in operation.path_types.items():
        yield _parameter(name, "path", publish(schema), required=True)


def _query_parameters(query: type[msgspec.Struct]) -> Iterator[Json]:
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
