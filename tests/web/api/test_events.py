"""GET /events: what webhooks deliver, to pull page by page."""

import json
from typing import Any

from tests.background import run_in_thread

from largesse.db.pool import connect_once
from largesse.db.scope import WORKER
from largesse.webhooks.queues import fan_out


def fan_out_all(service: Any) -> None:
    async def work() -> None:
        async with connect_once(service.database_url, WORKER) as connection:
            await fan_out(connection, 1_000)

    run_in_thread(work())


def follow(client: Any, after: str, limit: int) -> list[dict[str, Any]]:
    """Reads the stream to its end, a page at a time."""
    found: list[dict[str, Any]] = []
    while page := client.get("/events", params={"after": after, "limit": limit}).json():
        assert len(page) <= limit
        found += page
        after = page[-1]["cursor"]
    return found


def test_the_stream_is_read_page_by_page(service: Any) -> None:
    client = service.client("hr")
    before = client.get("/events?limit=1").json()
    after = before[0]["cursor"] if before else "start"
    references = [service.send("gift", "coffee", value=10, codeQuantity=1).json()["reference"] for _ in range(5)]
    assert client.get("/events", params={"after": after}).json() == []
    fan_out_all(service)
    found = follow(client, after, 2)
    assert [event["data"]["reference"] for event in found] == references
    assert [event["data"]["reference"] for event in client.get("/events?limit=2").json()] == references[:-3:-1]
    assert follow(client, "start", 200)[-5:] == found


def test_an_event_is_what_a_webhook_delivers(service: Any) -> None:
    reference = service.send("gift", "coffee", value=10, codeQuantity=2).json()["reference"]
    assert service.client("hr").post(f"/orders/{reference}/cancel").status_code == 200
    fan_out_all(service)
    placed, *cancelled = service.client("hr").get("/events?limit=3").json()[::-1]
    rows = service.sql("SELECT event, body FROM events ORDER BY id DESC LIMIT 3")[::-1]
    assert [(one["event"], one["data"]) for one in (placed, *cancelled)] == [
        (row["event"], json.loads(row["body"])) for row in rows
    ]
    assert [(one["event"], one["data"]["number"]) for one in cancelled] == [("gift.cancelled", n) for n in (1, 2)]
    record = service.client("hr").get("/orders?limit=1").json()[0]
    assert placed["data"] == record
    assert placed["creationDate"] == record["creationDate"]


def test_a_cursor_and_a_limit_are_held_to_what_they_may_be(service: Any, problem: Any) -> None:
    client = service.client("hr")
    assert "`after` must be the `cursor` of an event" in problem(client.get("/events?after=12"), 400, "invalid-request")
    for limit, status in ((0, 400), (1, 200), (200, 200), (201, 400)):
        assert client.get(f"/events?limit={limit}").status_code == status
