"""Callers who hold more connections than there are files to be opened, and a `largesse serve` that goes on answering."""

import json
import socket
import subprocess
import sys
import time

import httpx
import psutil
import pytest
from prometheus_client import REGISTRY
from tests.connections.conftest import PATIENCE_S, get

from largesse.connections.manager import ConnectionManager

OPEN_FILES = 300
LIMIT = 200  # a hundred are kept for everything else
HALF = b"GET /me HTTP/1.1\r\nHost: localhost\r\nX-Slow: "


@pytest.fixture
def served(installation):
    with socket.create_server(("127.0.0.1", 0)) as probe:
        metrics_port = probe.getsockname()[1]
    service = installation.serve(open_files=OPEN_FILES, extra=["--metrics-port", str(metrics_port)])
    service.metrics_url = f"http://127.0.0.1:{metrics_port}/metrics"
    yield service
    service.terminate()


def figures(service) -> dict[str, float]:
    text = httpx.get(service.metrics_url).text
    lines = [line for line in text.splitlines() if line.startswith("largesse_connections")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def until_answered(url: str) -> httpx.Response:
    """The first answer that is no 503, for somebody who connects anew each time."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        answer = httpx.get(f"{url}/health", timeout=10)
        if answer.status_code != 503:
            return answer
        assert int(answer.headers["Retry-After"]) > 0
        time.sleep(0.3)
    raise AssertionError("nothing but 503")


@pytest.mark.long
@pytest.mark.parametrize("half", [HALF, b""], ids=["half-sent", "silent"])
def test_600_connections_shut_nobody_out(served, wire, log_of, half: bytes) -> None:
    held = [wire(served.url) for _ in range(600)]
    for one in held:
        try:
            one.send(half)
        except OSError:  # it was refused
            continue
    for _ in range(10):
        assert until_answered(served.url).status_code == 200
    process = psutil.Process(served.process.pid)
    assert process.num_fds() < OPEN_FILES
    told = figures(served)
    assert told["largesse_connections_limit"] == LIMIT
    assert told["largesse_connections_open"] <= LIMIT + 1
    assert told["largesse_connections_refused_total"] + told['largesse_connections_closed_total{reason="room"}'] >= 400
    lines = [line for line in log_of(served.log) if line["event"] == "connections_full"]
    assert 1 <= len(lines) <= 5
    assert lines[0]["limit"] == LIMIT
    assert lines[0]["level"] == "warning"


@pytest.mark.long
def test_what_waits_is_ended_after_ten_seconds(served, wire, installation) -> None:
    key = f"X-Api-Key: {installation.world['api_keys']['acme-prod']}"
    post = (
        f"POST /send/gift HTTP/1.1\r\nHost: x\r\n{key}\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n"
    )
    half, silent, body, slow = (wire(served.url) for _ in range(4))
    idle = wire(served.url)
    assert idle.ask(get("/health")).status == 200
    began = time.monotonic()
    half.send(HALF)
    body.send(post.encode() + b'{"externalReference"')
    slow.send(post.encode() + b'{"externalReference": "slow"')
    for _ in range(12):
        time.sleep(1)
        slow.send(b" ")
    answer = half.answer()
    assert answer is not None
    assert (answer.status, answer.json["type"]) == (408, "/problems/slow-request")
    assert silent.answer() is None
    answer = body.answer()
    assert answer is not None
    assert (answer.status, answer.json["type"]) == (408, "/problems/slow-request")
    assert answer.headers["connection"] == "close"
    assert body.answer() is None
    assert slow.ask(b"}".rjust(99 - 28 - 12)).status == 400  # it made progress: `productId` is what is missing
    assert time.monotonic() - began > 10
    assert idle.ask(get("/health")).status == 200


@pytest.mark.slow
def test_the_limit_is_measured_before_anybody_connects() -> None:
    ConnectionManager(7)
    assert REGISTRY.get_sample_value("largesse_connections_limit") == 7


@pytest.mark.parametrize(("wanted", "starts"), [(LIMIT, True), (LIMIT + 1, False)])
def test_a_limit_that_the_system_does_not_allow(installation, wanted: int, starts: bool) -> None:
    command = f'ulimit -n {OPEN_FILES} && exec "$@"'
    done = subprocess.run(
        ["sh", "-c", command, "sh", sys.executable, "-c", PRINT_LIMIT, str(wanted)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode == 0) is starts, done.stderr
    if starts:
        assert json.loads(done.stdout) == [wanted, OPEN_FILES]
    else:
        assert f"LARGESSE_MAX_CONNECTIONS is {wanted}" in done.stderr
        assert f"{OPEN_FILES} files" in done.stderr
        assert f"{LIMIT} connections" in done.stderr


PRINT_LIMIT = """
import json, resource, sys
from largesse.connections.manager import connection_limit
print(json.dumps([connection_limit(int(sys.argv[1])), resource.getrlimit(resource.RLIMIT_NOFILE)[0]]))
"""


@pytest.mark.slow
def test_the_soft_limit_of_files_is_raised_as_far_as_is_needed() -> None:
    raised = 'ulimit -Sn 200; exec "$@"'
    done = subprocess.run(
        ["sh", "-c", raised, "sh", sys.executable, "-c", PRINT_LIMIT, "1000"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert json.loads(done.stdout) == [1000, 1100]
