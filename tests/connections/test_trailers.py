"""What follows a body is no header, whatever it calls itself."""

import httpx
import pytest
from tests.connections.conftest import chunked, get

from largesse.base.throttle import network_of

FORM = "Content-Type: application/x-www-form-urlencoded"
JSON = "Content-Type: application/json"
# As it reaches the service: at once, or its trailers later than the rest.
arrival = pytest.mark.parametrize("split", [False, True], ids=["whole", "trailers-later"])


def send(connection, data: bytes, *, split: bool):
    if not split:
        return connection.ask(data)
    at = data.rindex(b"\r\n0\r\n") + 5
    connection.send(data[:at])
    return connection.ask(data[at:])


@arrival
@pytest.mark.parametrize("name", ["Authorization: Bearer {}", "X-Api-Key: {}", "x-api-key: {}"])
def test_a_key_in_a_trailer_is_none(service, wire, name: str, split: bool) -> None:
    trailer = name.format(service.keys["hr"])
    body = b'{"targetUrl":"https://example.com/x","event":"order.created"}'
    before = service.sql("SELECT count(*) FROM webhook_subscriptions")[0][0]
    answer = send(wire(service.url), chunked("/webhooks", body, JSON, trailers=(trailer,)), split=split)
    assert (answer.status, answer.json["type"]) == (401, "/problems/unauthorized")
    assert service.sql("SELECT count(*) FROM webhook_subscriptions")[0][0] == before


@arrival
def test_a_key_in_a_trailer_changes_nothing_beside_one_in_the_head(service, wire, split: bool) -> None:
    head, trailer = (f"X-Api-Key: {service.keys[name]}" for name in ("hr", "globex"))
    answer = send(wire(service.url), chunked("/send/gift", b"{}", JSON, head, trailers=(trailer,)), split=split)
    assert (answer.status, answer.json["type"]) == (400, "/problems/invalid-request")
    assert "productId" in answer.json["detail"]


@arrival
def test_an_address_in_a_trailer_is_not_the_callers(service, wire, split: bool) -> None:
    proxys, forged = ("198.51.100.7", "203.0.113.9") if split else ("198.51.100.8", "203.0.113.10")
    lookup = service.app.services.vault.networks.lookup
    data = chunked(
        "/claim",
        b"code=0000-0000-0000-0000-0&pin=000000",
        FORM,
        f"X-Forwarded-For: {proxys}",
        trailers=(f"X-Forwarded-For: {forged}",),
    )
    assert send(wire(service.url), data, split=split).status == 403
    noted = {row["address"] for row in service.sql("SELECT address FROM claim_addresses")}
    assert lookup(b"address/" + network_of(proxys)) in noted
    assert lookup(b"address/" + network_of(forged)) not in noted


def test_trailers_are_no_part_of_the_next_request(service, wire) -> None:
    key = f"X-Api-Key: {service.keys['hr']}"
    first = chunked("/send/gift", b"{}", JSON, trailers=(key,))
    connection = wire(service.url)
    connection.send(first + get("/me") + get("/me", key) + first + get("/me", key))
    answers = [connection.answer() for _ in range(5)]
    assert [answer and answer.status for answer in answers] == [401, 401, 200, 401, 200]


def test_a_body_nobody_reads_has_no_trailers_either(service, wire) -> None:
    data = chunked("/me", b"x", trailers=(f"X-Api-Key: {service.keys['hr']}",)).replace(b"POST", b"GET", 1)
    connection = wire(service.url)
    assert connection.ask(data).status == 401
    assert connection.ask(get("/me", f"X-Api-Key: {service.keys['hr']}")).status == 200


def test_a_chunked_order_with_trailers_is_placed(service, wire) -> None:
    body = httpx.Request("POST", "http://x", json=service.body("gift", "coffee", value=5)).content
    data = chunked("/send/gift", body, JSON, f"X-Api-Key: {service.keys['hr']}", trailers=("X-Checksum: 1",))
    assert wire(service.url).ask(data).status == 200
