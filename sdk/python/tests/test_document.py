"""Compares the client with the OpenAPI document of the service: every operation, member, type and argument."""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, get_args, get_origin, get_type_hints
from uuid import UUID

import httpx
import msgspec
import pytest

from largesse_client import models
from largesse_client.binding import Resource, listing, operation
from largesse_client.calls import Call, Pages
from largesse_client.client import _Client
from largesse_client.ordering import _CHECKS, Ordering

# Names in the document that differ from the client's.
NAMES = {
    "SendResponse": models.Order,
    "LineRecord": models.Line,
    "Subscription": models.NewSubscription,
    "ListedSubscription": models.Subscription,
    "DeliveryRecord": models.Delivery,
    "AttemptRecord": models.Attempt,
    "Event": models.StreamedEvent,
}
# Members that may be null in the contract, but never are in an answer.
NEVER_NULL = {("Order", "reference"), ("NewSubscription", "secret")}
SCALARS = {"number": Decimal, "integer": int, "boolean": bool}
STRINGS = {"date-time": datetime, "uuid": UUID}
ID = "7f3c1e0a-5b52-4d0e-9c55-0f3f5d1c2b6a"
ARGUMENTS: dict[str, Any] = {
    "product_id": 7,
    "collection_id": 7,
    "template_id": 7,
    "reference": "0" * 20,
    "email": "sam@example.com",
    "subscription_id": ID,
    "delivery_id": 7,
    "contact_id": 7,
    "account_id": 7,
    "contact": models.ContactChange(email="sam@example.com"),
    "contacts": [models.ContactChange(email="sam@example.com", external_id="7")],
    "change": models.ContactChange(name="Sam"),
    "target_url": "https://gifts.example",
}


@pytest.fixture(scope="module")
def document(largesse_server) -> Any:
    return httpx.get(f"{largesse_server.base_url}/openapi.json", timeout=60).json()


def calls() -> Iterator[tuple[str, Call[Any], Any]]:
    """Yields each operation of the client: its name, its call, and the type of its result."""
    resources: dict[str, type] = {"": _Client}
    client = object.__new__(_Client)
    _Client.__init__(client, None, "")  # type: ignore[arg-type] - nothing is asked
    resources |= {name: type(value) for name, value in vars(client).items() if isinstance(value, Resource)}
    for resource, kind in resources.items():
        for name, defined in vars(kind).items():
            if isinstance(defined, operation | listing):
                wanted = inspect.signature(defined.__wrapped__).parameters
                arguments = {n: ARGUMENTS[n] for n, p in wanted.items() if p.default is p.empty and n in ARGUMENTS}
                order = {"code_quantity": 1} if "order" in wanted else {}
                asked = defined.__wrapped__(None, **arguments, **order)
                shape = get_args(get_type_hints(defined.__wrapped__)["return"])[0]
                if isinstance(asked, Pages):
                    asked, shape = asked.fetch(asked.query), tuple[shape, ...]
                yield f"{resource}.{name}".strip("."), asked, shape


def template(document: Any, call: Call[Any]) -> str:
    """Returns the path template of the document that matches the path of a call."""
    path = call.path.partition("?")[0]
    for known in sorted(document["paths"], key=lambda known: known.count("{")):
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", known), path):
            return str(known)
    raise AssertionError(path)


def test_every_operation_is_there(document) -> None:
    asked = {(call.method.lower(), template(document, call)) for _, call, _ in calls()}
    known = {(method, path) for path, methods in document["paths"].items() for method in methods}
    assert asked == known


@pytest.mark.parametrize(("name", "call", "shape"), [pytest.param(*one, id=one[0]) for one in calls()])
def test_answers_have_the_types_of_the_document(document, name: str, call: Call[Any], shape: Any) -> None:
    described = document["paths"][template(document, call)][call.method.lower()]["responses"]
    (status,) = [status for status in described if status.startswith("2")]
    content = described[status].get("content", {}).get("application/json")
    if content is None:
        assert shape is type(None)
        return
    Comparison(document).hold(content["schema"], shape, name)


class Comparison:
    """Compares a schema of the document with a type of the client."""

    def __init__(self, document: Any) -> None:
        self.document = document
        self.held: set[str] = set()

    def hold(self, schema: Mapping[str, Any], kind: Any, where: str) -> None:
        schema, named = self._resolve(schema)
        kinds = set(get_args(kind)) if get_origin(kind) in {types.UnionType, typing.Union} else {kind}
        is_nullable = type(None) in kinds and len(kinds) > 1
        may_be_null = "null" in _types(schema) or any(_types(s) == {"null"} for s in schema.get("anyOf", ()))
        assert is_nullable == may_be_null or tuple(where.split(".")[-2:]) in NEVER_NULL, where
        (kind,) = kinds - {type(None)} or {type(None)}
        if "anyOf" in schema or "oneOf" in schema:
            (schema,) = [s for s in schema.get("anyOf", schema.get("oneOf")) if _types(s) != {"null"}]
            schema, named = self._resolve(schema)
        if named is not None and isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            assert NAMES.get(named, getattr(models, named, None)) is kind, f"{where}: {named}"
        self._hold_one(schema, kind, where)

    def _resolve(self, schema: Mapping[str, Any]) -> tuple[Mapping[str, Any], str | None]:
        if "$ref" not in schema:
            return schema, None
        name = schema["$ref"].rpartition("/")[2]
        return self.document["components"]["schemas"][name], name

    def _hold_one(self, schema: Mapping[str, Any], kind: Any, where: str) -> None:
        (json_type,) = _types(schema) - {"null"}
        match json_type:
            case "array":
                assert get_origin(kind) is tuple, where
                self.hold(schema["items"], get_args(kind)[0], f"{where}[]")
            case "object" if kind is msgspec.Raw:
                assert "properties" not in schema, where
            case "object" if "properties" not in schema:
                assert get_origin(kind) is Mapping, where
                self.hold(schema["additionalProperties"], get_args(kind)[1], f"{where}.*")
            case "object":
                self._hold_members(schema, kind)
            case "string" if schema.get("format") not in STRINGS:
                assert kind is str or issubclass(kind, models.Word), where
                assert kind is str or set(schema.get("enum", ())) <= set(kind), where
            case "string":
                assert kind is STRINGS[schema["format"]], where
            case _:
                assert kind is SCALARS[json_type], where

    def _hold_members(self, schema: Mapping[str, Any], kind: Any) -> None:
        if kind.__name__ in self.held:
            return
        self.held.add(kind.__name__)
        fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
        assert fields.keys() == schema["properties"].keys(), f"members of {kind.__module__}.{kind.__name__}"
        for name, member in schema["properties"].items():
            self.hold(member, fields[name].type, f"{kind.__name__}.{fields[name].name}")


def _types(schema: Mapping[str, Any]) -> set[str]:
    given = schema.get("type", [])
    return {given} if isinstance(given, str) else set(given)


@pytest.mark.parametrize("what", ["gift", "collection", "template"])
def test_bodies_have_the_members_of_the_document(document, what: str) -> None:
    reference = document["paths"][f"/send/{what}"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    schema = document["components"]["schemas"][reference["$ref"].rpartition("/")[2]]
    (defined,) = [call for name, call, _ in named_operations() if name == f"send.{what}"]
    signature = inspect.signature(defined.__wrapped__).parameters
    own = {msgspec_camel(name) for name in signature if name not in {"self", "order"}}
    members = own | {member for member, _ in _CHECKS.values()}
    assert members == schema["properties"].keys(), f"ordering.py lacks {schema['properties'].keys() - members}"
    for member, check in _CHECKS.values():
        longest = schema["properties"][member].get("maxLength")
        assert longest in {None, getattr(check, "keywords", {}).get("longest")}, member
    assert {msgspec_camel(n) for n, p in signature.items() if p.default is p.empty} >= set(schema["required"])


def test_callers_may_name_what_is_checked() -> None:
    """`Ordering`, which type checkers read, has the same members as `_CHECKS`, from which bodies are made."""
    assert Ordering.__annotations__.keys() == _CHECKS.keys()


def test_the_request_of_an_older_service_is_read() -> None:
    """An older service does not return members that were added after the first release. They are None or empty."""
    first = {
        "reference": "0" * 20, "isOwn": True, "productId": 7, "collectionId": None, "templateId": None, "value": 10, "currency": "GBP",
        "country": "GB", "source": "api", "recipients": [], "codeQuantity": 1, "wrappingKey": "default", "fromName": None, "message": None,
        "sendAt": None, "accountId": 7, "expiryAfterDays": None, "externalReference": None,
    }  # fmt: skip
    read = msgspec.convert(first, models.OrderRequest)
    assert (read.claim_by, read.reminder_days) == (None, ())


def named_operations() -> Iterator[tuple[str, Any, None]]:
    from largesse_client.resources import Sending

    for name, defined in vars(Sending).items():
        if isinstance(defined, operation):
            yield f"send.{name}", defined, None


def msgspec_camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.title() for word in rest)


@pytest.mark.parametrize(
    ("path", "given"),
    [
        ("/products", {"country", "currency", "amount", "keyword", "page", "limit"}),
        ("/collections", {"country", "currency", "amount"}),
        ("/orders", {"after", "limit", "externalReference"}),
        ("/templates", {"before", "offset", "limit"}),
        ("/users", {"before", "offset", "limit"}),
        ("/contacts", {"q", "group", "active", "after", "limit"}),
        ("/events", {"after", "limit"}),
        ("/webhooks/{id}/deliveries", {"before", "limit"}),
        ("/orders/{reference}/deliveries", {"offset", "limit"}),
    ],
)
def test_parameters_are_those_of_the_document(document, path: str, given: set[str]) -> None:
    described = document["paths"][path]["get"].get("parameters", [])
    named = [self_or_ref(document, parameter) for parameter in described]
    assert {p["name"] for p in named if p["in"] == "query"} == given


def self_or_ref(document: Any, parameter: Mapping[str, Any]) -> Any:
    if "$ref" in parameter:
        return document["components"]["parameters"][parameter["$ref"].rpartition("/")[2]]
    return parameter
