"""POST, GET and DELETE /webhooks."""

import re
from typing import Any
from uuid import UUID

import pytest

# An address, so that no test asks a name server.
TARGET = "https://93.184.215.14/hook?x=1"


def subscribe(service, key: str = "hr", **members: Any):
    body = {"targetUrl": TARGET, "event": "order.created", **members}
    return service.client(key).post("/webhooks", json=body)


def test_a_subscription_is_made_listed_and_deleted(own_service, problem) -> None:
    client = own_service.client("crm")
    answer = subscribe(own_service, "crm")
    assert answer.status_code == 201
    created = answer.json()
    assert set(created) == {"id", "event", "targetUrl", "secret"}
    assert str(UUID(created["id"])) == created["id"]
    assert (created["event"], created["targetUrl"]) == ("order.created", TARGET)
    assert len(created["secret"]) > 32
    (listed,) = client.get("/webhooks").json()
    assert set(listed) == {"id", "event", "targetUrl", "creationDate"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", listed["creationDate"])
    assert created["secret"] not in client.get("/webhooks").text
    deleted = client.delete(f"/webhooks/{created['id']}")
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert client.get("/webhooks").json() == []
    problem(client.delete(f"/webhooks/{created['id']}"), 404, "not-found")


def test_a_target_may_have_any_port(service) -> None:
    answer = subscribe(service, "crm", targetUrl="https://93.184.215.14:8443/hook")
    assert answer.status_code == 201
    assert answer.json()["targetUrl"] == "https://93.184.215.14:8443/hook"
    assert service.client("crm").delete(f"/webhooks/{answer.json()['id']}").status_code == 204


@pytest.mark.parametrize(
    "name", ["x", "1", "0" * 32, "5f3c1e0a-5b52-4d0e-9c55-0f3f5d1c2b6a", "7f3c1e0a-5b52-4d0e-9c55-0f3f5d1c2b6"]
)
def test_an_id_of_no_subscription(service, problem, name: str) -> None:
    problem(service.client("hr").delete(f"/webhooks/{name}"), 404, "not-found")


@pytest.mark.parametrize(
    ("members", "member"),
    [
        ({"event": "order.deleted"}, "event"),
        ({"event": None}, "event"),
        ({"targetUrl": 1}, "targetUrl"),
        ({"targetUrl": "hook"}, "targetUrl"),
        ({"targetUrl": "http://93.184.215.14/"}, "targetUrl"),
        ({"targetUrl": "https://10.1.2.3/"}, "targetUrl"),
        ({"targetUrl": "https://user:hunter2@93.184.215.14/"}, "targetUrl"),
        ({"targetUrl": "https://93.184.215.14/" + "x" * 2048}, "targetUrl"),
    ],
)
def test_a_subscription_that_is_refused(service, problem, members: dict[str, Any], member: str) -> None:
    before = service.client("hr").get("/webhooks").json()
    detail = problem(subscribe(service, **members), 400)
    assert f"`{member}`" in detail
    assert "hunter2" not in detail
    assert service.client("hr").get("/webhooks").json() == before


@pytest.mark.parametrize("member", ["targetUrl", "event"])
def test_a_required_member_left_out(service, problem, member: str) -> None:
    body = {"targetUrl": TARGET, "event": "order.created"}
    del body[member]
    assert f"`{member}` is required" in problem(service.client("hr").post("/webhooks", json=body), 400)


def test_samples_are_limited_for_each_subscription(service, problem) -> None:
    client = service.client("globex")
    one, another = (subscribe(service, "globex").json()["id"] for _ in range(2))
    asked = [client.post(f"/webhooks/{one}/test") for _ in range(11)]
    assert [answer.status_code for answer in asked] == [202] * 10 + [429]
    assert "10 samples" in problem(asked[-1], 429, "too-many-requests")
    assert 1 <= int(asked[-1].headers["Retry-After"]) <= 6
    assert client.post(f"/webhooks/{another}/test").status_code == 202
    assert len(client.get(f"/webhooks/{one}/deliveries").json()) == 10


SEVERAL = ["gift.claimed", "order.created", "gift.bounced"]


def test_a_subscription_names_several_events(service, problem) -> None:
    client = service.client("globex")
    answer = client.post("/webhooks", json={"targetUrl": TARGET, "events": SEVERAL})
    assert answer.status_code == 201, answer.text
    created = answer.json()
    assert set(created) == {"id", "event", "events", "targetUrl", "secret"}
    assert (created["event"], created["events"]) == (None, SEVERAL)
    (listed,) = [one for one in client.get("/webhooks").json() if one["id"] == created["id"]]
    assert (listed["event"], listed["events"]) == (None, SEVERAL)
    path = f"/webhooks/{created['id']}/test"
    assert client.post(path).json()["event"] == SEVERAL[0]
    assert client.post(f"{path}?event={SEVERAL[2]}").json()["event"] == SEVERAL[2]
    detail = problem(client.post(f"{path}?event=gift.sent"), 400)
    assert f"must be one of the subscription's: {', '.join(SEVERAL)}" in detail
    assert client.delete(f"/webhooks/{created['id']}").status_code == 204


def test_events_of_null_count_as_left_out(service) -> None:
    client = service.client("globex")
    answer = client.post("/webhooks", json={"targetUrl": TARGET, "event": "gift.sent", "events": None})
    assert (answer.status_code, answer.json().get("events")) == (201, None), answer.text
    assert client.delete(f"/webhooks/{answer.json()['id']}").status_code == 204


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"events": []}, "`events`"),
        ({"events": ["order.created", "order.lost"]}, "`events[1]` must be one of: order.created, gift.sent"),
        ({"events": ["gift.sent", "gift.sent"]}, "`events[1]` is named twice"),
        ({"events": ["order.created"] * 21}, "`events`"),
        ({"events": "order.created"}, "`events`"),
        ({"events": None}, "`events`"),
        ({"events": [1]}, "`events"),
        ({"event": "order.created", "events": ["gift.sent"]}, "Give `event` or `events`, not both"),
    ],
)
def test_events_that_are_refused(service, problem, members: dict[str, Any], said: str) -> None:
    assert said in problem(service.client("hr").post("/webhooks", json={"targetUrl": TARGET, **members}), 400)


def test_a_secret_is_rotated(service, problem) -> None:
    client = service.client("globex")
    made = client.post("/webhooks", json={"targetUrl": TARGET, "event": "order.created"}).json()
    answer = client.post(f"/webhooks/{made['id']}/rotate-secret")
    assert answer.status_code == 200, answer.text
    rotated = answer.json()
    assert (set(rotated), rotated["id"]) == ({"id", "secret", "previousUntil"}, made["id"])
    assert rotated["secret"] != made["secret"]
    acts = service.sql("SELECT act FROM audit_events WHERE subject = $1 ORDER BY id", f"subscription {made['id']}")
    assert [row["act"] for row in acts] == ["webhook.created", "webhook.secret_rotated"]
    assert client.delete(f"/webhooks/{made['id']}").status_code == 204
    problem(client.post(f"/webhooks/{made['id']}/rotate-secret"), 404, "not-found")
