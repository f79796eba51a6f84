"""The OpenAPI document: well formed, whole, true to the contract and to what the service answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import httpx
import jsonschema_rs
import pytest

from largesse import __version__
from largesse.events import EVENTS
from largesse.web.api import OPERATIONS
from largesse.web.api.openapi import build_document, build_events_document
from largesse.web.kit.problems import PROBLEMS, Misdirected

if TYPE_CHECKING:
    from conftest import Service, ServiceFactory

DOCUMENT = build_document(OPERATIONS)
SCHEMAS = DOCUMENT["components"]["schemas"]
RESPONSES = [*DOCUMENT["components"]["responses"].values(), *DOCUMENT["x-other-answers"].values()]
BY_ID = {
    operation["operationId"]: operation
    for methods in DOCUMENT["paths"].values()
    for operation in methods.values()
}


def walk(node: Any) -> Iterator[dict[str, Any]]:
    """Every object within `node`."""
    if isinstance(node, dict):
        yield node
        for value in node.values():
            yield from walk(value)
    elif isinstance(node, list):
        for item in node:
            yield from walk(item)


def resolved(node: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in node:
        found: Any = DOCUMENT
        for step in node["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        node = found
    return node


def hold_to_schema(schema: dict[str, Any], value: Any) -> None:
    """Raises when `value` is not what `schema`, a part of the document, says."""
    whole = {**schema, "components": DOCUMENT["components"]}
    jsonschema_rs.Draft202012Validator(whole, validate_formats=True).validate(value)


def hold_to_document(operation_id: str, answer: httpx.Response) -> None:
    """Raises when an answer is not one that the document lists: its status, headers, media type and body."""
    responses = BY_ID[operation_id]["responses"]
    assert str(answer.status_code) in responses, answer.text
    response = resolved(responses[str(answer.status_code)])
    for name, header in response["headers"].items():
        schema = resolved(header)["schema"]
        value = answer.headers[name]
        hold_to_schema(schema, int(value) if schema["type"] == "integer" else value)
    if "content" not in response:
        assert answer.content == b""
        return
    ((media_type, content),) = response["content"].items()
    assert answer.headers["content-type"] == media_type
    hold_to_schema(content["schema"], answer.json())


# The document by itself


def test_the_document_is_served_without_a_key(service: Service) -> None:
    answer = service.client().get("/openapi.json")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == json.loads(json.dumps(DOCUMENT))
    assert answer.json()["info"]["version"] == __version__
    assert answer.json()["openapi"].startswith("3.1.")


def test_a_key_is_sent_in_either_of_two_headers() -> None:
    schemes = DOCUMENT["components"]["securitySchemes"]
    assert DOCUMENT["security"] == [{name: []} for name in schemes]
    assert (schemes["bearer"]["scheme"], schemes["apiKey"]["name"]) == ("bearer", "X-Api-Key")


def test_events_have_a_document_of_their_own(service: Service) -> None:
    answer = service.client().get("/openapi-events.json")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    events = build_events_document()
    assert answer.json() == json.loads(json.dumps(events))
    assert set(events["webhooks"]) == set(EVENTS)
    body = events["webhooks"]["order.created"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"$ref": "#/components/schemas/OrderRecord"}
    assert events["components"]["schemas"]["OrderRecord"] == SCHEMAS["OrderRecord"]
    assert set(events["components"]["schemas"]) == {event.shape for event in EVENTS.values()}
    assert "webhooks" not in DOCUMENT


def test_every_reference_leads_somewhere() -> None:
    for node in walk(DOCUMENT):
        if "$ref" in node:
            resolved(node)


def test_every_link_leads_to_an_operation_and_its_parameters() -> None:
    links = [link for node in walk(DOCUMENT) for link in node.get("links", {}).values()]
    assert links
    for link in links:
        in_path = {p["name"] for p in BY_ID[link["operationId"]]["parameters"] if p["in"] == "path"}
        assert set(link["parameters"]) == in_path


def test_every_component_is_used() -> None:
    used = {node["$ref"] for node in walk(DOCUMENT) if "$ref" in node}
    for kind in ("schemas", "responses", "headers"):
        for name in DOCUMENT["components"][kind]:
            assert f"#/components/{kind}/{name}" in used


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_json_schema_and_named_for_people(name: str) -> None:
    jsonschema_rs.Draft202012Validator({**SCHEMAS[name], "components": DOCUMENT["components"]})
    jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **SCHEMAS[name]})
    assert SCHEMAS[name]["title"] == name
    assert "Shape" not in name
    assert SCHEMAS[name]["description"]


def test_unknown_members_are_welcome() -> None:
    assert not any(node.get("additionalProperties") is False for node in walk(DOCUMENT))


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_every_operation_is_described(operation: Any) -> None:
    described = DOCUMENT["paths"][operation.path][operation.method.lower()]
    assert described["operationId"] == operation.name
    assert described["tags"][0] in {tag["name"] for tag in DOCUMENT["tags"]}
    wanted = {operation.status, *operation.also, *(problem.status for problem in operation.all_problems)}
    assert {int(status) for status in described["responses"]} == wanted
    in_path = {p["name"] for p in described.get("parameters", []) if p["in"] == "path"}
    assert in_path == set(re.findall(r"{(\w+)}", operation.path))
    assert ("requestBody" in described) == (operation.body is not None)
    assert described["security"] == ([{"bearer": []}] if operation.needs_key else [])


def test_operation_ids_are_unique() -> None:
    assert len(BY_ID) == len(OPERATIONS) == sum(len(methods) for methods in DOCUMENT["paths"].values())


def test_the_document_holds_every_problem() -> None:
    responses = [resolved(response) for response in RESPONSES]
    shown = {
        name for r in responses for content in r["content"].values() for name in content.get("examples", {})
    }
    of_pages = {Misdirected.slug}  # what no operation answers
    assert shown == {problem.slug for problem in PROBLEMS} - of_pages


@pytest.mark.parametrize("status", ["401", "405", "429", "503"])
def test_statuses_with_a_header_document_it(status: str) -> None:
    header = {"401": "WWW-Authenticate", "405": "Allow"}.get(status, "Retry-After")
    responses = [resolved(response) for response in RESPONSES]
    for response in responses:
        examples = next(iter(response["content"].values()))["examples"].values()
        if status in {str(example["value"]["status"]) for example in examples}:
            assert set(response["headers"]) == {"X-Request-Id", header}


def test_every_example_fits_its_schema() -> None:
    seen = 0
    for node in walk(DOCUMENT):
        if "schema" not in node:
            continue
        examples = [example["value"] for example in node.get("examples", {}).values()]
        examples += [node["example"]] if "example" in node else []
        for example in examples:
            hold_to_schema(node["schema"], example)
            seen += 1
    assert seen > len(OPERATIONS)


@pytest.mark.parametrize("name", SCHEMAS)
def test_examples_of_members_fit(name: str) -> None:
    for schema in SCHEMAS[name]["properties"].values():
        for example in schema.get("examples", []):
            hold_to_schema(schema, example)


# The document and the contract

INT32, INT64, DATE = "integer int32", "integer int64", "string date-time"
NUMBER, TEXT, FLAG = "number double", "string", "boolean"


def maybe(kind: str) -> str:
    return f"{kind} null"


SEND_BODY = {
    "source": maybe(TEXT),
    "recipients": maybe("array of Recipient"),
    "codeQuantity": maybe(INT32),
    "wrappingKey": maybe(TEXT),
    "fromName": maybe(TEXT),
    "message": maybe(TEXT),
    "sendAt": maybe(DATE),
    "accountId": maybe(INT32),
    "expiryAfterDays": maybe(INT32),
    "externalReference": maybe(TEXT),
    "quote": maybe(TEXT),  # an addition
}

FIELDS_OF_SPEC = {
    "Identity": {
        "customerId": INT64,
        "customerName": TEXT,
        "serviceAccountId": INT64,
        "serviceAccountName": TEXT,
        "environment": TEXT,
    },
    "Product": {
        "id": INT32,
        "name": TEXT,
        "isDigital": FLAG,
        "currency": TEXT,
        "currencyPrefix": TEXT,
        "totalPrice": maybe(NUMBER),
        "denominations": f"array of {NUMBER}",
        "denominationChoices": f"object of {TEXT}",
        "minAmount": maybe(NUMBER),
        "maxAmount": maybe(NUMBER),
        "requiresAmount": FLAG,
        "label": TEXT,
    },
    "Collection": {
        "id": INT32,
        "name": TEXT,
        "kind": TEXT,
        "country": TEXT,
        "currency": TEXT,
        "currencyPrefix": TEXT,
        "value": maybe(NUMBER),
        "requiresValue": FLAG,
        "allowCustomValue": FLAG,
        "valuePoints": f"array of {NUMBER}",
        "valueChoices": maybe(f"object of {TEXT}"),
        "minValue": maybe(NUMBER),
        "maxValue": maybe(NUMBER),
        "label": TEXT,
    },
    "Template": {
        "id": INT32,
        "name": maybe(TEXT),
        "giftSelectionType": maybe(TEXT),
        "giftProductId": maybe(INT32),
        "giftsCollectionId": maybe(INT32),
        "giftName": maybe(TEXT),
        "value": NUMBER,
        "currency": maybe(TEXT),
        "country": maybe(TEXT),
        "wrappingKey": maybe(TEXT),
        "fromName": maybe(TEXT),
        "message": maybe(TEXT),
        "expiryAfterDays": maybe(INT32),
        "creationDate": DATE,
    },
    "FundingAccount": {
        "id": INT32,
        "name": TEXT,
        "isMaster": FLAG,
        "currencyId": INT32,
        "currency": TEXT,
        "balance": NUMBER,
        "label": TEXT,
    },
    "SendResponse": {
        "reference": maybe(TEXT),
        "giftSelectionType": maybe(TEXT),
        "value": NUMBER,
        "currency": maybe(TEXT),
        "codeCount": INT32,
        "recipientCount": INT32,
        "totalCost": NUMBER,
        "deliveryMode": maybe(TEXT),
        "scheduledFor": maybe(DATE),
        "externalReference": maybe(TEXT),
        "codes": "array of IssuedCode",
    },
    "IssuedCode": {"code": TEXT, "pin": TEXT, "redemptionUrl": TEXT},
    "OrderRecord": {
        "id": INT32,
        "event": maybe(TEXT),
        "reference": maybe(TEXT),
        "customerId": INT64,
        "value": NUMBER,
        "currency": maybe(TEXT),
        "country": maybe(TEXT),
        "sourceType": maybe(TEXT),
        "externalReference": maybe(TEXT),
        "giftSelectionType": maybe(TEXT),
        "giftProductId": maybe(INT32),
        "giftsCollectionId": maybe(INT32),
        "wrappingKey": maybe(TEXT),
        "fromName": maybe(TEXT),
        "deliveryMode": maybe(TEXT),
        "lineCount": INT32,
        "createdBy": maybe(INT64),
        "creationDate": DATE,
    },
    "Subscription": {
        "id": "string uuid",
        "event": maybe(TEXT),
        "targetUrl": maybe(TEXT),
        "secret": maybe(TEXT),
    },
    "Recipient": {"email": "string email", "name": maybe(TEXT), "quantity": maybe(INT32)},
    "Problem": {
        "type": maybe("string uri-reference"),
        "title": maybe(TEXT),
        "status": maybe(INT32),
        "detail": maybe(TEXT),
        "instance": maybe("string uri-reference"),
        "errors": "array of FieldError",
    },
    "FieldError": {"pointer": TEXT, "detail": TEXT},
    "Wrapping": {"key": TEXT, "label": TEXT, "aliases": f"array of {TEXT}"},
    "SendGift": {"productId": INT32, "value": maybe(NUMBER), "country": maybe(TEXT), **SEND_BODY},
    "SendCollection": {"collectionId": INT32, "value": maybe(NUMBER), **SEND_BODY},
    "SendTemplate": {"templateId": INT32, **SEND_BODY},
    "Subscribe": {"targetUrl": "string uri", "event": TEXT},
}
REQUIRED_IN_BODIES = {
    "Recipient": ["email"],
    "SendGift": ["productId"],
    "SendCollection": ["collectionId"],
    "SendTemplate": ["templateId"],
    "Subscribe": ["targetUrl", "event"],
    "Problem": ["type", "title", "status", "detail", "instance"],
}


def kind_of(schema: dict[str, Any]) -> str:
    """A schema's type in the words of the table above."""
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    kind = kinds[0]
    if kind == "array":
        kind = f"array of {kind_of(schema['items'])}"
    elif kind == "object":
        kind = f"object of {kind_of(schema['additionalProperties'])}"
    elif "format" in schema:
        kind = f"{kind} {schema['format']}"
    return maybe(kind) if "null" in kinds else kind


@pytest.mark.parametrize("name", FIELDS_OF_SPEC)
def test_schemas_have_the_members_of_the_spec(name: str) -> None:
    schema = SCHEMAS[name]
    assert {member: kind_of(value) for member, value in schema["properties"].items()} == FIELDS_OF_SPEC[name]
    assert schema["required"] == REQUIRED_IN_BODIES.get(name, list(FIELDS_OF_SPEC[name]))


@pytest.mark.parametrize(
    ("schema", "member", "limits"),
    [
        ("Recipient", "quantity", {"minimum": 1, "maximum": 1000, "default": 1}),
        ("SendGift", "codeQuantity", {"minimum": 1, "maximum": 5000}),
        ("SendGift", "fromName", {"maxLength": 32}),
        ("SendGift", "message", {"maxLength": 256}),
        ("SendGift", "externalReference", {"maxLength": 128}),
    ],
)
def test_bodies_have_the_limits_of_the_spec(schema: str, member: str, limits: dict[str, int]) -> None:
    assert SCHEMAS[schema]["properties"][member].items() >= limits.items()


@pytest.mark.parametrize(
    ("operation", "parameter", "limits"),
    [
        ("listOrders", "limit", {"minimum": 1, "maximum": 50, "default": 10}),
        ("listOrders", "after", {"minimum": 0, "maximum": 2**31 - 1, "format": "int32"}),
        ("listWebhookDeliveries", "before", {"minimum": 1, "maximum": 2**63 - 1, "format": "int64"}),
        ("listProducts", "limit", {"minimum": 1, "maximum": 200, "default": 100}),
        ("listProducts", "page", {"minimum": 1, "default": 1}),
        ("listProducts", "country", {"default": "GB"}),
        ("getProduct", "country", {"default": "GB"}),
        ("listTemplates", "limit", {"minimum": 1, "maximum": 200, "default": 100}),
        ("listTemplates", "offset", {"minimum": 0, "default": 0}),
    ],
)
def test_queries_have_the_limits_of_the_spec(operation: str, parameter: str, limits: dict[str, Any]) -> None:
    (found,) = [p for p in BY_ID[operation]["parameters"] if p["name"] == parameter]
    assert found["schema"].items() >= limits.items()
    assert found["required"] is False


@pytest.mark.parametrize("member", ["recipients", "codeQuantity"])
def test_a_send_body_has_recipients_or_a_code_quantity(member: str) -> None:
    values = {"recipients": [{"email": "sam@example.com"}], "codeQuantity": 1}
    send_gift = {"$ref": "#/components/schemas/SendGift"}
    hold_to_schema(send_gift, {"productId": 1, member: values[member]})
    for wrong in ({}, values):
        with pytest.raises(jsonschema_rs.ValidationError):
            hold_to_schema(send_gift, {"productId": 1, **wrong})


# The document and the service


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_documented_requests_get_documented_answers(service: Service, operation: Any) -> None:
    described = BY_ID[operation.name]
    path, wanted = operation.path, {operation.status, 409}
    for parameter in described.get("parameters", []):
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", str(parameter["example"]))
            if parameter["schema"]["type"] == "string":
                wanted = {404}  # the reference and the UUID of an example are nobody's
    bodies = described.get("requestBody", {}).get("content", {}).get("application/json", {})
    for example in bodies.get("examples", {"": {"value": None}}).values():
        answer = service.client("hr").request(operation.method, path, json=example["value"])
        hold_to_document(operation.name, answer)
        assert answer.status_code in wanted


def test_send_examples_are_placed(service: Service) -> None:
    for name, path in (("sendGift", "gift"), ("sendCollection", "collection"), ("sendTemplate", "template")):
        for example in BY_ID[name]["requestBody"]["content"]["application/json"]["examples"].values():
            body = {**example["value"], "externalReference": None}
            answer = service.client("hr").post(f"/send/{path}", json=body)
            assert answer.status_code == 200, answer.text
            hold_to_document(name, answer)
            again = service.client("hr").get(f"/orders/{answer.json()['reference']}")
            assert again.json() == answer.json()
            hold_to_document("getOrder", again)


def test_errors_are_as_documented(service: Service, start_service: ServiceFactory) -> None:
    order = {"productId": 1, "value": 10, "codeQuantity": 1, "accountId": 1}
    client = service.client("hr")
    taken = {**order, "externalReference": "documented"}
    client.post("/send/gift", json=taken)
    hurried = start_service(like=service, rate_limit=1).client("hr")
    hurried.get("/me")
    text = {"Content-Type": "text/plain"}
    for operation, status, answer in (
        ("sendGift", 400, client.post("/send/gift", json={})),
        ("listProducts", 400, client.get("/products?limit=0")),
        ("getHealth", 400, client.get("/health?a=1&a=2")),
        ("getMe", 401, service.client().get("/me")),
        ("getMe", 402, service.client("tiny").get("/me")),
        ("sendGift", 402, client.post("/send/gift", json={**order, "accountId": 2, "codeQuantity": 5000})),
        ("listFundingAccounts", 403, service.client("idle").get("/funding-accounts")),
        ("sendGift", 403, service.client("idle").post("/send/gift", json=order)),
        ("getProduct", 404, client.get("/products/999")),
        ("sendGift", 409, client.post("/send/gift", json=taken)),
        ("sendGift", 413, client.post("/send/gift", content=b" " * (4 * 1024 * 1024 + 1))),
        ("sendGift", 415, client.post("/send/gift", content=b"{}", headers=text)),
        ("getMe", 429, hurried.get("/me")),
    ):
        assert answer.status_code == status, answer.text
        hold_to_document(operation, answer)


@pytest.mark.parametrize("path", sorted(DOCUMENT["paths"]))
def test_other_methods_get_405_with_those_allowed(service: Service, path: str) -> None:
    answer = service.client("hr").put(path.replace("{id}", "1").replace("{reference}", "x"))
    assert answer.status_code == 405
    assert set(answer.headers["allow"].lower().split(", ")) == set(DOCUMENT["paths"][path])
    hold_to_schema({"$ref": "#/components/schemas/Problem"}, answer.json())
