"""What a serving process tells of its work, asked of a real one."""

import contextlib
import json
import re
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from tests.connections.conftest import PATIENCE_S, get

BUCKETS = ("0.001", "0.1", "30.0", "+Inf")


class Served:
    """A serving process and what it tells."""

    def __init__(self, installation) -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        self.installation = installation
        self.process = installation.serve(extra=["--metrics-port", str(port)])
        self.metrics_url = f"http://127.0.0.1:{port}/metrics"
        key = installation.world["api_keys"]["acme-prod"]
        self.client = httpx.Client(base_url=self.process.url, headers={"X-Api-Key": key}, timeout=30)

    def figures(self) -> dict[str, float]:
        self.text = httpx.get(self.metrics_url).text
        lines = (line.rpartition(" ") for line in self.text.splitlines() if line.startswith("largesse_"))
        return {name: float(value) for name, _, value in lines}

    def order(self, **members) -> httpx.Response:
        body = {
            "productId": self.installation.id("products", "coffee"),
            "accountId": self.installation.id("funding_accounts", "gbp"),
            "value": 10,
            "codeQuantity": 1,
        }
        return self.client.post("/send/gift", json=body | members)


@pytest.fixture(scope="module")
def served(installation) -> Iterator[Served]:
    served = Served(installation)
    yield served
    served.client.close()
    assert served.process.terminate() == 0


def grown(served: Served, work) -> dict[str, float]:
    """By how much each figure grew while `work` was done."""
    before = served.figures()
    work()
    return {name: value - before.get(name, 0.0) for name, value in served.figures().items()}


def test_requests_by_operation_and_status(served, wire) -> None:
    def work() -> None:
        for _ in range(3):
            served.client.get("/me")
        served.client.get("/products?limit=0")
        served.client.get("/me", headers={"X-Api-Key": "nonsense"})
        served.client.put("/me")
        served.client.get("/products/4711")
        served.client.get("/docs")
        served.client.get("/claim")
        served.client.get("/nothing/of/the-kind")
        wire(served.process.url).ask(get("/health", "X-Padding: " + "x" * 33_000))

    told = grown(served, work)
    assert {name: value for name, value in told.items() if "requests_total" in name and value} == {
        'largesse_requests_total{operation="getMe",status="200"}': 3,
        'largesse_requests_total{operation="getMe",status="401"}': 1,
        'largesse_requests_total{operation="listProducts",status="400"}': 1,
        'largesse_requests_total{operation="getProduct",status="404"}': 1,
        'largesse_requests_total{operation="none",status="405"}': 1,
        'largesse_requests_total{operation="none",status="431"}': 1,
        'largesse_requests_total{operation="page",status="200"}': 1,
        'largesse_requests_total{operation="page",status="404"}': 1,
        'largesse_requests_total{operation="claim",status="200"}': 1,
    }
    assert told['largesse_failed_authentications_total{reason="malformed"}'] == 1
    assert "nothing" not in served.text


def test_durations(served) -> None:
    told = grown(served, lambda: [served.client.get("/me") for _ in range(5)])
    of_me = 'largesse_request_seconds_{}{{{}operation="getMe"}}'
    assert told[of_me.format("count", "")] == 5
    assert 0 < told[of_me.format("sum", "")] < 60
    buckets = [told[of_me.format("bucket", f'le="{bound}",')] for bound in BUCKETS]
    assert buckets == sorted(buckets)
    assert buckets[-1] == 5


def test_orders_and_batches(served) -> None:
    def work() -> None:
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda number: served.order(externalReference=f"m-{number % 20}"), range(40)))
        assert [answer.status_code for answer in answers].count(200) == 20
        assert served.order(value=10, codeQuantity=5000, productId=5).status_code == 400

    told = grown(served, work)
    assert told["largesse_orders_placed_total"] == 20
    requests = 'largesse_requests_total{{operation="sendGift",status="{}"}}'
    assert [told[requests.format(status)] for status in (200, 400, 409)] == [20, 1, 20]
    assert told.get('largesse_orders_refused_total{problem="reference-used"}', 0) <= 20
    assert 1 <= told["largesse_batch_orders_count"] <= 60
    assert told["largesse_batch_orders_sum"] >= 20


POOR = """
customers:
  - key: acme
    name: Acme Ltd
    plan: enterprise
    funding: balance
    funding_accounts:
      - {key: poor, name: Poor, currency: GBP, environment: production, balance: 15.00}
"""


@pytest.mark.long
def test_an_order_without_funds(served) -> None:
    (served.installation.folder / "poor.yaml").write_text(POOR)
    account = json.loads(served.installation.run("load", "poor.yaml", "--json"))["ids"]["funding_accounts"]["poor"]
    told = grown(served, lambda: [served.order(accountId=account).status_code for _ in range(3)])
    assert told["largesse_orders_placed_total"] == 1
    assert told['largesse_orders_refused_total{problem="insufficient-balance"}'] == 2


def test_the_pool_and_connections(served, wire) -> None:
    told = served.figures()
    assert told["largesse_pool_limit"] == 14, "ten, and four of the back office"
    assert told['largesse_pool_connections{state="used"}'] + told['largesse_pool_connections{state="idle"}'] <= 14
    assert told["largesse_pool_waiting"] == 0
    assert told["largesse_connections_limit"] == 4_000
    before = told["largesse_connections_open"]
    held = [wire(served.process.url) for _ in range(7)]
    assert {one.ask(get("/health")).status for one in held} == {200}
    assert served.figures()["largesse_connections_open"] - before == 7
    told = grown(served, lambda: wire(served.process.url).ask(b"GARBAGE\r\n\r\n"))
    assert told['largesse_connections_closed_total{reason="malformed"}'] == 1


def test_no_label_tells_of_anybody(served) -> None:
    served.figures()
    labels = set(re.findall(r"^largesse_\w+\{(.+)\}", served.text, re.MULTILINE))
    names = {name for each in labels for name in re.findall(r'(\w+)="', each)}
    assert names <= {
        "operation",
        "status",
        "le",
        "problem",
        "reason",
        "state",
        "kind",
        "fault",
        "outcome",
        "queue",
        "step",
        "table",
        "version",
    }
    assert not re.search("acme|globex|lgs_", served.text, re.IGNORECASE)


def two_free_ports() -> int:
    """The first of two free ports that follow each other."""
    for _ in range(100):
        with socket.create_server(("127.0.0.1", 0)) as first, contextlib.suppress(OSError):
            port: int = first.getsockname()[1]
            socket.create_server(("127.0.0.1", port + 1)).close()
            return port
    raise AssertionError("no two ports")


@pytest.mark.long
def test_each_process_tells_its_own(installation) -> None:
    port = two_free_ports()
    process = installation.serve(extra=["--processes", "2", "--metrics-port", str(port)])
    told = []
    for one in (port, port + 1):
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:  # each takes its port once it has started
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", one)).close()
                break
            time.sleep(0.1)
    for _ in range(20):
        httpx.get(f"{process.url}/health")
    for one in (port, port + 1):
        told += re.findall(
            r'^largesse_requests_total\{operation="getHealth",status="200"\} (\S+)',
            httpx.get(f"http://127.0.0.1:{one}/metrics").text,
            re.MULTILINE,
        )
    assert sum(map(float, told)) == 20
    assert process.terminate() == 0
