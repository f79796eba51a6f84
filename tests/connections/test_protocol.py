"""What is no HTTP, or too much of it, gets a problem, and after the answers that are owed."""

import select
import socket
import time
from collections.abc import Callable

import httpx
import pytest
from tests.connections.conftest import Answer, Wire, chunked, get

from largesse.connections.manager import OPEN
from largesse.connections.protocol import CHUNK_BYTES, FREE_CHUNKS, MAX_PIPELINED, MAX_TRAILERS, REFUSES_CHUNKS_AFTER_S
from largesse.web.kit.body import MAX_BODY_BYTES
from largesse.web.kit.headers import MAX_HEADER_BYTES

JSON = "Content-Type: application/json"


def check(answer: Answer | None, status: int, slug: str) -> None:
    assert answer is not None
    assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json")
    assert set(answer.json) == {"type", "title", "status", "detail", "instance"}
    assert (answer.json["type"], answer.json["status"]) == (f"/problems/{slug}", status)
    assert answer.headers["connection"] == "close"
    assert answer.headers["x-request-id"]
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "data",
    [
        b"GARBAGE\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS to a port that speaks none
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /me HTTP/1.1\r\nHost localhost\r\n\r\n",
        b"GET /me HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
        b"POST /me HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET http://[::1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
def test_what_is_no_http(service, wire, data: bytes) -> None:
    connection = wire(service.url)
    check(connection.ask(data), 400, "invalid-request")
    assert connection.answer() is None
    again = wire(service.url)
    assert again.ask(get("/health")).status == 200
    check(again.ask(data), 400, "invalid-request")


def test_a_broken_chunk(service, wire) -> None:
    data = chunked("/send/gift", b"{}", JSON, f"X-Api-Key: {service.keys['hr']}")
    connection = wire(service.url)
    check(connection.ask(data.replace(b"\r\n2\r\n", b"\r\nzz\r\n")), 400, "invalid-request")
    assert connection.answer() is None


@pytest.mark.parametrize(
    ("chunks", "size", "status"),
    [
        (1_014, 1, 200),  # and the last one, which is empty: 1,000 + 1,014 / 64
        (1_015, 1, 400),
        (20_000, 1, 400),
        (200_000, 1, 400),  # while the request waits for its body, and would read on
        (3 * FREE_CHUNKS, CHUNK_BYTES, 200),
        (3 * FREE_CHUNKS, CHUNK_BYTES // 2, 400),
    ],
)
def test_many_small_chunks_are_refused(service, wire, chunks: int, size: int, status: int) -> None:
    body = httpx.Request("POST", "http://x", json=service.body("gift", "coffee", value=5)).content.ljust(chunks * size)
    connection = wire(service.url)
    began = time.monotonic()
    answer = connection.ask(chunked("/send/gift", body, JSON, f"X-Api-Key: {service.keys['hr']}", size=size))
    assert answer.status == status, answer.body
    if status == 400:
        assert b"too many small chunks" in answer.body
        assert time.monotonic() - began > 0.9 * REFUSES_CHUNKS_AFTER_S, "nobody can send the next at once"
        assert connection.answer() is None


@pytest.mark.parametrize(("trailers", "status"), [(MAX_TRAILERS, 200), (MAX_TRAILERS + 1, 400)])
def test_many_trailers_are_refused(service, wire, trailers: int, status: int) -> None:
    body = httpx.Request("POST", "http://x", json=service.body("gift", "coffee", value=5)).content
    connection = wire(service.url)
    key = f"X-Api-Key: {service.keys['hr']}"
    answer = connection.ask(chunked("/send/gift", body, JSON, key, trailers=("a: b",) * trailers))
    assert answer.status == status
    assert (b"more than 100 trailers" in answer.body) == (status == 400)


def test_as_many_requests_wait_as_may_and_the_rest_is_refused(service, wire) -> None:
    """One is at work, and a hundred wait. All of them are answered."""
    connection = wire(service.url)
    waiting = get("/openapi.json") + get("/problems") * MAX_PIPELINED
    connection.send(waiting + get("/problems") * 20_000)
    answers = 0
    while (answer := connection.answer()) is not None:
        assert answer.status == 200
        answers += 1
    assert answers == 1 + MAX_PIPELINED
    again = wire(service.url)
    again.send(waiting)
    assert [again.answer().status for _ in range(1 + MAX_PIPELINED)] == [200] * (1 + MAX_PIPELINED)
    assert again.ask(get("/problems")).status == 200


def test_a_refused_upload_in_small_chunks_still_gets_its_answer(service, wire) -> None:
    connection = wire(service.url)
    data = chunked("/send/gift", b" " * 200_000, JSON, "X-Api-Key: lgs_live_wrong", size=1)
    connection.send(data[:200])
    answer = connection.answer()
    assert answer is not None
    assert answer.status == 401
    connection.send(data[200:])
    assert not select.select([connection.socket], [], [], 0.1)[0], "it is not reset"


@pytest.mark.parametrize("is_chunked", [False, True])
def test_what_is_broken_waits_for_the_answers_before_it(service, wire, is_chunked: bool) -> None:
    key = f"X-Api-Key: {service.keys['hr']}"
    chunk = chunked("/send/gift", b"{}", JSON, key).replace(b"\r\n2\r\n", b"\r\nzz\r\n")
    connection = wire(service.url)
    connection.send(get("/me", key) + get("/products", key) + (chunk if is_chunked else b"GARBAGE\r\n\r\n"))
    answers = [connection.answer() for _ in range(3)]
    assert [answer and answer.status for answer in answers] == [200, 200, None]
    assert is_chunked or answers[1].headers.get("connection") == "close"


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (b"GET /me HTTP/1.1\r\nHost: localhost\r\nX-Padding: ", b"x" * 4096),
        (b"GET /me HTTP/1.1\r\nHost: localhost\r\n", b"X: 1\r\n" * 512),
        (b"GET /me?", b"x" * 4096),
    ],
)
def test_a_head_without_end(service, wire, start: bytes, piece: bytes) -> None:
    connection = wire(service.url)
    connection.send(start)
    sent = 0
    while not select.select([connection.socket], [], [], 0.001)[0]:
        connection.send(piece)
        sent += len(piece)
        assert sent < 100 * MAX_HEADER_BYTES
    assert sent > 2 * MAX_HEADER_BYTES
    check(connection.answer(), 431, "headers-too-large")
    assert connection.answer() is None


def test_trailers_without_end(service, wire) -> None:
    connection = wire(service.url)
    connection.send(
        chunked("/send/gift", b"{}", JSON, f"X-Api-Key: {service.keys['hr']}").removesuffix(b"\r\n") + b"X: "
    )
    sent = 0
    while not select.select([connection.socket], [], [], 0)[0]:
        connection.send(b"x" * (1 << 16))
        sent += 1 << 16
        assert sent < 40 * MAX_BODY_BYTES
    assert sent > MAX_BODY_BYTES
    check(connection.answer(), 413, "too-large")


@pytest.mark.parametrize(
    "start", [b"GARBAGE\r\n\r\n", b"POST /send/gift HTTP/1.1\r\nHost: localhost\r\nContent-Length: 12000000\r\n\r\n"]
)
def test_what_no_request_waits_for_is_read_slowly(
    own_service, wire, monkeypatch: pytest.MonkeyPatch, start: bytes
) -> None:
    monkeypatch.setattr("largesse.connections.manager._DISCARD_EVERY_S", 1_000.0)
    connection = wire(own_service.url)
    connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
    answer = connection.ask(start)
    assert answer.status == (400 if start.startswith(b"G") else 401)
    sent = 0
    while sent < MAX_BODY_BYTES and select.select([], [connection.socket], [], 0.5)[1]:
        sent += connection.socket.send(b"x" * (1 << 14))
    assert sent < MAX_BODY_BYTES
    assert wire(own_service.url).ask(get("/health")).status == 200
    leave_none_put_off(own_service.url, wire, monkeypatch)


def leave_none_put_off(url: str, wire: Callable[..., Wire], monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends those that are read on after the time that a test has set: they would still be there when the service ends."""
    monkeypatch.setattr("largesse.connections.manager.MAX_DISCARDING", 0)
    connection, other = wire(url), wire(url)
    assert connection.ask(b"GARBAGE\r\n\r\n").status == 400
    connection.send(b"x")
    for _ in range(2):  # they are closed between them
        assert other.ask(get("/health")).status == 200


def test_few_connections_are_read_on_when_no_request_waits_for_it(
    own_service, wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("largesse.connections.manager._DISCARD_EVERY_S", 1_000.0)
    other = wire(own_service.url)

    def refuse_one(most: int) -> float:
        """Returns how many connections are open after one more that goes on sending."""
        monkeypatch.setattr("largesse.connections.manager.MAX_DISCARDING", most)
        connection = wire(own_service.url)
        assert connection.ask(b"GARBAGE\r\n\r\n").status == 400
        connection.send(b"x")
        for _ in range(2):  # the one that gives way is closed between them
            assert other.ask(get("/health")).status == 200
        return OPEN._value.get()

    before = [refuse_one(2) for _ in range(3)][-1]  # the first gave way
    assert [refuse_one(4) - before for _ in range(4)] == [1, 2, 2, 2]
    leave_none_put_off(own_service.url, wire, monkeypatch)


@pytest.mark.parametrize("upgrade", ["h2c", "websocket"])
def test_an_upgrade_is_not_made(service, wire, upgrade: str) -> None:
    connection = wire(service.url)
    asking = get("/health", f"Upgrade: {upgrade}", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAMAAABk")
    for data in (asking, get("/health"), asking, get("/nothing")):
        assert connection.ask(data).status == (404 if b"nothing" in data else 200)


# What clients send without TLS: Java's and `curl --http2`, and Apache's HttpClient 5.4.
OFFERS = {
    "h2c": ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"),
    "TLS": ("Connection: Upgrade", "Upgrade: TLS/1.2"),
}


@pytest.mark.parametrize("offer", OFFERS)
@pytest.mark.parametrize("size", [1 << 20, 100, 1])
@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_body_is_read_whatever_protocol_is_offered(service, wire, size: int, is_chunked: bool, offer: str) -> None:
    body = httpx.Request("POST", "http://x", json=service.body("gift", "coffee", value=5)).content
    headers = (*OFFERS[offer], JSON, f"X-Api-Key: {service.keys['hr']}")
    lines = ("POST /quote/gift HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *headers, "", "")
    asking = chunked("/quote/gift", body, *headers) if is_chunked else "\r\n".join(lines).encode() + body
    connection = wire(service.url)
    data = asking + get("/health") + asking
    for at in range(0, len(data), size):
        connection.send(data[at : at + size])
    assert [connection.answer().status for _ in range(3)] == [200, 200, 200]


@pytest.mark.parametrize("path", ["/products?keyword=café", "/orders/é", f"/products?keyword={'x' * 65_600}"])
def test_an_address_that_cannot_be_read_is_named(service, wire, path: str) -> None:
    """As curl sends it: a person types it, and nothing encodes it."""
    answer = wire(service.url).ask(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    check(answer, 400, "invalid-request")
    assert answer.json["detail"].startswith("The address cannot be read: percent-encode what is not ASCII")


def test_what_follows_the_head_of_a_connect_is_no_request(service, wire) -> None:
    connection = wire(service.url)
    check(
        connection.ask(b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n" + get("/health")),
        400,
        "invalid-request",
    )
    assert connection.answer() is None
