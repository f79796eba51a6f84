"""Ids of orders: refused orders spend none, and their end is told of in time and comes without anything half placed."""

import time
from typing import Any

import httpx
import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs
from tests.web.api.conftest import Service

from largesse.base import clock
from largesse.orders.ids import FEW_IDS, LAST_ID, IdWatch

WORLD = """
customers:
  - key: acme
    name: Acme Ltd
    plan: pro
    funding: balance
    service_accounts: [{key: bot, name: Bot}]
    api_keys: [{key: hr, service_account: bot, environment: production}]
    funding_accounts:
      - {key: gbp, name: Float, master: true, currency: GBP, balance: 100000.00}
      - {key: poor, name: Poor, currency: GBP, balance: 1.00}
products:
  - {key: coffee, name: Coffee, digital: true, currency: GBP, countries: [GB], denominations: [5, 10]}
"""
LARGE = 101


@pytest.fixture
def service(own_service: Service) -> Service:
    """A service with a new database for each test: what has spent its ids has none for others."""
    return own_service


def last_id(service: Any) -> int:
    return int(service.sql("SELECT last_value FROM orders_id_seq")[0][0])


def spend_all_but(service: Any, left: int) -> None:
    service.sql("SELECT setval('orders_id_seq', $1)", LAST_ID - left)


def health(service: Any) -> tuple[int, dict[str, Any]]:
    answer = httpx.get(f"{service.url}/health")
    return answer.status_code, answer.json()


@pytest.mark.parametrize("codes", [1, LARGE])
def test_refused_orders_spend_no_ids(service: Any, codes: int) -> None:
    reference = f"used-{codes}"
    assert service.send("gift", "coffee", value=5, externalReference=reference).status_code == 200
    before = last_id(service)
    for _ in range(10):
        refused = {402: {"account": "poor"}, 409: {"externalReference": reference}, 400: {"accountId": 999}}
        for status, members in refused.items():
            answer = service.send("gift", "coffee", value=5, codeQuantity=codes, **members)
            assert answer.status_code == status
    assert last_id(service) == before
    assert service.send("gift", "coffee", value=5).status_code == 200
    (newest,) = service.client("hr").get("/orders?limit=1").json()
    assert newest["id"] == before + 1


def test_ids_that_run_short_are_told_of(service: Any) -> None:
    assert health(service)[1].keys() == {"status", "version"}
    spend_all_but(service, FEW_IDS)
    assert health(service) == (200, health(service)[1] | {"status": "pass"})
    spend_all_but(service, FEW_IDS - 1)
    status, told = health(service)
    assert (status, told["status"]) == (200, "warn")
    assert told["version"]
    assert told["notes"] == ["Ids for 214,748,363 more orders are left, fewer than a tenth."]
    assert service.send("gift", "coffee", value=5).status_code == 200


def test_a_read_only_database_is_told_of(service: Any, problem: Any) -> None:
    ((name,),) = service.sql("SELECT quote_ident(current_database())")
    service.sql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    service.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    deadline = time.monotonic() + 10
    while (told := health(service))[0] == 503 and time.monotonic() < deadline:  # until it has connected again
        pass
    assert told[0] == 200
    assert told[1]["status"] == "warn"
    assert "read-only" in told[1]["notes"][0]
    problem(service.send("gift", "coffee", value=5), 503, "unavailable")
    assert service.client("hr").get("/orders").status_code == 200


def test_at_the_end_of_ids_orders_are_refused_whole(service: Any, problem: Any) -> None:
    spend_all_but(service, 2)
    for _ in range(2):
        assert service.send("gift", "coffee", value=5, codeQuantity=LARGE).status_code == 200
    assert service.client("hr").get("/orders?limit=1").json()[0]["id"] == LAST_ID
    before = service.state()
    for codes in (1, LARGE):
        answer = service.send("gift", "coffee", value=5, codeQuantity=codes)
        assert "used up" in problem(answer, 503, "unavailable")
        assert int(answer.headers["retry-after"]) >= 60
    assert service.send("gift", "coffee", value=5, account="poor").status_code == 402
    assert service.state() == before
    status, told = health(service)
    assert (status, told["status"]) == (503, "fail")
    assert "used up" in told["notes"][0]
    assert service.client("hr").get("/orders").status_code == 200


async def test_few_ids_are_warned_of_now_and_then() -> None:
    watch = IdWatch()
    with capture_logs() as logs:
        watch.note(FEW_IDS)
        assert not logs
        for left in (FEW_IDS - 1, FEW_IDS - 2, 0):
            watch.note(left)
            assert REGISTRY.get_sample_value("largesse_order_ids_left") == left
    assert [(entry["event"], entry["log_level"], entry["left"]) for entry in logs] == [
        ("order_ids_few", "warning", FEW_IDS - 1)
    ]


async def test_a_warning_comes_again_after_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = IdWatch()
    with capture_logs() as logs:
        for at_s in (100.0, 3699.9, 3700.0, 3700.1, 7299.9, 7300.0):
            monkeypatch.setattr(clock, "passed_s", lambda now_s=at_s: now_s)
            watch.note(int(at_s))
    assert [entry["left"] for entry in logs] == [100, 3700, 7300]
