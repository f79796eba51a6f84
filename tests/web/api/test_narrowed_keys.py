"""Keys that are for less, and service accounts that may order less: refused for just that, with nothing placed or charged."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from ipaddress import ip_network
from typing import Any

import httpx
import pytest
from tests.web.api.conftest import Service, on_database

from largesse.customers.customer_store import find_service_account, set_limits
from largesse.customers.restrictions import SCOPES, Limit
from largesse.web.api.operation import Operation
from largesse.web.api.routes import OPERATIONS

SCOPED = [operation for operation in OPERATIONS if operation.needs_key]
SAM = [{"email": "sam@example.com"}]


def make_key(service: Service, name: str, **narrowed: Any) -> httpx.Client:
    """A client with a key that is narrowed."""
    _, secret = service.new_key(key=name, **narrowed)
    return httpx.Client(base_url=service.url, headers={"Authorization": f"Bearer {secret}"}, timeout=30)


@pytest.fixture(scope="module")
def clients(service: Service) -> Iterator[dict[str, httpx.Client]]:
    """A client for each scope, with a key that has no other, and one for all but that: `-read`."""
    made = {scope: make_key(service, scope, scopes=[scope]) for scope in SCOPES}
    made |= {
        f"-{scope}": make_key(service, f"-{scope}", scopes=[other for other in SCOPES if other != scope])
        for scope in SCOPES
    }
    yield made
    for client in made.values():
        client.close()


@pytest.fixture
def limit(service: Service) -> Iterator[Callable[..., None]]:
    """`limit(currency, largest, daily)` in minor units, of hr-bot or another account; without limits again afterwards."""

    def set_limit(
        currency: str, largest: int | None = None, daily: int | None = None, *, account: str = "acme/hr-bot"
    ) -> None:
        customer, key = account.split("/")

        async def work(connection: Any) -> None:
            found = await find_service_account(connection, customer, key)
            limits = {**found.limits, currency: Limit(largest, daily)}
            await set_limits(connection, found.customer_id, found.id, limits)

        on_database(service.database_url, work)

    yield set_limit
    service.sql("UPDATE service_accounts SET limits = NULL")
    service.sql("DELETE FROM daily_spending")
    service.sql("UPDATE clock SET ahead_by = '0'")


def ask(client: httpx.Client, operation: Operation) -> httpx.Response:
    path = operation.path.replace("{id}", "1").replace("{reference}", "0" * 20).replace("{deliveryId}", "1")
    return client.request(operation.method, path, json={} if operation.body else None)


@pytest.mark.parametrize("operation", SCOPED, ids=lambda operation: operation.name)
def test_each_operation_takes_a_key_of_its_scope(
    clients: dict[str, httpx.Client], problem: Callable[..., str], operation: Operation
) -> None:
    for scope in SCOPES:
        answer = ask(clients[scope], operation)
        if operation.scope in (None, scope):
            assert answer.status_code != 403, answer.text
        else:
            detail = problem(answer, 403, "scope-required")
            assert f"`{operation.scope}`" in detail
            assert f"only for `{scope}`" in detail


def test_only_who_the_key_acts_for_takes_no_scope() -> None:
    assert [operation.name for operation in SCOPED if operation.scope is None] == ["getMe"]


def test_codes_go_to_keys_that_are_for_codes(
    service: Service, clients: dict[str, httpx.Client], problem: Callable[..., str]
) -> None:
    without, batch = clients["-codes"], service.body("gift", "coffee", value=5)
    before = service.state()
    for path in ("/send/gift", "/quote/gift"):
        assert "`codes`" in problem(without.post(path, json=batch), 403, "scope-required")
    assert service.state() == before
    mailed = without.post("/send/gift", json=service.body("gift", "coffee", value=5, recipients=SAM))
    assert mailed.status_code == 200
    assert without.get(f"/orders/{mailed.json()['reference']}").status_code == 200
    placed = service.client("hr").post("/send/gift", json=batch).json()["reference"]
    readings = service.sql("SELECT count(*) FROM code_readings")
    assert "`codes`" in problem(without.get(f"/orders/{placed}"), 403, "scope-required")
    assert service.sql("SELECT count(*) FROM code_readings") == readings
    assert len(clients["-webhooks"].get(f"/orders/{placed}").json()["codes"]) == 1


def test_a_key_is_used_from_its_networks_alone(service: Service, problem: Callable[..., str]) -> None:
    networks = [ip_network(one) for one in ("198.51.100.0/24", "2001:db8:7::/48")]
    with make_key(service, "office", networks=networks) as client:
        for inside in ("198.51.100.0", "198.51.100.255", "2001:db8:7::", "2001:db8:7:ffff::1", "::ffff:198.51.100.9"):
            assert client.get("/me", headers={"X-Forwarded-For": inside}).status_code == 200, inside
        for outside in ("198.51.99.255", "198.51.101.0", "2001:db8:8::", "::ffff:198.51.101.9"):
            answer = client.get("/me", headers={"X-Forwarded-For": outside})
            assert "may not be used from" in problem(answer, 403, "network-not-allowed")
        before = service.state()
        body = service.body("gift", "coffee", value=5)
        problem(client.post("/send/gift", json=body), 403, "network-not-allowed")  # from this machine
        assert service.state() == before


def test_the_same_request_from_another_address_is_refused(service: Service, problem: Callable[..., str]) -> None:
    """Heads are read once: what was read for one address is not taken for another."""
    with make_key(service, "desk", networks=[ip_network("127.0.0.1")]) as here:
        other = httpx.HTTPTransport(local_address="127.0.0.2")
        with httpx.Client(base_url=service.url, headers=here.headers, transport=other) as elsewhere:
            body = service.body("gift", "coffee", value=5)
            for _ in range(2):
                assert here.get("/me").status_code == 200
                problem(elsewhere.get("/me"), 403, "network-not-allowed")
                assert here.post("/send/gift", json=body).status_code == 200
                problem(elsewhere.post("/send/gift", json=body), 403, "network-not-allowed")


def test_an_order_is_as_large_as_it_may_be_and_no_larger(
    service: Service, limit: Callable[..., None], problem: Callable[..., str]
) -> None:
    limit("GBP", largest=10_00)
    assert service.send("gift", "shop", value=10).status_code == 200
    assert service.send("gift", "shop", value=5, codeQuantity=2).status_code == 200
    before = service.state()
    for path in ("/send/gift", "/quote/gift"):
        body = service.body("gift", "shop", value=10.01)
        detail = problem(service.client("hr").post(path, json=body), 403, "order-limit")
        assert "10.01 GBP" in detail
        assert "10.00 GBP" in detail
        too_many = service.body("gift", "coffee", value=5, codeQuantity=5_000)
        problem(service.client("hr").post(path, json=too_many), 403, "order-limit")
    assert service.state() == before
    assert service.send("gift", "books", account="eur", value=200, country="IE").status_code == 200
    assert service.send("gift", "shop", key="crm", value=11).status_code == 200


def test_a_used_reference_is_told_first_and_the_balance_last(
    service: Service, limit: Callable[..., None], problem: Callable[..., str]
) -> None:
    placed = service.send("gift", "coffee", value=10, externalReference="narrowed-1")
    assert placed.status_code == 200
    limit("GBP", largest=5_00)
    problem(service.send("gift", "coffee", value=10, externalReference="narrowed-1"), 409, "reference-used")
    problem(service.send("gift", "coffee", value=7), 400)
    problem(service.send("gift", "shop", account="team", value=90_000), 403, "order-limit")


def test_a_day_is_spent_to_the_last_penny_and_the_next_begins_anew(
    service: Service, limit: Callable[..., None], problem: Callable[..., str]
) -> None:
    limit("GBP", daily=100_00)
    assert service.send("gift", "shop", value=60).status_code == 200
    assert service.send("gift", "shop", value=39.99).status_code == 200
    before = service.state()
    for path in ("/send/gift", "/quote/gift"):
        body = service.body("gift", "shop", value=0.02)
        detail = problem(service.client("hr").post(path, json=body), 403, "daily-limit")
        assert "99.99 of the 100.00 GBP" in detail
    assert service.state() == before
    assert service.client("hr").post("/quote/gift", json=service.body("gift", "shop", value=0.01)).status_code == 200
    assert service.send("gift", "shop", account="team", value=0.01).status_code == 200
    problem(service.send("gift", "shop", value=0.01), 403, "daily-limit")
    service.sql("UPDATE clock SET ahead_by = interval '1 day'")
    assert service.send("gift", "shop", value=100).status_code == 200
    problem(service.send("gift", "shop", value=0.01), 403, "daily-limit")


def test_a_large_order_counts_too_and_environments_count_apart(
    service: Service, staging: Service, limit: Callable[..., None], problem: Callable[..., str]
) -> None:
    limit("GBP", daily=100_00)
    problem(service.send("gift", "shop", value=0.5, codeQuantity=201), 403, "daily-limit")
    assert service.send("gift", "shop", value=0.5, codeQuantity=200).status_code == 200
    problem(service.send("gift", "shop", value=0.01), 403, "daily-limit")
    assert staging.send("gift", "shop", key="hr-test", account="test-gbp", value=100).status_code == 200
    problem(staging.send("gift", "shop", key="hr-test", account="test-gbp", value=1), 403, "daily-limit")


@pytest.mark.slow
def test_a_day_holds_for_many_at_once_in_two_processes_and_from_two_accounts(
    service: Service, start_service: Callable[..., Service], limit: Callable[..., None]
) -> None:
    other = start_service(like=service)
    limit("GBP", daily=10_00)
    before = service.balance("gbp") + service.balance("team")

    def order(number: int) -> int:
        through = (service, other)[number % 2]
        account = ("gbp", "team")[number // 2 % 2]
        return through.send("gift", "shop", account=account, value=0.5).status_code

    service.client("hr"), other.client("hr")
    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(order, range(80)))
    assert (answers.count(200), answers.count(403)) == (20, 60)
    assert round(before - service.balance("gbp") - service.balance("team"), 2) == 10.0
    assert service.sql("SELECT spent_minor FROM daily_spending")[0]["spent_minor"] == 10_00


def test_invoiced_customers_are_held_to_limits_as_well(
    service: Service, limit: Callable[..., None], problem: Callable[..., str]
) -> None:
    limit("GBP", largest=20_00, daily=30_00, account="initech/initech-bot")

    def order(value: float) -> httpx.Response:
        return service.send("gift", "shop", key="initech", account=None, value=value)

    problem(order(20.01), 403, "order-limit")
    assert order(20).status_code == 200
    problem(order(10.01), 403, "daily-limit")
    assert order(10).status_code == 200


def test_a_quote_tells_of_the_limit_among_all_that_is_wrong(
    service: Service, limit: Callable[..., None], problem: Callable[..., str]
) -> None:
    limit("GBP", largest=5_00)
    body = service.body("gift", "shop", value=10, fromName="x" * 33)
    answer = service.client("hr").post("/quote/gift", json=body)
    problem(answer, 400)
    assert [error["pointer"] for error in answer.json()["errors"]] == ["#/fromName", "#/value"]
    assert "may order 5.00 GBP at once" in answer.json()["errors"][1]["detail"]


def test_without_limits_nothing_is_read_or_kept_for_them(service: Service) -> None:
    assert service.send("gift", "shop", value=1).status_code == 200
    assert service.sql("SELECT count(*) FROM daily_spending")[0][0] == 0


def test_a_key_in_use_is_narrowed_from_its_next_request_on(service: Service, problem: Callable[..., str]) -> None:
    with make_key(service, "changing") as client:
        assert client.get("/products").status_code == 200
        service.sql("UPDATE api_keys SET scopes = ARRAY['send'] WHERE key = 'changing'")
        problem(client.get("/products"), 403, "scope-required")
        service.sql("UPDATE api_keys SET scopes = NULL WHERE key = 'changing'")
        assert client.get("/products").status_code == 200


def test_an_order_that_began_before_midnight_takes_nothing_from_the_new_day(
    service: Service, limit: Callable[..., None], problem: Callable[..., str]
) -> None:
    """A large order has the time at which it began to write its codes. Smaller ones of the new day may be placed before it."""
    midnight = "UPDATE clock SET ahead_by = date_trunc('day', now()) + interval '2 days' - now() + $1"
    limit("GBP", daily=100_00)
    service.sql(midnight, timedelta(minutes=1))
    assert service.send("gift", "shop", value=60).status_code == 200
    service.sql(midnight, timedelta(minutes=-1))
    problem(service.send("gift", "shop", value=41), 403, "daily-limit")
    assert service.send("gift", "shop", value=30).status_code == 200
    service.sql(midnight, timedelta(minutes=1))
    problem(service.send("gift", "shop", value=11), 403, "daily-limit")
    assert service.send("gift", "shop", value=10).status_code == 200
