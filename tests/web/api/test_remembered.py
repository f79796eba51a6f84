"""An order is prepared for a remembered caller: whatever changed since holds at once all the same, and the answer is that of a caller looked up anew."""

import json
import socket
from datetime import UTC, datetime, timedelta
from http.client import HTTPResponse
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from largesse.customers.authenticator import Authenticator


@pytest.fixture
def lookups(service: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many keys each look-up was about, from now on."""
    counted: list[int] = []
    authenticator = service.app.services.authenticator
    look_up = authenticator._lookups._handle

    async def count(hashes: list[bytes]) -> Any:
        counted.append(len(hashes))
        return await look_up(hashes)

    monkeypatch.setattr(authenticator._lookups, "_handle", count)
    return counted


def send(service: Any, secret: str, body: dict[str, Any] | None = None, **more: Any) -> httpx.Response:
    """Sends an order in one piece, as its caller is looked up before a body that is still on its way is read."""
    content = json.dumps(service.body("gift", "coffee", value=5, **more) if body is None else body).encode()
    address = urlsplit(service.url)
    with socket.create_connection((address.hostname, address.port), timeout=30) as caller:
        caller.sendall(
            f"POST /send/gift HTTP/1.1\r\nHost: {address.netloc}\r\nX-Api-Key: {secret}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n".encode()
            + content
        )
        answer = HTTPResponse(caller)
        answer.begin()
        return httpx.Response(answer.status, headers=answer.getheaders(), content=answer.read())


def test_the_second_order_of_a_key_takes_no_look_up(service: Any, lookups: list[int]) -> None:
    _, secret = service.new_key()
    assert [send(service, secret).status_code for _ in range(3)] == [200] * 3
    assert lookups == [1]


def test_a_caller_is_remembered_for_a_minute(service: Any, lookups: list[int], monkeypatch: Any) -> None:
    _, secret = service.new_key()
    monkeypatch.setattr("largesse.customers.authenticator._REMEMBERED_S", 0.0)
    assert [send(service, secret).status_code for _ in range(2)] == [200] * 2
    assert lookups == [1, 1]


@pytest.mark.parametrize("member", ["sendAt", "quote"])
def test_what_goes_by_the_clock_is_looked_up(service: Any, lookups: list[int], member: str) -> None:
    _, secret = service.new_key()
    send(service, secret)
    soon = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    recipients = [{"email": "sam@example.com"}]
    answer = send(service, secret, recipients=recipients, **{member: soon if member == "sendAt" else "no quote"})
    assert answer.status_code == (200 if member == "sendAt" else 400)
    assert lookups == [1, 1]


def test_only_orders_of_a_product_are(service: Any, lookups: list[int]) -> None:
    _, secret = service.new_key()
    send(service, secret)
    headers = {"X-Api-Key": secret}
    for path, body in (
        ("/send/collection", service.body("collection", "treats", value=10)),
        ("/send/template", service.body("template", "welcome")),
        ("/quote/gift", service.body("gift", "coffee", value=5)),
    ):
        assert httpx.post(service.url + path, json=body, headers=headers).status_code == 200
    assert httpx.get(f"{service.url}/me", headers=headers).status_code == 200
    assert lookups == [1] * 5


# What is changed, how it is undone, and the answer from then on.
CHANGES = {
    "switched off": ("service_accounts SET active = false WHERE key = 'crm'", "active = true", 403, "inactive-service-account"),
    "starter": ("customers SET plan = 'starter' WHERE key = 'acme'", "plan = 'enterprise'", 402, "plan-required"),
    "invoiced": ("customers SET funding = 'invoiced' WHERE key = 'acme'", "funding = 'balance'", 400, "invalid-request"),
    "a limit": (
        """service_accounts SET limits = '{"GBP": {"largest_order_minor": 100}}' WHERE key = 'crm'""",
        "limits = NULL",
        403,
        "order-limit",
    ),
    "elsewhere": ("api_keys SET networks = '{203.0.113.0/24}' WHERE id = $key", "networks = NULL", 403, "network-not-allowed"),
    "only reads": ("api_keys SET scopes = '{read}' WHERE id = $key", "scopes = NULL", 403, "scope-required"),
    "no codes": ("api_keys SET scopes = '{send}' WHERE id = $key", "scopes = NULL", 403, "scope-required"),
    "retired": ("products SET active = false WHERE key = 'coffee'", "active = true", 400, "invalid-request"),
    "dearer": ("products SET denominations_minor = '{700}' WHERE key = 'coffee'", "denominations_minor = '{500,1000,2500}'", 400, "invalid-request"),
    "closed": ("accounts SET closed_at = now() WHERE key = 'gbp'", "closed_at = NULL", 400, "invalid-request"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("is_wrong", [False, True])
def test_a_change_holds_at_once(service: Any, problem: Any, name: str, is_wrong: bool) -> None:
    """Also for a request that is wrong in itself: each is answered as if its caller was never remembered."""
    change, undo, status, slug = CHANGES[name]
    key_id, secret = service.new_key("crm")
    change = change.replace("$key", str(key_id))
    table, _, where = change.partition(" WHERE ")
    more = {"externalReference": "x" * 500} if is_wrong else {}
    assert send(service, secret).status_code == 200
    service.sql(f"UPDATE {change}")
    try:
        before = service.state()
        answer = send(service, secret, **more)
        service.app.services.authenticator._found._entries.clear()
        again = send(service, secret, **more)
        assert service.state() == before
        assert (answer.status_code, answer.content) == (again.status_code, again.content)
        if not is_wrong:
            problem(answer, status, slug)
    finally:
        service.sql(f"UPDATE {table.partition(' SET ')[0]} SET {undo} WHERE {where}")
    assert send(service, secret).status_code == 200


@pytest.mark.parametrize("body", [None, {}, {"productId": "one"}])
def test_a_deleted_key_is_not_known(service: Any, problem: Any, body: dict[str, Any] | None) -> None:
    key_id, secret = service.new_key()
    assert send(service, secret).status_code == 200
    service.delete_key(key_id)
    before = service.state()
    assert problem(send(service, secret, body), 401, "unauthorized") == "The API key is not known here."
    assert problem(send(service, secret, body), 401, "unauthorized") == "The API key is not known here."
    assert service.state() == before


def test_a_new_price_holds_at_once(service: Any) -> None:
    _, secret = service.new_key()
    shop = service.ids["products"]["hamper"]

    def cost() -> float:
        body = {**service.body("gift", "hamper"), "codeQuantity": 1}
        answer = send(service, secret, body)
        assert answer.status_code == 200, answer.text
        total: float = answer.json()["totalCost"]
        return total

    before = cost()
    service.sql("UPDATE products SET cost_minor = cost_minor + 100 WHERE id = $1", shop)
    try:
        assert cost() > before
    finally:
        service.sql("UPDATE products SET cost_minor = cost_minor - 100 WHERE id = $1", shop)
    assert cost() == before


def test_one_look_up_after_an_edit_of_the_catalogue_is_enough_for_all(service: Any, lookups: list[int]) -> None:
    keys = [service.new_key()[1] for _ in range(4)]
    for secret in keys:
        send(service, secret)
    lookups.clear()
    service.sql("UPDATE products SET name = name || '.' WHERE key = 'cinema'")
    assert [send(service, secret).status_code for secret in keys] == [200] * 4
    assert lookups == [1]


def test_a_used_reference_and_a_low_balance_take_no_look_up(service: Any, problem: Any, lookups: list[int]) -> None:
    _, secret = service.new_key()
    assert send(service, secret, externalReference="once").status_code == 200
    problem(send(service, secret, externalReference="once"), 409, "reference-used")
    problem(
        send(service, secret, service.body("gift", "coffee", account="team", value=25, codeQuantity=10)),
        402,
        "insufficient-balance",
    )
    assert lookups == [1]


def test_unknown_members_are_named_once(service: Any) -> None:
    _, secret = service.new_key()
    for _ in range(3):
        assert send(service, secret, emial="x").headers["X-Ignored"] == "emial"
    send(service, secret, externalReference="twice")
    assert send(service, secret, externalReference="twice", emial="x").headers["X-Ignored"] == "emial"


def test_a_request_counts_once_for_the_limit_of_its_key(service: Any, start_service: Any) -> None:
    limited = start_service(like=service, rate_limit=6)
    _, secret = service.new_key()
    answers = []
    for at in range(9):
        service.sql("UPDATE products SET name = name || '.' WHERE key = 'cinema'")  # whoever is remembered is stale
        answers.append(send(limited, secret, **({"externalReference": "x" * 500} if at % 2 else {})).status_code)
    assert answers == [200, 400, 200, 400, 200, 400, 429, 429, 429]


def test_nobody_else_is_recalled(service: Any) -> None:
    authenticator: Authenticator = service.app.services.authenticator
    assert authenticator.recall(bytes(32)) is None
    assert authenticator.recall(b"") is None
