"""The OpenAPI 3.1 document, built from the operations that the application serves.

Schemas come from the types that requests are decoded into and answers are encoded from, so the limits in the document
are the ones that hold. What JSON Schema calls a format, and types cannot say, is filled in here: an integer is an int32
and a number a double unless its type says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import msgspec

from largesse import __version__
from largesse.api.operation import NoQuery, Operation
from largesse.errors import FieldError, MethodNotAllowed, NotFound, Problem
from largesse.orders import OrderRecord, SendBody

Json = dict[str, Any]

_REF = "#/components/schemas/{name}"
_EXAMPLE_REQUEST_ID = "5b1f0c9a7e3d2846"

_DESCRIPTION = """\
Place gift orders and issue redeemable codes.

Every request but `GET /health` carries an API key, as `Authorization: Bearer …` or as `X-Api-Key: …`, never both.
Members and parameters that the service does not know are ignored; those it knows must have the type and keep to the limits given here.
`HEAD` works wherever `GET` does.

Money is a number in major units of its currency. An amount finer than the currency's minor unit is refused, never rounded.
Errors are problem details (RFC 9457); the `type` of each is an address that explains it.
Beside the answers listed with each operation, any other path answers 404 and any other method 405.
"""

_TAGS = {
    "Orders": "Send gifts and read back what was sent.",
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
    "slow-request": "The body did not arrive within 30 seconds, or nothing of it for 10.",
    "too-large": "At most 4194304 bytes of a body are read.",
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
            "description": "The wrong recipients, the first 100 at most, where there are any",
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
    "Allow": {
        "description": "The methods this address has",
        "required": True,
        "schema": {"type": "string"},
        "example": "GET, POST",
    },
}
_HEADERS_OF_STATUS = {401: "WWW-Authenticate", 405: "Allow", 429: "Retry-After", 503: "Retry-After"}

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

# Which members of a send body exclude each other; types cannot say it (`largesse.orders.request` checks it).
# Not as `oneOf`: generators of clients make a type of each alternative and lose the other members.
_DELIVERY: Json = {
    "if": {"properties": {"codeQuantity": {"type": "integer"}}, "required": ["codeQuantity"]},
    "then": {"properties": {"recipients": {"maxItems": 0}}},
    "else": {
        "properties": {"recipients": {"not": {"type": "null"}, "minItems": 1}},
        "required": ["recipients"],
    },
}


def build_document(operations: Sequence[Operation]) -> Json:
    """The document of `operations`, ready to be encoded."""
    shapes = [operation.shape for operation in operations if operation.shape is not None]
    bodies = [operation.body for operation in operations if operation.body is not None]
    types = [*bodies, *shapes, OrderRecord, FieldError]
    refs, schemas = msgspec.json.schema_components(types, ref_template=_REF)
    schema_of = {id(type_): _published(ref) for type_, ref in zip(types, refs, strict=True)}
    published = {_public_name(name): _published(schema) for name, schema in schemas.items()}
    for body in bodies:
        if issubclass(body, SendBody):
            _tell_gift_first(published[body.__name__], body)
            published[body.__name__] |= _DELIVERY
    paths: Json = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Largesse",
            "version": __version__,
            "summary": "A self-hosted gift ordering service",
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "The service that serves this document"}],
        "security": [{"bearer": []}, {"apiKey": []}],
        "tags": [{"name": name, "description": description} for name, description in _TAGS.items()],
        "paths": paths,
        "webhooks": {"order.created": {"post": _order_created(schema_of[id(OrderRecord)])}},
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
            "schemas": {**published, "Problem": _PROBLEM_SCHEMA},
            "responses": _problem_responses(operations),
            "headers": _HEADERS,
        },
    }


def _tell_gift_first(schema: Json, body: type[SendBody]) -> None:
    """Puts the members of `body` itself before those it shares with the other send bodies."""
    own = [field.encode_name for field in msgspec.structs.fields(body) if field.name in body.__annotations__]
    members = schema["properties"]
    schema["properties"] = {name: members[name] for name in own} | members


def _operation(operation: Operation, schema_of: dict[int, Json]) -> Json:
    described: Json = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [operation.tag],
    }
    if operation.description:
        described["description"] = operation.description
    if not operation.needs_key:
        described["security"] = []
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
    """Every set of problems that share a status in some operation, and those outside operations."""
    responses: Json = {}
    for operation in operations:
        for status, problems in _by_status(operation.all_problems):
            responses[_response_name(problems)] = _problem_response(status, problems)
    for problem in (NotFound, MethodNotAllowed):
        responses[_response_name([problem])] = _problem_response(problem.status, [problem])
    return responses


def _problem_response(status: int, problems: list[type[Problem]]) -> Json:
    lines = [f"[{problem.title}](/problems/{problem.slug}). {problem.explanation}" for problem in problems]
    return {
        "description": "\n\n".join(lines),
        "headers": _headers(status),
        "content": {
            "application/problem+json": {
                "schema": {"$ref": _REF.format(name="Problem")},
                "examples": {
                    problem.slug: {"summary": problem.title, "value": example_problem(problem)}
                    for problem in problems
                },
            }
        },
    }


def example_problem(problem: type[Problem]) -> Json:
    """What a problem body of this kind reads like."""
    return {
        "type": f"/problems/{problem.slug}",
        "title": problem.title,
        "status": problem.status,
        "detail": _DETAILS[problem.slug],
        "instance": _INSTANCES.get(problem.slug),
    }


def _by_status(problems: Iterable[type[Problem]]) -> Iterator[tuple[int, list[type[Problem]]]]:
    for status, group in groupby(problems, key=lambda problem: problem.status):
        yield status, list(group)


def _response_name(problems: Sequence[type[Problem]]) -> str:
    return "Or".join(problem.__name__ for problem in problems)


def _headers(status: int) -> Json:
    names = ["X-Request-Id"]
    if status in _HEADERS_OF_STATUS:
        names.append(_HEADERS_OF_STATUS[status])
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _path_parameters(operation: Operation) -> Iterator[Json]:
    for name, schema in operation.path_types.items():
        yield _parameter(name, "path", _published(schema), required=True)


def _query_parameters(query: type[msgspec.Struct]) -> Iterator[Json]:
    """The members of a query type as parameters; a query cannot hold null, so only absence says nothing."""
    if query is NoQuery:
        return
    schema = msgspec.json.schema(query)["$defs"][query.__name__]
    required = schema.get("required", ())
    for name, member in schema["properties"].items():
        published = _published(member)
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


def _published(schema: Any) -> Any:
    """A schema as published: public names, formats filled in, `T or null` in the short form, no null defaults."""
    if isinstance(schema, list):
        return [_published(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    published = {
        name: value if name in {"examples", "default", "enum", "const"} else _published(value)
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


def _order_created(record: Json) -> Json:
    def header(name: str, description: str, example: str) -> Json:
        return {
            "name": name,
            "in": "header",
            "required": True,
            "description": description,
            "schema": {"type": "string"},
            "example": example,
        }

    return {
        "operationId": "orderCreated",
        "summary": "An order was placed",
        "description": "Sent to every subscription of `order.created`. Deliveries are at-least-once: `id` tells "
        "duplicates apart. Check the signature over the raw body before reading it.",
        "tags": ["Webhooks"],
        "security": [],
        "parameters": [
            header("X-Service-Event", "The event's name", "order.created"),
            header(
                "X-Service-Signature",
                "`sha256=` and the lower-case hex HMAC-SHA256 of the raw body, keyed with the subscription's secret",
                f"sha256={'0f' * 32}",
            ),
            header("webhook-id", "The delivery, the same over all its attempts", "7"),
            header(
                "webhook-timestamp",
                "When this attempt was made, in seconds since 1970: refuse one that is more than five minutes off",
                "1893488400",
            ),
            header(
                "webhook-signature",
                "`v1,` and the base64 HMAC-SHA256 of `webhook-id`, `webhook-timestamp` and the raw body, joined with "
                "full stops, keyed with the bytes that the secret's base64 (what follows `whsec_`) stands for: the "
                "scheme of Standard Webhooks",
                f"v1,{'0f' * 21}0=",
            ),
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": record}}},
        "responses": {
            "2XX": {"description": "Delivered"},
            "410": {"description": "The subscription is deleted"},
            "4XX": {"description": "This delivery is dropped (but 429 is retried)"},
            "5XX": {"description": "Retried with growing pauses, up to 12 attempts in all"},
        },
    }
