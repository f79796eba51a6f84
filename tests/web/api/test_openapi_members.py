"""The members and limits of the OpenAPI document: those of the contract, of its types, and no others."""

from typing import Any

import pytest
from tests.web.api.document import BY_ID, SCHEMAS

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
    "claimBy": maybe(DATE),  # an addition
    "reminderDays": maybe(f"array of {INT32}"),  # an addition
    "placeholders": maybe(FLAG),  # an addition
}
PRODUCT = {
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
    "picture": maybe(TEXT),  # an addition
}
FIELDS_OF_SPEC = {
    "Identity": {
        "customerId": INT64,
        "customerName": TEXT,
        "serviceAccountId": INT64,
        "serviceAccountName": TEXT,
        "environment": TEXT,
    },
    "Product": PRODUCT,
    # Additions: what is said of one product.
    "ProductInFull": {**PRODUCT, "description": maybe(TEXT), "howToRedeem": maybe(TEXT), "terms": maybe(TEXT)},
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
        "events": "array of string",
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
    "Subscribe": {"targetUrl": "string uri", "event": TEXT, "events": "array of string null"},
}
REQUIRED_IN_BODIES = {
    "Recipient": ["email"],
    "SendGift": ["productId"],
    "SendCollection": ["collectionId"],
    "SendTemplate": ["templateId"],
    "Subscribe": ["targetUrl"],
    "Subscription": ["id", "event", "targetUrl", "secret"],
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
