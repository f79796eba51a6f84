"""The OpenAPI document: well formed, whole, true to the contract and to what the service answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import httpx
import jsonschema_rs
import pytest
from tests.web.api.conftest import PUBLIC_URL
from tests.web.api.document import BY_ID, DOCUMENT, SCHEMAS
from tests.web.api.test_keys_meanwhile import contact_of

from largesse import __version__
from largesse.events.kinds import EVENTS
from largesse.web.api.openapi.document import build_events_document
from largesse.web.api.routes import OPERATIONS
from largesse.web.kit.problems import PROBLEMS, Misdirected

if TYPE_CHECKING:
    from conftest import Service, ServiceFactory

RESPONSES = [*DOCUMENT["components"]["responses"].values(), *DOCUMENT["x-other-answers"].values()]


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
        if name not in answer.headers and not resolved(header)["required"]:
            continue
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
    servers = [DOCUMENT["servers"][0] | {"url": PUBLIC_URL}]  # API clients that import the document know no other
    assert answer.json() == json.loads(json.dumps(DOCUMENT | {"servers": servers}))
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


def test_every_member_and_parameter_is_described() -> None:
    """Except in `if`, `then` and `else` of a send body, which name members that are described above them."""
    schemas = {**SCHEMAS, **build_events_document()["components"]["schemas"]}
    named = {"if", "then", "else"}
    nodes = [node for schema in schemas.values() for node in walk({k: v for k, v in schema.items() if k not in named})]
    nodes += walk(DOCUMENT["paths"])
    members = [(name, said) for node in nodes for name, said in node.get("properties", {}).items()]
    members += [(node["name"], node) for node in nodes if "in" in node and "schema" in node]
    assert len(members) > 2 * len(SCHEMAS)
    assert [name for name, said in members if not said.get("description")] == []


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
    shown = {name for r in responses for content in r["content"].values() for name in content.get("examples", {})}
    assert shown == {problem.slug for problem in PROBLEMS} - {Misdirected.slug}  # which no operation of the API answers


@pytest.mark.parametrize("status", ["401", "405", "429", "503"])
def test_statuses_with_a_header_document_it(status: str) -> None:
    header = {"401": "WWW-Authenticate", "405": "Allow"}.get(status, "Retry-After")
    responses = [resolved(response) for response in RESPONSES]
    for response in responses:
        examples = next(iter(response["content"].values()))["examples"].values()
        if status in {str(example["value"]["status"]) for example in examples}:
            assert set(response["headers"]) == {"X-Request-Id", "X-Ignored", "RateLimit-Policy", "RateLimit", header}


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
    path, wanted, query = operation.path, operation.status, {}
    for parameter in described.get("parameters", []):
        if parameter["in"] == "query" and "example" in parameter:
            query[parameter["name"]] = parameter["example"]
        if parameter["in"] == "path":
            example = contact_of(service) if path.startswith("/contacts/") else parameter["example"]
            path = path.replace(f"{{{parameter['name']}}}", str(example))
            if parameter["schema"]["type"] == "string":
                wanted = 404  # the reference and the UUID of an example are nobody's
    bodies = described.get("requestBody", {}).get("content", {}).get("application/json", {})
    for example in bodies.get("examples", {"": {"value": None}}).values():
        answer = service.client("hr").request(operation.method, path, params=query, json=example["value"])
        hold_to_document(operation.name, answer)
        assert answer.status_code == wanted, answer.text
        assert "X-Ignored" not in answer.headers


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
    methods = set(DOCUMENT["paths"][path])
    assert answer.headers["allow"].lower().split(", ") == sorted(methods | ({"head"} if "get" in methods else set()))
    hold_to_schema({"$ref": "#/components/schemas/Problem"}, answer.json())


def test_answers_list_no_values_that_a_release_may_add() -> None:
    """Clients that are generated from the document refuse a whole answer with a value that their list does not have. They ignore `x-extensible-enum`."""
    sent = [operation["requestBody"] for operation in BY_ID.values() if "requestBody" in operation]
    bodies = {body["$ref"].rpartition("/")[2] for body in walk(sent) if "$ref" in body} | {"BulkContact"}
    listed = {
        (name, member)
        for name, schema in SCHEMAS.items()
        if name not in bodies
        for member, value in schema.get("properties", {}).items()
        if any("enum" in part for part in walk(value))
    }
    assert listed == {("Collection", "kind"), ("Identity", "environment")}


def test_members_that_are_always_there_are_required() -> None:
    """Otherwise typed clients make callers ask whether they are there."""
    schemas = {**SCHEMAS, **build_events_document()["components"]["schemas"]}
    sent = {"Contact": {"address"}, "Subscription": {"events"}, "ListedSubscription": {"events"}, "Problem": {"errors"}}
    for name in ("OrderRecord", "GiftEvent", "AccountLow", "RecipientDelivery", "SendResponse", *sent):
        optional = schemas[name]["properties"].keys() - schemas[name]["required"]
        assert optional == sent.get(name, set()), name
