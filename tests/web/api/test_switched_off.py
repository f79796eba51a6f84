"""What a key may do at all: nothing but `GET /me` while its service account is switched off, whatever the operation."""

import re
from typing import Any

import httpx
import pytest

from largesse.web.api.operation import Operation
from largesse.web.api.routes import OPERATIONS

WITH_KEY = [operation for operation in OPERATIONS if operation.needs_key]


def call(client: httpx.Client, operation: Operation, **kwargs: Any) -> httpx.Response:
    """One request to the operation, with the documented example of each parameter in its path."""
    path = re.sub(r"\{(\w+)\}", lambda name: str(operation.path_types[name[1]]["examples"][0]), operation.path)
    return client.request(operation.method, path, **kwargs)


def test_only_who_asks_for_its_name_may_be_switched_off() -> None:
    assert [o.name for o in WITH_KEY if not o.needs_active] == ["getMe"]


@pytest.mark.parametrize("operation", WITH_KEY, ids=lambda operation: operation.name)
def test_a_switched_off_service_account(service, problem, operation: Operation) -> None:
    """Before anything else in the request: the query, a body too large to be read, an id that names nothing."""
    before = service.state()
    client = service.client("idle")
    answers = [call(client, operation), call(client, operation, params={"limit": "x"})]
    if operation.body is not None:
        answers += [call(client, operation, content=b"x" * 5_000_000)]
    for answer in answers:
        if operation.needs_active:
            problem(answer, 403, "inactive-service-account")
            assert "'Idle bot'" in answer.json()["detail"]
        else:
            assert answer.status_code == 200
    assert service.state() == before


@pytest.mark.parametrize("operation", WITH_KEY, ids=lambda operation: operation.name)
def test_switched_off_and_on_again(service, problem, operation: Operation) -> None:
    """The switch holds for the next request, and the plan is told first."""
    client = service.client("globex")
    usual = call(client, operation).status_code

    def switch(active: bool) -> None:
        service.sql("UPDATE service_accounts SET active = $1 WHERE key = 'globex-bot'", active)

    def choose(plan: str) -> None:
        service.sql("UPDATE customers SET plan = $1 WHERE key = 'globex'", plan)

    switch(False)
    try:
        assert call(client, operation).status_code == (403 if operation.needs_active else 200)
        choose("starter")
        problem(call(client, operation), 402, "plan-required")
    finally:
        choose("pro")
        switch(True)
    assert call(client, operation).status_code == usual not in {402, 403}


def rows_of(service, table: str, order: dict[str, Any]) -> int:
    query = f"SELECT count(*) FROM {table} JOIN orders ON orders.id = order_id WHERE reference = $1"
    count: int = service.sql(query, order["reference"])[0][0]
    return count


class TestAnotherServiceAccount:
    """Of the same customer: it sees orders, and decides over those it placed."""

    @pytest.fixture
    def batch(self, service) -> dict[str, Any]:
        sent = service.send("gift", "coffee", value=5, codeQuantity=2)
        assert sent.status_code == 200, sent.text
        body: dict[str, Any] = sent.json()
        return body

    @pytest.fixture
    def emailed(self, service) -> dict[str, Any]:
        sent = service.send("gift", "coffee", value=5, recipients=[{"email": "sam@example.com"}])
        assert sent.status_code == 200, sent.text
        body: dict[str, Any] = sent.json()
        return body

    def test_reads_no_codes(self, service, problem, batch: dict[str, Any]) -> None:
        path = f"/orders/{batch['reference']}"
        refused = service.client("crm").get(path)
        problem(refused, 403, "other-service-account")
        for code in batch["codes"]:
            assert code["code"] not in refused.text
        assert rows_of(service, "code_readings", batch) == 0
        assert service.client("hr").get(path).json() == batch
        problem(service.client("globex").get(path), 404, "not-found")

    def test_reads_what_holds_no_codes(self, service, batch: dict[str, Any], emailed: dict[str, Any]) -> None:
        client = service.client("crm")
        assert client.get(f"/orders/{emailed['reference']}").json() == emailed
        for order in (batch, emailed):
            deliveries = client.get(f"/orders/{order['reference']}/deliveries")
            assert deliveries.status_code == 200
            assert not any(code["code"] in deliveries.text for code in batch["codes"])
            assert order["reference"] in client.get("/orders?limit=50").text

    def test_cancels_nothing(self, service, problem, batch: dict[str, Any], emailed: dict[str, Any]) -> None:
        before = service.state()
        for order in (batch, emailed):
            path = f"/orders/{order['reference']}/cancel"
            problem(service.client("crm").post(path), 403, "other-service-account")
            problem(service.client("globex").post(path), 404, "not-found")
            assert rows_of(service, "line_states", order) == 0
        assert service.state() == before
        assert service.client("hr").post(f"/orders/{batch['reference']}/cancel").json()["cancelledCount"] == 2

    def test_resends_nothing(self, service, problem, emailed: dict[str, Any]) -> None:
        path, body = f"/orders/{emailed['reference']}/resend", {"email": "sam@example.com"}
        problem(service.client("crm").post(path, json=body), 403, "other-service-account")
        problem(service.client("globex").post(path, json=body), 404, "not-found")
        problem(service.client("hr").post(path, json=body), 400)  # it has not left yet

    def test_a_second_key_of_the_same_service_account_may(self, service, batch: dict[str, Any]) -> None:
        _, secret = service.new_key()
        path = f"/orders/{batch['reference']}"
        again = httpx.get(f"{service.url}{path}", headers={"X-Api-Key": secret})
        assert again.json() == batch
        cancelled = httpx.post(f"{service.url}{path}/cancel", headers={"X-Api-Key": secret})
        assert cancelled.status_code == 200
