"""Each refused request is one line in the log, by the request id that the caller was told; accepted ones are none."""

from typing import Any

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from largesse.customers.principal import Principal
from largesse.web.kit.refusal_log import ACTS_FOR, RefusalLog

SECRET = "SECRET-4711"
OF_ONE, OF_ALL_UNKNOWN = 120, 1_200  # a minute


def lines(logged: list[Any]) -> list[Any]:
    return [line for line in logged if line["event"] == "request_refused"]


def refused(service: Any, method: str, path: str, key: str | None = "hr", **more: Any) -> dict[str, Any]:
    """The one line of a request that is refused; nothing in it is secret."""
    with capture_logs() as logged:
        answer = service.client(key).request(method, path, **more)
    assert answer.status_code >= 400, answer.text
    (line,) = lines(logged)
    assert SECRET not in str(line)
    assert line["request_id"] == answer.headers["X-Request-Id"]
    assert (line["method"], line["status"], line["address"]) == (method, answer.status_code, "127.0.0.1")
    assert line["duration_ms"] >= 0
    return dict(line)


@pytest.mark.parametrize(
    ("method", "path", "key", "route", "status", "problem"),
    [
        ("POST", "/send/gift", "hr", "/send/gift", 400, "invalid-request"),
        ("POST", f"/send/gift?x={SECRET}", None, "/send/gift", 401, "unauthorized"),
        ("GET", "/me", "tiny", "/me", 402, "plan-required"),
        ("POST", "/send/gift", "idle", "/send/gift", 403, "inactive-service-account"),
        ("GET", f"/orders/{SECRET}", "hr", "/orders/{reference}", 404, "not-found"),
        ("PUT", f"/orders/{SECRET}", "hr", "/orders/{reference}", 405, "method-not-allowed"),
        ("GET", f"/nothing/{SECRET}", "hr", "none", 404, "not-found"),
        ("PUT", f"/claim/{SECRET}", None, "/claim/{token:str}", 405, "method-not-allowed"),
        ("GET", f"/claim/gift/{SECRET}", None, "/claim/gift/{handle:str}", 403, None),
        ("POST", "/app/people", None, "/app/people", 401, None),
    ],
)
def test_a_refused_request_is_one_line(
    service, method: str, path: str, key: str | None, route: str, status: int, problem: str | None
) -> None:
    line = refused(service, method, path, key, json={"value": SECRET} if method == "POST" else None)
    assert (line["route"], line["status"], line["log_level"]) == (route, status, "info")
    assert problem is None or line["problem"] == problem
    is_known = key is not None and route.startswith(("/send", "/me", "/orders")) and status != 405
    assert ("key_id" in line, "customer_id" in line) == (is_known, is_known)


def test_of_a_key_the_line_names_key_and_customer(service) -> None:
    line = refused(service, "POST", "/send/gift", "globex", json={})
    assert line["customer_id"] == service.ids["customers"]["globex"]
    assert (
        line["key_id"]
        == service.sql(
            "SELECT k.id FROM api_keys k WHERE k.customer_id = $1 AND k.environment = 'production'", line["customer_id"]
        )[0][0]
    )


def test_what_is_accepted_is_no_line(service) -> None:
    with capture_logs() as logged:
        assert service.send("gift", "coffee", value=5).status_code == 200
        assert service.client().get("/docs").status_code == 200
    assert logged == []


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def flood(log: RefusalLog, requests: int, **scope: Any) -> list[Any]:
    """The lines of so many requests, each of a network of its own where there is no `client`."""
    with capture_logs() as logged:
        for at in range(requests):
            client = (f"10.{at >> 16}.{at >> 8 & 255}.{at & 255}", 1)
            log.refused({"method": "GET", "client": client, **scope}, b"r", "/me", 401, 0.0)
    return logged


def not_logged() -> float:
    return REGISTRY.get_sample_value("largesse_refusals_not_logged_total") or 0.0


def test_floods_are_bounded_and_counted() -> None:
    clock = Clock()
    log = RefusalLog(clock)
    one = {"client": ("192.0.2.1", 1)}
    before = not_logged()
    assert len(flood(log, OF_ONE + 30, **one)) == OF_ONE
    assert not_logged() == before + 30
    assert len(flood(log, 2 * OF_ALL_UNKNOWN)) == OF_ALL_UNKNOWN - OF_ONE
    # A customer's lines are its own, and say how many others there were.
    known = Principal(7, "production", 3, "Acme", "pro", "balance", 1, "bot", True)
    (line,) = flood(log, 1, **{ACTS_FOR: known})
    assert (line["customer_id"], line["key_id"]) == (3, 7)
    assert line["not_logged_before"] == 2 * OF_ALL_UNKNOWN - (OF_ALL_UNKNOWN - OF_ONE)
    assert len(flood(log, OF_ONE + 30, **{ACTS_FOR: known})) == OF_ONE - 1
    clock.now_s = 60.0
    assert len(flood(log, 2 * OF_ALL_UNKNOWN)) == OF_ALL_UNKNOWN
