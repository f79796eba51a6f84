"""The test lab: paths that staging alone has."""

import re
from typing import Any

import jsonschema_rs
import pytest

from largesse.events.kinds import EVENTS
from largesse.web.api.routes import OPERATIONS, lab, operations_of


def test_production_has_none_of_it(service: Any) -> None:
    assert operations_of("production") == OPERATIONS
    assert operations_of("staging") == (*OPERATIONS, *lab.OPERATIONS)
    for operation in lab.OPERATIONS:
        assert operation.path.startswith("/test/")
        answer = service.client("hr").request(operation.method, operation.path, json={})
        assert answer.status_code == 404


@pytest.mark.parametrize("event", EVENTS)
def test_an_event_is_made_to_happen(staging: Any, event: str) -> None:
    answer = staging.client("hr-test").post("/test/events", json={"event": event})
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert (made["event"], made["data"]["event"]) == (event, event)
    (row,) = staging.sql("SELECT event, environment, order_id, body FROM events ORDER BY id DESC LIMIT 1")
    assert (row["event"], row["environment"], row["order_id"]) == (event, "staging", None)
    assert event == "order.created" or re.fullmatch(r"evt_[0-9a-f]{24}", made["data"]["id"])


def test_what_is_no_event_is_refused(staging: Any, problem: Any) -> None:
    for body, said in (({"event": "gift.lost"}, "`event` must be one of"), ({}, "`event` is required")):
        assert said in problem(staging.client("hr-test").post("/test/events", json=body), 400)


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [("/test/events", {"event": "order.created"}, "test events"), ("/test/clock", {"advanceSeconds": 0}, "test clock")],
)
def test_a_customer_asks_for_so_much_a_minute(staging: Any, problem: Any, path: str, body: Any, said: str) -> None:
    """More is allowed by the second, so a slow machine asks a few times more."""
    client = staging.client("globex-test")
    answers = (client.post(path, json=body) for _ in range(400))
    refused = next(answer for answer in answers if answer.status_code not in {200, 201})
    assert said in problem(refused, 429, "too-many-requests")
    assert staging.client("hr-test").post(path, json=body).status_code in {200, 201}


def test_the_lab_answers_as_its_document_says(staging: Any) -> None:
    document = staging.client().get("/openapi.json").json()
    client = staging.client("hr-test")

    def hold(method: str, path: str, value: Any) -> None:
        content = document["paths"][path][method]["responses"]["200"]["content"]["application/json"]
        for one in (value, content["example"]):
            whole = {**content["schema"], "components": document["components"]}
            jsonschema_rs.Draft202012Validator(whole, validate_formats=True).validate(one)

    placed = staging.send("gift", "coffee", key="hr-test", account="test-gbp", value=5).json()
    claim = {"orderReference": placed["reference"], "lineNumber": 1}
    hold("get", "/test/clock", client.get("/test/clock").json())
    hold("post", "/test/clock", client.post("/test/clock", json={"advanceSeconds": 60}).json())
    hold("post", "/test/claim", client.post("/test/claim", json=claim).json())
    for operation in lab.OPERATIONS:
        described = document["paths"][operation.path][operation.method.lower()]
        assert described["tags"] == ["Test lab"]


def test_a_gift_is_claimed_once_and_by_its_own_service_account(staging: Any, problem: Any) -> None:
    client = staging.client("hr-test")
    placed = staging.send("collection", "treats", key="hr-test", account="test-gbp", value=25).json()
    claim = {"orderReference": placed["reference"], "productId": 999}
    assert "`productId` names no gift" in problem(client.post("/test/claim", json=claim), 400)
    claim["productId"] = staging.ids["products"]["coffee"]
    assert client.post("/test/claim", json=claim).json()["state"] == "fulfilled"
    assert "claimed before" in problem(client.post("/test/claim", json=claim), 409, "state-conflict")
    single = staging.send("gift", "coffee", key="hr-test", account="test-gbp", value=5).json()
    for body, status, said in (
        ({**claim, "orderReference": single["reference"]}, 400, "`productId` must be left out"),
        ({"orderReference": single["reference"], "lineNumber": 2}, 404, "no such line"),
        ({"orderReference": "0" * 20}, 404, "no order"),
        ({"orderReference": single["reference"], "lineNumber": 0}, 400, "`lineNumber`"),
        ({}, 400, "`orderReference` is required"),
    ):
        slug = "not-found" if status == 404 else "invalid-request"
        assert said in problem(client.post("/test/claim", json=body), status, slug)
    other = {"orderReference": single["reference"]}
    assert problem(staging.client("globex-test").post("/test/claim", json=other), 404, "not-found")
    client.post(f"/orders/{single['reference']}/cancel").raise_for_status()
    assert "cancelled" in problem(client.post("/test/claim", json=other), 409, "state-conflict")
