"""What callers of the API leave in the audit log."""

from typing import Any

import asyncpg
from tests.web.api.conftest import on_database

from largesse.audit.service import list_events


def test_acts_are_kept_with_key_address_and_request(service: Any) -> None:
    asked = {"targetUrl": "https://93.184.215.14/largesse", "event": "order.created"}
    client = service.client("hr")
    made = client.post("/webhooks", json=asked, headers={"X-Request-Id": "made-1"}).json()
    reference = service.send("gift", "coffee", value=10, codeQuantity=2).json()["reference"]
    assert len(client.get(f"/orders/{reference}").json()["codes"]) == 2
    for _ in range(2):  # of which the second voids nothing
        assert client.post(f"/orders/{reference}/cancel").status_code == 200
    assert client.delete(f"/webhooks/{made['id']}").status_code == 204
    assert client.delete(f"/webhooks/{made['id']}").status_code == 404

    async def read(connection: asyncpg.Connection) -> list[Any]:
        return [event async for page in list_events(connection) for event in page if event.actor == "key"]

    events = on_database(service.database_url, read)
    assert [(event.act, event.subject) for event in events] == [
        ("webhook.created", f"subscription {made['id']}"),
        ("codes.read", f"order {reference}"),
        ("order.cancelled", f"order {reference}"),
        ("webhook.deleted", f"subscription {made['id']}"),
    ]
    assert events[0].request_id == "made-1"
    assert all(event.request_id and event.address == "127.0.0.1" for event in events)
    assert {(event.customer, event.environment) for event in events} == {("acme", "production")}
    assert made["secret"] not in str(events)
    assert service.findings() == []
