"""GET /orders/{reference}/request: what was asked for with an order."""

from __future__ import annotations

from typing import Any

import pytest

SAM = {"email": "sam@example.com", "name": "Sam"}
DEFAULTS: dict[str, Any] = {
    "isOwn": True,
    "productId": None,
    "collectionId": None,
    "templateId": None,
    "value": 10.0,
    "currency": "GBP",
    "country": "GB",
    "source": "api",
    "recipients": [],
    "codeQuantity": None,
    "wrappingKey": "default",
    "fromName": None,
    "message": None,
    "sendAt": None,
    "claimBy": None,
    "reminderDays": [],
    "expiryAfterDays": None,
    "externalReference": None,
}


def asked(service, sent, key: str = "hr") -> dict[str, Any]:
    """What the service says was asked for with the order of a send response."""
    reference = sent.json()["reference"]
    answer = service.client(key).get(f"/orders/{reference}/request")
    assert answer.status_code == 200, answer.text
    assert answer.json()["reference"] == reference
    return answer.json()


def expected(service, sent, **members: Any) -> dict[str, Any]:
    account_id = service.ids["funding_accounts"]["gbp"]
    return {"reference": sent.json()["reference"], "accountId": account_id, **DEFAULTS, **members}


def test_everything_that_was_said(service, typed) -> None:
    sent = service.send(
        "gift",
        "coffee",
        value=10,
        country="ie",
        source="HR Portal",
        recipients=[SAM, {"email": "Ada@Example.com", "quantity": 3}, {**SAM, "quantity": 2}],
        wrappingKey="confetti",
        fromName="Zo\u00eb",
        message="Thank\nyou",
        sendAt="2099-01-01T01:00:00.5+01:00",
        expiryAfterDays=30,
        externalReference=" asked-1 ",
    )
    ada = {"email": "Ada@example.com", "name": None, "quantity": 3}
    assert typed(asked(service, sent)) == typed(
        expected(
            service,
            sent,
            productId=service.ids["products"]["coffee"],
            country="IE",
            source="hr-portal",
            recipients=[{**SAM, "quantity": 3}, ada],
            wrappingKey="confetti",
            fromName="Zo\u00eb",
            message="Thank\nyou",
            sendAt="2099-01-01T00:00:00.500000Z",
            expiryAfterDays=30,
            externalReference="asked-1",
        )
    )


@pytest.mark.parametrize(
    ("what", "name", "said", "filled_in"),
    [
        ("gift", "coffee", {"value": 10, "sendAt": "2099-01-01T00:00:00Z"}, {"productId": "coffee"}),
        ("collection", "acme-thanks", {}, {"collectionId": "acme-thanks", "value": 25.0}),
        (
            "template",
            "welcome",
            {"fromName": "Bob"},
            {
                "productId": "coffee",
                "templateId": "welcome",
                "wrappingKey": "confetti",
                "fromName": "Bob",
                "message": "Welcome!",
                "expiryAfterDays": 90,
            },
        ),
    ],
)
def test_what_was_left_out_is_filled_in(service, what: str, name: str, said: Any, filled_in: Any) -> None:
    sent = service.send(what, name, codeQuantity=4, **said)
    lists = {"productId": "products", "collectionId": "collections", "templateId": "templates"}
    named = {
        member: service.ids[lists[member]][value] if member in lists else value for member, value in filled_in.items()
    }
    assert asked(service, sent) == expected(service, sent, codeQuantity=4, **named)


def test_an_invoiced_order_and_a_physical_gift(service) -> None:
    sent = service.send("gift", "hamper", key="initech", account=None, recipients=[SAM])
    request = asked(service, sent, "initech")
    assert request["accountId"] is None
    assert request["value"] == sent.json()["value"]


def test_another_service_account_learns_what_was_asked_but_no_codes(service) -> None:
    sent = service.send("gift", "coffee", value=5, codeQuantity=2)
    request = asked(service, sent, "crm")
    assert request["isOwn"] is False
    assert request["codeQuantity"] == 2
    assert set(request) == {"reference", "accountId", *DEFAULTS}
    recorded = "SELECT count(*) FROM code_readings r JOIN orders o ON o.id = order_id WHERE reference = $1"
    assert service.sql(recorded, request["reference"])[0]["count"] == 0
