"""Orders, readings of codes, cancellations and resends keep which key acted, and from which address."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from tests.web.api.test_keys_meanwhile import SAM, mark_mailed

ORDER = """
    SELECT k.key, s.key, host(o.address) FROM orders o
    LEFT JOIN api_keys k ON k.id = o.api_key_id LEFT JOIN service_accounts s ON s.id = o.service_account_id
    WHERE reference = $1
"""
READINGS = """
    SELECT k.key, host(r.address) FROM code_readings r JOIN api_keys k ON k.id = r.api_key_id
    JOIN orders o ON o.customer_id = r.customer_id AND o.id = r.order_id WHERE reference = $1 ORDER BY r.id
"""
ACTS = """
    SELECT act, k.key, a.service_account_id = k.service_account_id, host(a.address), m.email
    FROM order_acts a JOIN api_keys k ON k.id = a.api_key_id JOIN orders o ON o.customer_id = a.customer_id AND o.id = a.order_id
    LEFT JOIN messages m ON m.id = a.message_id WHERE reference = $1 ORDER BY a.id
"""


def kept(service: Any, query: str, reference: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in service.sql(query, reference)]


@pytest.mark.parametrize("codes", [1, 101])
@pytest.mark.parametrize(
    ("forwarded", "address"),
    [
        (None, "127.0.0.1"),
        ("203.0.113.9", "203.0.113.9"),
        ("2001:db8::7", "2001:db8::7"),
        ("unknown", None),
        ("'; SELECT", None),
    ],
)
def test_an_order(service, codes: int, forwarded: str | None, address: str | None) -> None:
    """Behind a trusted proxy the address is the caller's; an order is placed even where the proxy tells nonsense."""
    headers = {} if forwarded is None else {"X-Forwarded-For": forwarded}
    body = service.body("gift", "coffee", value=5, codeQuantity=codes)
    sent = service.client("crm").post("/send/gift", json=body, headers=headers)
    assert sent.status_code == 200, sent.text
    assert kept(service, ORDER, sent.json()["reference"]) == [("crm", "crm", address)]


def test_each_order_of_a_batch_keeps_its_own(service) -> None:
    """Two keys of two service accounts, from two addresses, at the same time."""
    body = service.body("gift", "shop", value=0.01)
    clients = {key: service.client(key) for key in ("hr", "crm")}

    def send(key: str, address: str) -> str:
        answer = clients[key].post("/send/gift", json=body, headers={"X-Forwarded-For": address})
        reference: str = answer.json()["reference"]
        return reference

    with ThreadPoolExecutor(8) as pool:
        mine = [pool.submit(send, "hr", f"203.0.113.{n}") for n in range(20)]
        theirs = [pool.submit(send, "crm", f"198.51.100.{n}") for n in range(20)]
        for n in range(20):
            assert kept(service, ORDER, mine[n].result()) == [("hr", "hr-bot", f"203.0.113.{n}")]
            assert kept(service, ORDER, theirs[n].result()) == [("crm", "crm", f"198.51.100.{n}")]


def test_a_reading_of_codes(service) -> None:
    reference = service.send("gift", "coffee", value=5).json()["reference"]
    client = service.client("hr")
    assert kept(service, READINGS, reference) == []
    client.get(f"/orders/{reference}", headers={"X-Forwarded-For": "203.0.113.9"})
    client.get(f"/orders/{reference}")
    client.get(f"/orders/{reference}/deliveries")
    service.client("crm").get(f"/orders/{reference}")
    assert kept(service, READINGS, reference) == [("hr", "203.0.113.9"), ("hr", "127.0.0.1")]


def test_a_cancellation_that_voided_something(service) -> None:
    reference = service.send("gift", "coffee", value=5).json()["reference"]
    for address in ("203.0.113.9", "203.0.113.10"):
        headers = {"X-Forwarded-For": address}
        answer = service.client("hr").post(f"/orders/{reference}/cancel", headers=headers)
        assert answer.json()["cancelledCount"] == 1
    assert kept(service, ACTS, reference) == [("cancel", "hr", True, "203.0.113.9", None)]


def test_a_resend(service, problem) -> None:
    reference = service.send("gift", "coffee", value=5, recipients=[{"email": SAM}]).json()["reference"]
    path = f"/orders/{reference}/resend"
    problem(service.client("hr").post(path, json={"email": SAM}), 400)
    mark_mailed(service, reference)
    headers = {"X-Forwarded-For": "203.0.113.9"}
    assert service.client("hr").post(path, json={"email": SAM}, headers=headers).status_code == 202
    assert kept(service, ACTS, reference) == [("resend", "hr", True, "203.0.113.9", SAM)]


def test_a_repeated_resend_sends_once(service, problem) -> None:
    reference = service.send("gift", "coffee", value=5, recipients=[{"email": SAM}]).json()["reference"]
    path, body = f"/orders/{reference}/resend", {"email": SAM, "resends": 0}
    mark_mailed(service, reference)
    answers = [service.client("hr").post(path, json=body) for _ in range(2)]
    service.sql("UPDATE messages SET state = 'sent', finished_at = now() WHERE edition = 1 AND email = $1", SAM)
    answers.append(service.client("hr").post(path, json=body))
    assert [(one.status_code, one.json()["resends"], one.json()["state"]) for one in answers] == [
        (202, 1, "pending"),
        (202, 1, "pending"),
        (202, 1, "sent"),
    ]
    assert answers[0].json() == answers[1].json()
    assert len(kept(service, ACTS, reference)) == 1
    assert service.client("hr").post(path, json={"email": SAM, "resends": 1}).json()["resends"] == 2
    problem(service.client("hr").post(path, json=body), 400)  # sent again twice: not by this request
    problem(service.client("hr").post(path, json={"email": SAM, "resends": -1}), 400)


def test_a_deleted_key_keeps_its_name_in_what_it_did(service) -> None:
    key_id, secret = service.new_key("crm", "short-lived")
    headers = {"X-Api-Key": secret}
    body = service.body("gift", "coffee", value=5)
    reference = httpx.post(f"{service.url}/send/gift", json=body, headers=headers).json()["reference"]
    httpx.get(f"{service.url}/orders/{reference}", headers=headers)
    httpx.post(f"{service.url}/orders/{reference}/cancel", headers=headers)
    service.delete_key(key_id)
    assert kept(service, ORDER, reference) == [("short-lived", "crm", "127.0.0.1")]
    assert kept(service, READINGS, reference) == [("short-lived", "127.0.0.1")]
    assert kept(service, ACTS, reference) == [("cancel", "short-lived", True, "127.0.0.1", None)]
