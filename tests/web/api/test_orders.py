"""GET /orders, GET /orders/{reference} and what was asked for with it, and the order.created event."""

import json
import re
from typing import Any

import pytest

INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,6}Z")
SAM = {"email": "sam@example.com"}
NAMED = {**SAM, "name": "Sam"}


def test_an_order_record(service, typed) -> None:
    sent = service.send(
        "gift",
        "books",
        account="eur",
        country="fr",
        value=7.5,
        recipients=[{**SAM, "quantity": 3}],
        source="Portal",
        wrappingKey="stars",
        fromName="Ada",
        message="Hi",
        externalReference="record-1",
    ).json()
    record = service.client("hr").get("/orders?limit=1").json()[0]
    order_id, created = record.pop("id"), record.pop("creationDate")
    assert isinstance(order_id, int)
    assert INSTANT.fullmatch(created)
    assert typed(record) == typed(
        {
            "event": "order.created",
            "reference": sent["reference"],
            "customerId": service.ids["customers"]["acme"],
            "value": 7.5,
            "currency": "EUR",
            "country": "FR",
            "sourceType": "portal",
            "externalReference": "record-1",
            "giftSelectionType": "gift",
            "giftProductId": service.ids["products"]["books"],
            "giftsCollectionId": None,
            "wrappingKey": "stars",
            "fromName": "Ada",
            "deliveryMode": "send",
            "lineCount": 3,
            "createdBy": service.ids["service_accounts"]["hr-bot"],
        }
    )


def test_the_record_of_a_collection_without_anything_optional(service, typed) -> None:
    service.send("collection", "open", account="kwd", value=1.5, key="crm", codeQuantity=2)
    record = service.client("hr").get("/orders?limit=1").json()[0]
    del record["id"], record["reference"], record["creationDate"]
    assert typed(record) == typed(
        {
            "event": "order.created",
            "customerId": service.ids["customers"]["acme"],
            "value": 1.5,
            "currency": "KWD",
            "country": "KW",
            "sourceType": "api",
            "externalReference": None,
            "giftSelectionType": "gifts",
            "giftProductId": None,
            "giftsCollectionId": service.ids["collections"]["open"],
            "wrappingKey": "default",
            "fromName": None,
            "deliveryMode": "manual",
            "lineCount": 2,
            "createdBy": service.ids["service_accounts"]["crm"],
        }
    )


def test_orders_are_listed_newest_first_ten_unless_said(service) -> None:
    references = [
        service.send("gift", "coffee", value=5, externalReference=f"newest-{n}").json()["reference"] for n in range(12)
    ]
    client = service.client("hr")
    listed = client.get("/orders").json()
    assert [order["reference"] for order in listed] == references[:1:-1]
    ids = [order["id"] for order in client.get("/orders?limit=50").json()]
    assert ids == sorted(set(ids), reverse=True)
    assert client.get("/orders?limit=1").json() == listed[:1]


def test_orders_after_one_are_listed_oldest_first(service, staging) -> None:
    client = service.client("hr")
    assert service.send("gift", "coffee", value=5).status_code == 200
    (last,) = client.get("/orders?limit=1").json()
    references = [
        service.send("gift", "coffee", value=5, key=key).json()["reference"] for key in ("hr", "crm", "hr", "hr", "crm")
    ]
    service.send("gift", "coffee", key="globex", account="globex-gbp", value=5)
    staging.send("gift", "coffee", key="hr-test", account="test-gbp", value=5)
    heard: list[dict[str, object]] = []
    while more := client.get("/orders", params={"after": last["id"], "limit": 2}).json():
        heard += more
        last = more[-1]
    assert [order["reference"] for order in heard] == references
    assert heard[::-1] == client.get("/orders?limit=5").json()
    assert client.get(f"/orders?after={2**31 - 1}").json() == []
    everything = client.get("/orders?after=0&limit=50").json()
    assert len(client.get("/orders?after=0").json()) == min(10, len(everything))
    ids = [order["id"] for order in everything]
    assert ids == sorted(set(ids))


@pytest.mark.parametrize("after", ["-1", str(2**31), "", "null", "x", "1.5", "F6Z9C7XE1MN9MKA1FDPH"])
def test_after_what_is_no_id(service, problem, after: str) -> None:
    assert "`after`" in problem(service.client("hr").get("/orders", params={"after": after}), 400)


def test_the_event_is_the_order_record_byte_for_byte(service) -> None:
    service.send("gift", "coffee", value=5, fromName="Zo\u00eb \U0001f381", externalReference="\u00fc/1")
    service.send("gift", "hamper", country="IE", recipients=[SAM])
    service.send("collection", "acme-thanks", codeQuantity=3)
    service.send("template", "box", recipients=[SAM], sendAt="2099-01-01T00:00:00Z")
    listed = service.client("hr").get("/orders?limit=4").content
    rows = service.sql("SELECT event, environment, body FROM events ORDER BY id DESC LIMIT 4")
    assert listed == b"[" + b",".join(row["body"] for row in rows) + b"]"
    assert {(row["event"], row["environment"]) for row in rows} == {("order.created", "production")}


def test_a_lost_response_is_given_again(service, staging) -> None:
    batch = service.send("gift", "coffee", value=5, codeQuantity=3, externalReference="lost-1")
    emailed = service.send("gift", "hamper", recipients=[SAM], sendAt="2099-01-01T00:00:00.5Z")
    client = service.client("hr")
    for sent in (batch, emailed):
        again = client.get(f"/orders/{sent.json()['reference']}")
        assert (again.status_code, again.content) == (200, sent.content)
    readings = service.sql(
        "SELECT o.reference, r.service_account_id FROM code_readings r JOIN orders o ON o.id = order_id"
    )
    assert [tuple(row) for row in readings] == [(batch.json()["reference"], service.ids["service_accounts"]["hr-bot"])]


def test_an_order_that_is_not_there(service, problem) -> None:
    client = service.client("hr")
    for reference in ("0" * 20, "x", "%00", "A" * 21, "..%2f", "\u00e9"):
        problem(client.get(f"/orders/{reference}"), 404, "not-found")


def test_codes_and_pins_are_nowhere_in_the_database(service) -> None:
    codes = service.send("gift", "coffee", value=5, codeQuantity=2).json()["codes"]
    tables = service.sql("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
    dump = json.dumps(
        [[str(row) for row in service.sql(f'SELECT t::text FROM "{table["table_name"]}" t')] for table in tables]
    )
    assert len(dump) > 10_000
    for code in codes:
        assert code["code"] not in dump
        assert code["code"].replace("-", "") not in dump
        assert code["redemptionUrl"].rpartition("/")[2] not in dump
    for secret in service.keys.values():
        assert secret not in dump


def test_a_movement_of_an_order_is_balanced(service) -> None:
    reference = service.send("gift", "coffee", value=25, codeQuantity=4).json()["reference"]
    entries = service.sql(
        "SELECT a.kind, e.amount_minor, e.balance_minor = a.balance_minor AS newest FROM entries e "
        "JOIN orders o ON o.customer_id = e.customer_id AND o.id = e.order_id "
        "JOIN accounts a ON a.customer_id = e.customer_id AND a.id = e.account_id WHERE o.reference = $1 "
        "ORDER BY a.kind",
        reference,
    )
    assert [tuple(entry) for entry in entries] == [("funding", -10_000, True), ("sales", 10_000, True)]


# The order that holds a reference, of this customer and environment, or none


def found(service: Any, reference: str, key: str = "hr", **more: Any) -> list[Any]:
    answer = service.client(key).get("/orders", params={"externalReference": reference, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_order_of_a_reference(service) -> None:
    placed = {
        name: service.send("gift", "coffee", value=5, externalReference=name).json()["reference"]
        for name in ("one", "two")
    }
    listed = {order["reference"]: order for order in service.client("hr").get("/orders").json()}
    for name, reference in placed.items():
        assert found(service, name) == [listed[reference]]
        assert found(service, f" {name}\t", limit=1) == [listed[reference]]
    assert found(service, "three") == found(service, "ONE") == found(service, "on") == []
    order_id = listed[placed["one"]]["id"]
    assert found(service, "one", after=order_id - 1) == [listed[placed["one"]]]
    assert found(service, "one", after=order_id) == []


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("", "`externalReference` must not be blank."),
        (" \t", "`externalReference` must not be blank."),
        (129 * "x", "`externalReference` must have at most 128 characters."),
        ("a\x00b", "`externalReference` must not contain"),
    ],
)
def test_what_no_order_can_hold_is_refused(service, problem, reference: str, said: str) -> None:
    answer = service.client("hr").get("/orders", params={"externalReference": reference})
    assert problem(answer, 400).startswith(said)


def test_the_longest_reference(service) -> None:
    assert service.send("gift", "coffee", value=5, externalReference=128 * "é").status_code == 200
    assert len(found(service, f" {128 * 'é'} ")) == 1


# What was asked for with an order

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
        recipients=[NAMED, {"email": "Ada@Example.com", "quantity": 3}, {**NAMED, "quantity": 2}],
        wrappingKey="confetti",
        fromName="Zo\u00eb",
        message="Thank\nyou",
        sendAt="2099-01-01T01:00:00.5+01:00",
        expiryAfterDays=30,
        externalReference=" asked-1 ",
    )
    ada = {"email": "Ada@example.com", "name": None, "quantity": 3, "wasEmail": None}
    assert typed(asked(service, sent)) == typed(
        expected(
            service,
            sent,
            productId=service.ids["products"]["coffee"],
            country="IE",
            source="hr-portal",
            recipients=[{**NAMED, "quantity": 3, "wasEmail": None}, ada],
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
    sent = service.send("gift", "hamper", key="initech", account=None, recipients=[NAMED])
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
