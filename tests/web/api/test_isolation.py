"""What belongs to another customer, or to the other environment, answers exactly as what does not exist."""

import re
from uuid import UUID

import httpx
import pytest
from structlog.testing import capture_logs
from tests.conftest import Template
from tests.web.api.conftest import RICH_WORLD, Service, services_on

from largesse.customers.principal import Principal
from largesse.db.scope import LOOKUP
from largesse.orders import placer
from largesse.web.api.routes import OPERATIONS

ABSENT = 2_000_000_000
ABSENT_REFERENCE = "0" * 20
ABSENT_UUID = UUID(int=0)
TARGET = {"targetUrl": "https://93.184.215.14/hook", "event": "order.created"}

# Each operation that takes an id, with the body it is called with.
BODIES = {"POST /orders/{reference}/resend": {"email": "sam@example.com"}, "PATCH /contacts/{id}": {"name": "Sam"}}
CALLS = [f"{operation.method} {operation.path}" for operation in OPERATIONS if "{" in operation.path]


def call(client: httpx.Client, name: str, thing: object) -> httpx.Response:
    """Calls an operation for a thing."""
    method, path = name.replace("{deliveryId}", "1").split()
    return client.request(method, re.sub(r"\{\w+\}", str(thing), path), json=BODIES.get(name))


def told(answer: httpx.Response, echoed: object) -> tuple[int, dict[str, str], str]:
    """All that an answer tells, but for the id that was asked for, the time and the request's own id."""
    headers = {k: v for k, v in answer.headers.items() if k not in {"date", "x-request-id", "content-length"}}
    return answer.status_code, headers, re.sub(rf"\b{re.escape(str(echoed))}\b", "ID", answer.text)


@pytest.fixture(scope="module")
def theirs(service) -> dict[str, object]:
    """Things of Acme's in production."""
    client = service.client("hr")
    subscription = UUID(client.post("/webhooks", json=TARGET).json()["id"])
    service.sql(
        "INSERT INTO deliveries (customer_id, subscription_id, event, sample, due_at, created_at) "
        "SELECT customer_id, id, 'order.created', '{}', now(), now() FROM webhook_subscriptions WHERE id = $1",
        subscription,
    )
    sent = service.send("gift", "coffee", value=5, recipients=[{"email": "sam@example.com"}])
    contact = client.post("/contacts", json={"email": "theirs@example.com"}).json()["id"]
    return {
        "GET /products/{id}": service.ids["products"]["club"],
        "GET /collections/{id}": service.ids["collections"]["acme-thanks"],
        "GET /funding-accounts/{id}/entries": service.ids["funding_accounts"]["gbp"],
        **{name: sent.json()["reference"] for name in CALLS if "/orders/" in name},
        **{name: subscription for name in CALLS if "/webhooks/" in name},
        **{name: contact for name in CALLS if "/contacts/" in name},
    }


def absent(name: str) -> object:
    if "/orders/" in name:
        return ABSENT_REFERENCE
    return ABSENT_UUID if "/webhooks/" in name else ABSENT


@pytest.mark.parametrize("name", CALLS)
def test_another_customers_answers_as_what_is_not_there(service, theirs, problem, name: str) -> None:
    client, mine = service.client("globex"), theirs[name]
    before = service.state()
    other = call(client, name, mine)
    problem(other, 404, "not-found")
    assert told(other, mine) == told(call(client, name, absent(name)), absent(name))
    assert service.state() == before
    assert service.client("hr").get("/webhooks").json()


@pytest.mark.parametrize("name", [name for name in CALLS if "/orders/" in name or "/webhooks/" in name])
def test_the_other_environments_answers_as_what_is_not_there(service, staging, theirs, problem, name: str) -> None:
    client, mine = staging.client("hr-test"), theirs[name]
    other = call(client, name, mine)
    problem(other, 404, "not-found")
    assert told(other, mine) == told(call(client, name, absent(name)), absent(name))
    assert service.client("hr").get("/webhooks").json()


@pytest.mark.parametrize(
    ("what", "name", "member", "listed", "other"),
    [
        ("gift", "coffee", "productId", "products", "club"),
        ("collection", "treats", "collectionId", "collections", "acme-thanks"),
        ("template", "globex-hello", "templateId", "templates", "welcome"),
        ("gift", "coffee", "accountId", "funding_accounts", "gbp"),
        ("gift", "coffee", "accountId", "funding_accounts", "eur"),
        ("gift", "coffee", "accountId", "funding_accounts", "team"),
        ("gift", "coffee", "accountId", "funding_accounts", "test-gbp"),
        ("gift", "coffee", "accountId", "funding_accounts", "initech-gbp"),
        ("collection", "treats", "accountId", "funding_accounts", "gbp"),
        ("template", "globex-hello", "accountId", "funding_accounts", "gbp"),
    ],
)
def test_sending_with_another_customers_ids(
    service, problem, what: str, name: str, member: str, listed: str, other: str
) -> None:
    """Byte for byte: these details echo no id."""
    body = service.body(what, name, account="globex-gbp", **({} if what == "template" else {"value": 10}))
    client, before = service.client("globex"), service.state()
    answers = [
        client.post(f"/send/{what}", json={**body, member: number}) for number in (service.ids[listed][other], ABSENT)
    ]
    problem(answers[0], 400)
    assert told(answers[0], "") == told(answers[1], "")
    assert answers[0].content == answers[1].content
    assert service.state() == before


def test_an_account_of_the_other_environment_pays_nothing(service, staging, problem) -> None:
    body = service.body("gift", "coffee", value=5)
    client, before = staging.client("hr-test"), service.state()
    answers = [client.post("/send/gift", json={**body, "accountId": number}) for number in (body["accountId"], ABSENT)]
    problem(answers[0], 400)
    assert answers[0].content == answers[1].content
    assert service.state() == before


def test_lists_hold_nothing_of_others(service, staging, theirs) -> None:
    for client in (service.client("globex"), staging.client("hr-test")):
        assert client.get("/orders?limit=50").json() == []
        assert client.get("/webhooks").json() == []
    ids = service.ids
    globex = service.client("globex")
    assert [t["id"] for t in globex.get("/templates").json()] == [ids["templates"]["globex-hello"]]
    accounts = [account["id"] for account in globex.get("/funding-accounts").json()]
    assert accounts == [ids["funding_accounts"]["globex-gbp"]]
    assert [user["name"] for user in globex.get("/users").json()] == ["Gil"]
    assert ids["products"]["club"] not in [p["id"] for p in globex.get("/products").json()]
    collections = [c["id"] for c in globex.get("/collections").json()]
    assert ids["collections"]["acme-thanks"] not in collections


def test_a_staging_order_is_seen_in_staging_alone(template: Template, tmp_path_factory: pytest.TempPathFactory) -> None:
    with services_on(template, tmp_path_factory) as start:
        service = start(RICH_WORLD)
        see_a_staging_order(service, start(like=service, environment="staging"))


def see_a_staging_order(service: Service, staging: Service) -> None:
    sent = staging.send("gift", "coffee", key="hr-test", account="test-gbp", value=5)
    assert sent.status_code == 200, sent.text
    reference = sent.json()["reference"]
    listed = staging.client("hr-test").get("/orders?limit=50").json()
    assert reference in [order["reference"] for order in listed]
    assert staging.client("hr-test").get(f"/orders/{reference}").content == sent.content
    assert service.client("hr").get(f"/orders/{reference}").status_code == 404
    assert reference not in service.client("hr").get("/orders?limit=50").text
    assert service.sql("SELECT environment FROM events ORDER BY id DESC LIMIT 1")[0][0] == "staging"


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/users"), ("GET", "/funding-accounts"), ("GET", "/templates"), ("POST", "/send/gift")]
)
def test_what_is_done_for_nobody_is_an_error_and_no_row(
    service, problem, monkeypatch: pytest.MonkeyPatch, method: str, path: str
) -> None:
    """A transaction that did not say for whom it acts is an error in the log, and a 500 for the caller."""
    before = service.state()
    # As it would be, had somebody written `database.transaction(LOOKUP)` in the room of this path.
    monkeypatch.setattr(Principal, "scope", LOOKUP)
    monkeypatch.setattr(placer, "scope_of_orders", lambda _: LOOKUP)
    body = service.body("gift", "coffee", value=5) if method == "POST" else None
    with capture_logs() as logged:
        response = service.client("hr").request(method, path, json=body)
    detail = problem(response, 500, "internal-error")
    assert "scope" not in detail
    [line] = [line for line in logged if line["event"] != "request_refused"]
    assert (line["event"], line["log_level"]) == ("request_failed", "error")
    # Behind PgBouncer there is no setting at all until a transaction says it.
    told = str(line["exc_info"])
    assert "no scope was said" in told or 'parameter "largesse.customers"' in told or 'array literal: ""' in told
    assert service.state() == before
    monkeypatch.undo()
    assert service.client("hr").request(method, path, json=body).status_code == 200
