"""A server that answers with HTML, half an answer, nothing or something else leads to one clear exception."""

from __future__ import annotations

import socket
import threading

import pytest

from largesse_client import Largesse, errors

ME = '{"customerId":1,"customerName":"A","serviceAccountId":1,"serviceAccountName":"B","environment":"staging"}'


def ask(url: str, **options) -> BaseException:
    """Returns the exception that `me()` raises with that server."""
    with Largesse(url, "lgs_live_x", **{"attempts": 2, "timeout_s": 5, **options}) as client:
        with pytest.raises(errors.LargesseError) as raised:
            client.me()
        return raised.value


@pytest.mark.parametrize("status", ["200 OK", "404 Not Found", "403 Forbidden", "301 Moved Permanently"])
def test_html(answer_with, http_answer, status: str) -> None:
    server = answer_with(http_answer(status, "text/html; charset=utf-8", "<h1>It works!</h1>"))
    error = ask(server.url)
    assert type(error) is errors.UnreadableAnswer
    assert error.status == int(status[:3])
    assert str(error) == (
        f"GET /me was answered {status[:3]} with text/html, 18 bytes: that is no answer of Largesse. "
        f"Is `base_url` right? It is {server.url}"
    )


def test_a_redirect_is_named(answer_with, http_answer) -> None:
    moved = http_answer("301 Moved Permanently", "text/html", "", "Location: https://gifts.example/me")
    assert "that is a redirect to https://gifts.example/me. Is `base_url`" in str(ask(answer_with(moved).url))


def test_https_where_the_server_speaks_http(largesse_server) -> None:
    error = ask(largesse_server.base_url.replace("http:", "https:"))
    assert type(error) is errors.Unreachable
    assert "the server speaks no TLS there. Does `base_url` begin with http://?" in str(error)


def test_json_of_something_else(answer_with, http_answer) -> None:
    error = ask(answer_with(http_answer("404 Not Found", "application/json", '{"error": "no"}')).url)
    assert "Is `base_url` right?" in str(error)
    error = ask(answer_with(http_answer("200 OK", "application/json", '{"name": "x"}')).url)
    assert type(error) is errors.UnreadableAnswer
    assert "customerId" in str(error)
    error = ask(answer_with(http_answer("400 Bad", "application/problem+json", "[]")).url)
    assert type(error) is errors.UnreadableAnswer


@pytest.mark.parametrize(("status", "kind"), [("200 OK", "json"), ("400 Bad", "problem+json")])
def test_json_without_a_bottom(answer_with, http_answer, status: str, kind: str) -> None:
    body = ME[:-1] + ',"type":"/problems/x","later":' + "[" * 100_000 + "]" * 100_000 + "}"
    assert type(ask(answer_with(http_answer(status, f"application/{kind}", body)).url)) is errors.UnreadableAnswer


def test_a_wrong_path(largesse_server) -> None:
    """The base URL has a path under which Largesse has nothing."""
    error = ask(f"{largesse_server.base_url}/docs")
    assert type(error) is errors.NotFound


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n" + ME.encode(),
        b"HTTP/1.1 200 OK\r\nContent-Ty",
        b"",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
    ids=["half a body", "half a head", "nothing", "another protocol", "no chunk"],
)
def test_half_an_answer(listen, answer: bytes) -> None:
    def handle(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(answer)

    error = ask(listen(handle).url)
    assert type(error) is errors.NoAnswer
    assert "GET /me: no complete answer arrived" in str(error)
    assert error.request_id


def test_an_answer_that_never_ends(listen) -> None:
    done = threading.Event()

    def drip(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500000\r\n\r\n")
        while not done.wait(0.02):
            connection.sendall(b" ")

    try:
        error = ask(listen(drip).url, timeout_s=0.3, attempts=1)
    finally:
        done.set()
    assert type(error) is errors.NoAnswer
    assert "was not complete in time" in str(error)


def test_an_answer_without_bounds(listen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("largesse_client.driving.MAX_ANSWER_BYTES", 100_000)

    def pour(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        while True:
            connection.sendall(b" " * 10_000)

    error = ask(listen(pour).url, attempts=1)
    assert "larger than 100000 bytes" in str(error)


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    error = ask(f"http://127.0.0.1:{port}")
    assert type(error) is errors.Unreachable
    assert "no connection could be made" in str(error)


def test_a_name_that_is_none() -> None:
    assert type(ask("http://gifts.invalid")) is errors.Unreachable


def test_a_half_answer_is_asked_for_again(answer_with, http_answer) -> None:
    half, whole = (http_answer("200 OK", "application/json", text) for text in (ME[:30], ME))
    with Largesse(answer_with(half, whole).url, "x") as client:
        assert client.me().customer_name == "A"


def test_members_and_words_nobody_knows(answer_with, http_answer) -> None:
    body = ME.replace('"staging"', '"moonbase"').replace("}", ',"later": {"deep": [1, null]}}')
    with Largesse(answer_with(http_answer("200 OK", "application/json", body)).url, "x") as client:
        assert client.me().environment == "moonbase"


def test_a_problem_nobody_knows(answer_with, http_answer) -> None:
    body = '{"type": "/problems/of-later", "title": "New", "status": 418, "detail": "Soon.", "more": 1}'
    error = ask(answer_with(http_answer("418 X", "application/problem+json", body, "X-Request-Id: r1")).url)
    assert type(error) is errors.Problem
    assert (error.status, error.type, error.detail, error.request_id) == (418, "/problems/of-later", "Soon.", "r1")


def test_a_service_that_is_not_well(answer_with, http_answer) -> None:
    body = '{"status":"fail"}'
    with Largesse(answer_with(http_answer("503 Unwell", "application/json", body)).url, "x") as client:
        assert client.health().status == "fail"
