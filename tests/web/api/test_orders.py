"""GET /orders, GET /orders/{reference}, and the order.created event."""

from __future__ import annotations

import json
import re

import pytest

INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,6}Z")
SAM = {"email": "sam@example.com"}


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
