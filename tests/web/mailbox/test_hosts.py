"""The mailbox answers to its own host names alone: no page elsewhere reads it under a name of its own (DNS rebinding)."""

from typing import Any

import pytest
from tests.connections.conftest import Wire
from tests.web.api.conftest import PUBLIC_URL, Service, serving

from largesse.base.hosts import own_hosts
from largesse.main import build_app
from largesse.web.kit.headers import require_own_host
from largesse.web.kit.problems import Misdirected

PATHS = ["/mailbox", "/mailbox/1", "/mailbox/1/html", "/mailbox/1/message.eml"]
OURS = [
    "localhost",
    "LOCALHOST:80",
    "localhost.",
    "127.0.0.1",
    "127.0.0.1:8000",
    "[::1]",
    "[::1]:8000",
    "[0:0:0:0:0:0:0:1]",
    "gifts.example",
    "gifts.example:443",
]
OTHERS = [
    "rebound.example",
    "rebound.example:8000",
    "127.0.0.1.rebound.example",
    "localhost.rebound.example",
    "gifts.example.rebound.example",
    "rebound-gifts.example",
    "127.1",
    "127.0.0.2",
    "2130706433",
    "[::2]",
    "",
]


def answers(on: Service, path: str, host: str) -> Any:
    return on.client().get(path, headers={"Host": host})


@pytest.mark.parametrize("host", OURS)
def test_our_names(staging: Service, demo: Service, host: str) -> None:
    for service in (staging, demo):
        assert answers(service, "/mailbox", host).status_code == 200
        assert answers(service, PATHS[1], host).status_code == 404


@pytest.mark.parametrize("host", OTHERS)
def test_other_names(staging: Service, demo: Service, host: str) -> None:
    for service in (staging, demo):
        for path in PATHS:
            answer = answers(service, path, host)
            assert answer.status_code == 421
            assert answer.headers["Content-Type"] == "application/problem+json"
            assert answer.json()["type"] == "/problems/misdirected"


def test_no_host_header_names_none(staging: Service) -> None:
    wire = Wire(staging.url)
    assert wire.ask(b"GET /mailbox HTTP/1.0\r\n\r\n").status == 421
    wire.close()


@pytest.mark.parametrize("path", ["/mailbox", "/health", "/me", "/app/sign-in", "/claim", "/nothing"])
@pytest.mark.parametrize(
    ("header", "detail"),
    [
        ("", "The request has no `Host` header, which HTTP/1.1 requires."),
        ("Host: a b\r\n", "The `Host` header is not a name or address with an optional port."),
        ("Host: x@localhost\r\n", "The `Host` header is not a name or address with an optional port."),
        ("Host: localhost@rebound.example\r\n", "The `Host` header is not a name or address with an optional port."),
        ("Host: localhost/rebound.example\r\n", "The `Host` header is not a name or address with an optional port."),
    ],
)
def test_a_host_header_that_is_missing_or_wrong_is_refused(
    staging: Service, path: str, header: str, detail: str
) -> None:
    wire = Wire(staging.url)
    answer = wire.ask(f"GET {path} HTTP/1.1\r\n{header}\r\n".encode())
    wire.close()
    assert (answer.status, answer.json["detail"]) == (400, detail)


@pytest.mark.parametrize(
    ("version", "header"),
    [("1.0", ""), ("1.1", "Host:\r\n"), ("1.1", "Host: [::1]:80\r\n"), ("1.1", "Host: a_b.example\r\n")],
)
def test_hosts_that_http_allows(staging: Service, version: str, header: str) -> None:
    wire = Wire(staging.url)
    assert wire.ask(f"GET /health HTTP/{version}\r\n{header}\r\n".encode()).status == 200
    wire.close()


@pytest.mark.parametrize("path", ["/mailbox", "/health", "/me", "/app/sign-in", "/claim", "/nothing"])
@pytest.mark.parametrize("second", ["localhost", "rebound.example", ""])
def test_two_host_headers_are_refused_everywhere(staging: Service, path: str, second: str) -> None:
    wire = Wire(staging.url)
    answer = wire.ask(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nhOST: {second}\r\n\r\n".encode())
    wire.close()
    assert answer.status == 400
    problem = answer.json
    assert problem["type"] == "/problems/invalid-request"
    assert problem["detail"] == "The request has more than one `Host` header."


@pytest.mark.slow
def test_everything_else_answers_to_any_name(staging: Service) -> None:
    for path in ("/health", "/docs", "/claim", "/openapi.json", "/"):
        assert answers(staging, path, "rebound.example").status_code == 200


def test_what_it_listens_on_is_ours(staging: Service) -> None:
    with serving(build_app(staging.settings, listens_on="gifts.internal")) as url:
        client = staging.client()
        statuses = [
            client.get(f"{url}/mailbox", headers={"Host": host}).status_code
            for host in ("gifts.internal", "localhost", "other.internal")
        ]
    assert statuses == [200, 200, 421]


def test_a_wildcard_is_no_name() -> None:
    for wildcard in ("0.0.0.0", "::"):  # noqa: S104 - named, not listened on
        hosts = own_hosts(listens_on=wildcard, urls=[PUBLIC_URL])
        assert hosts == {"localhost", "127.0.0.1", "::1", "gifts.example"}


@pytest.mark.parametrize(
    ("given", "connected_to", "ours"),
    [
        ("192.0.2.7:8001", "192.0.2.7", True),
        ("192.0.2.7:8001", "::ffff:192.0.2.7", True),
        ("[2001:DB8::7]", "2001:db8:0::7", True),
        ("192.0.2.8", "192.0.2.7", False),
        ("rebound.example", "192.0.2.7", False),
        ("", "", False),
    ],
)
def test_the_address_of_our_end_is_ours(given: str, connected_to: str, ours: bool) -> None:
    if ours:
        require_own_host(own_hosts(), [given], connected_to)
        return
    with pytest.raises(Misdirected):
        require_own_host(own_hosts(), [given], connected_to)
