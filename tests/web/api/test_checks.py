"""Which of several faults of a request is told: 401, 402 for the plan, 403, 400 unreadable, 409, 400, 402 for the balance."""

from __future__ import annotations

import httpx
import pytest

JSON = {"Content-Type": "application/json"}
BROKEN = b'{"externalReference":"taken"'


@pytest.fixture(scope="module")
def taken(service) -> str:
    """The reference `taken` of Acme's, used."""
    assert service.send("gift", "coffee", value=5, externalReference="taken").status_code == 200
    return "taken"


def post(service, key: str | None, raw: bytes, **headers: str) -> httpx.Response:
    return service.client(key).post("/send/gift?unknown=1", content=raw, headers={**JSON, **headers})


def test_the_key_comes_before_anything_in_the_body(service, taken, problem) -> None:
    for raw in (BROKEN, b"", b"x" * 5_000_000):
        problem(post(service, None, raw), 401, "unauthorized")
    problem(post(service, None, b"{}", **{"Content-Type": "text/plain"}), 401, "unauthorized")
    problem(service.client().get("/products?limit=0"), 401, "unauthorized")


def test_the_plan_comes_before_anything_in_the_request(service, problem) -> None:
    for raw in (BROKEN, b"", b"{}"):
        problem(post(service, "tiny", raw), 402, "plan-required")
    problem(service.client("tiny").get("/products?limit=0"), 402, "plan-required")
    problem(service.client("tiny").get("/products/999999"), 402, "plan-required")


def test_an_inactive_service_account_comes_before_what_the_body_says(service, taken, problem) -> None:
    for raw in (BROKEN, b'{"externalReference":"taken"}', b"{}"):
        problem(post(service, "idle", raw), 403, "inactive-service-account")


def test_a_body_that_cannot_be_read_comes_before_a_used_reference(service, taken, problem) -> None:
    assert "not JSON" in problem(post(service, "hr", BROKEN), 400)


def test_a_used_reference_comes_before_the_rest_of_the_body_and_the_balance(service, taken, problem) -> None:
    problem(post(service, "hr", b'{"externalReference":"taken"}'), 409, "reference-used")
    dear = service.send("gift", "shop", account="team", value=100_000, codeQuantity=5000, externalReference=taken)
    problem(dear, 409, "reference-used")


def test_a_wrong_body_comes_before_the_balance(service, problem) -> None:
    dear = service.send("gift", "shop", account="team", value=100_000, codeQuantity=5001)
    problem(dear, 400)
    other_currency = service.send("gift", "shop", account="eur", value=100_000, codeQuantity=5000)
    problem(other_currency, 400)


def test_the_address_and_the_method_come_before_the_key(service, problem) -> None:
    problem(service.client().get("/nothing"), 404, "not-found")
    problem(service.client().put("/me"), 405, "method-not-allowed")
    problem(service.client().get("/products/999999"), 401, "unauthorized")


def test_the_key_headers_come_before_the_key(service, problem) -> None:
    both = {"Authorization": "Bearer nonsense", "X-Api-Key": "nonsense"}
    problem(service.client().get("/me", headers=both), 400)
