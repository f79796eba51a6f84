"""The OpenAPI 3.1 documents: one of the operations that the application serves, one of the events that subscriptions receive.

Schemas come from the types that decode requests and encode answers, so the documented limits are the ones that apply.
Client generators must be able to use it (tests/generators). They turn alternatives into types, so it has none. They treat everything
in a document as an operation to call, so events have their own document.
"""

from collections.abc import Iterator, Sequence
from inspect import get_annotations
from typing import Any

import msgspec

from largesse.base.errors import FieldError, NotFound
from largesse.events.kinds import EVENTS, EventType
from largesse.orders.request import SendRequest
from largesse.web.api.openapi import parts
from largesse.web.api.openapi.parts import Json
from largesse.web.api.operation import Operation
from largesse.web.kit.problems import problem_type

_DESCRIPTION = """\
The requests that a subscription's address receives. How to subscribe, and all other operations, are in [the main document](/openapi.json).
"""


def build_events_document() -> Json:
    """Returns the document of events, ready to be encoded."""
    payloads = [event.payload for event in EVENTS.values()]
    schema_of, schemas = parts.schema_components(payloads)
    return {
        "openapi": "3.1.0",
        "info": parts.info("Largesse events", _DESCRIPTION),
        "servers": [{"url": "/", "description": "The address that was subscribed"}],
        "tags": [{"name": "Webhooks", "description": "Requests that your receiver answers."}],
        "webhooks": {event.name: {"post": _webhook(event, schema_of[id(event.payload)])} for event in EVENTS.values()},
        "components": {"schemas": schemas},
    }


def _webhook(event: EventType[Any], payload: Json) -> Json:
    def header(name: str, description: str, example: str, *, is_required: bool = True) -> Json:
        return {
            "name": name,
            "in": "header",
            "required": is_required,
            "description": description,
            "schema": {"type": "string"},
            "example": example,
        }

    return {
        "operationId": event.operation_id,
        "summary": event.summary,
        "description": f"Sent to every subscription of `{event.name}`. {event.description} Deliveries are at-least-once. "
        "Check the signature over the raw body before reading it.",
        "tags": ["Webhooks"],
        "security": [],
        "parameters": [
            header("X-Service-Event", "The event's name", event.name),
            header(
                "X-Service-Signature",
                "`sha256=` and the lower-case hex HMAC-SHA256 of the raw body, keyed with the subscription's secret; for 24 "
                "hours after a rotation with the previous one",
                f"sha256={'0f' * 32}",
            ),
            header(
                "X-Service-Signature-New",
                "The same, keyed with the new secret: only for 24 hours after a rotation",
                f"sha256={'0f' * 32}",
                is_required=False,
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
                "scheme of Standard Webhooks. For 24 hours after a rotation there are two, separated by a space: one is right",
                f"v1,{'0f' * 21}0=",
            ),
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": payload}}},
        "responses": {
            "2XX": {"description": "Delivered"},
            "410": {"description": "The subscription is deleted"},
            "4XX": {"description": "This delivery is dropped (but 429 is retried)"},
            "5XX": {"description": "Retried with growing pauses, up to 12 attempts in all"},
        },
    }


_DOCUMENT_DESCRIPTION = """\
Place gift orders and issue redeemable codes.

Every request except `GET /health` needs an API key, as `Authorization: Bearer …` or as `X-Api-Key: …`, never both. Unless a key is limited to scopes, it may call every operation.
Unknown members and parameters are ignored, and `X-Ignored` names them. Known ones must have the type and keep the limits given here.
`HEAD` works wherever `GET` does.

Money is a number in major units of its currency. An amount finer than the currency's minor unit is refused, never rounded.
Errors are problem details (RFC 9457); the `type` of each is an address that explains it.
Any other path is 404, and any other method 405.
The requests that subscriptions receive are in [a document of their own](/openapi-events.json).
"""

_TAGS = {
    "Orders": "Send gifts and read back what was sent.",
    "Quotes": "What an order would cost, and whether it would be placed at all.",
    "Catalogue": "What can be sent: single products, and collections that recipients choose from.",
    "Contacts": "People whom the customer sends to.",
    "Templates": "Saved send presets, made in the customer's web application.",
    "Funding": "The balances that orders are paid from.",
    "Webhooks": "Have events delivered to an address of yours.",
    "Events": "The same events to pull, 30 days of them.",
    "Test lab": "Let time pass in staging, claim gifts, and make events happen. Mail to `bounce@test.invalid`, `late@`, `claims@`, `no-stock@` and `never@` "
    "behaves as its address says, and sends and quotes with the id 2147480402, 2147480403, 2147480429 or 2147480503 fail with the status it ends in. Production has none of these.",
    "Identity": "Whom the key acts for, and the people on the account.",
    "Service": "The service itself.",
}

# Operations that an answer links to, with their parameters: runtime expressions on the request or the answer.
_OF_ORDER = {
    name: {"reference": "$response.body#/reference"}
    for name in ("getOrder", "cancelOrder", "listOrderDeliveries", "resendOrderMail")
}

_OF_WEBHOOK = {
    name: {"id": "$response.body#/id"}
    for name in ("deleteWebhook", "testWebhook", "rotateWebhookSecret", "listWebhookDeliveries")
}

_LINKS = {
    "sendGift": _OF_ORDER,
    "sendCollection": _OF_ORDER,
    "sendTemplate": _OF_ORDER,
    "createWebhook": _OF_WEBHOOK,
    "testWebhook": {"redeliverWebhook": {"id": "$request.path.id", "deliveryId": "$response.body#/id"}},
}

# Which members of a send body exclude each other. Types cannot express this; `largesse.orders.request` checks it. `oneOf` does not work:
# generators make a type of each alternative and lose the other members. Redocly's rules require a note that there are other members.
_OTHERS_TOO: Json = {"unevaluatedProperties": True}

_DELIVERY: Json = {
    "if": {"properties": {"codeQuantity": {"type": "integer"}}, "required": ["codeQuantity"], **_OTHERS_TOO},
    "then": {"properties": {"recipients": {"maxItems": 0}}, **_OTHERS_TOO},
    "else": {
        "properties": {"recipients": {"not": {"type": "null"}, "minItems": 1}},
        "required": ["recipients"],
        **_OTHERS_TOO,
    },
}


def build_document(operations: Sequence[Operation], url: str = "/") -> Json:
    """Returns the document of `operations`, which a service serves at `url`, ready to be encoded."""
    shapes = [operation.shape for operation in operations if operation.shape is not None]
    bodies = [operation.body for operation in operations if operation.body is not None]
    schema_of, schemas = parts.schema_components([*bodies, *shapes, FieldError])
    for body in bodies:
        if issubclass(body, SendRequest):
            _order_members(schemas[body.__name__], body)
            schemas[body.__name__] |= _DELIVERY
    used = {operation.tag for operation in operations}
    paths: Json = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, schema_of)
    return {
        "openapi": "3.1.0",
        "info": parts.info("Largesse", _DOCUMENT_DESCRIPTION),
        "servers": [{"url": url, "description": "The service that serves this document"}],
        "security": [{"bearer": []}, {"apiKey": []}],
        "tags": [{"name": name, "description": said} for name, said in _TAGS.items() if name in used],
        "paths": paths,
        "x-other-answers": {
            "404": {"$ref": f"#/components/responses/{parts.response_name([problem_type(NotFound)])}"},
            "405": parts.method_not_allowed(),
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
            "schemas": {**schemas, "Problem": parts.PROBLEM_SCHEMA},
            "responses": parts.problem_responses(operations),
            "headers": parts.HEADERS,
        },
    }


def _order_members(schema: Json, body: type[SendRequest]) -> None:
    """Puts the members of `body` first, then those of its base classes."""
    members = schema["properties"]
    encode_name = {field.name: field.encode_name for field in msgspec.structs.fields(body)}
    own = (name for kind in body.__mro__ for name in get_annotations(kind))
    schema["properties"] = {encode_name[name]: members[encode_name[name]] for name in own}


def _operation(operation: Operation, schema_of: dict[int, Json]) -> Json:
    described: Json = {"operationId": operation.name, "summary": operation.summary, "tags": [operation.tag]}
    described["description"] = " ".join(filter(None, (operation.description, _scope(operation))))
    # Lists only one of the two headers: generated clients send a key in every listed header, and the API refuses two keys.
    described["security"] = [{"bearer": []}] if operation.needs_key else []
    parameters = [*parts.path_parameters(operation), *parts.query_parameters(operation.query)]
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


def _scope(operation: Operation) -> str:
    """Returns the sentence about the scope that the key needs."""
    return f"Needs a key with the scope `{operation.scope}`." if operation.scope is not None else ""


def _responses(operation: Operation, schema_of: dict[int, Json]) -> Iterator[tuple[str, Json]]:
    schema = schema_of.get(id(operation.shape)) if operation.shape is not None else None
    success = _response("Done" if schema is None else "Success", operation.status, schema, operation.example)
    if operation.name in _LINKS:
        success["links"] = {
            name: {"operationId": name, "parameters": parameters} for name, parameters in _LINKS[operation.name].items()
        }
    yield str(operation.status), success
    for status, example in operation.also.items():
        yield str(status), _response("The same members, with other values", status, schema, example)
    for status, problems in parts.by_status(operation.all_problems):
        if status not in operation.also:
            yield str(status), {"$ref": f"#/components/responses/{parts.response_name(problems)}"}


def _response(description: str, status: int, schema: Json | None, example: Any) -> Json:
    response: Json = {"description": description, "headers": parts.headers_of(status)}
    if schema is not None:
        response["content"] = {"application/json": {"schema": schema, "example": example}}
    return response
