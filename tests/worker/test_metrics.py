"""Metrics over HTTP, of a worker inside a serving process too."""

import asyncio
import os
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from tests.waiting import until
from tests.worker.conftest import PATIENCE_S, Works

from largesse.base.errors import OperatorError
from largesse.base.metrics_server import serve_metrics


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    return port


@pytest.mark.long
@pytest.mark.sampled(2)
@pytest.mark.parametrize("command", ["worker", "serve --with-worker"])
async def test_what_a_worker_did_can_be_read(works: Works, command: str) -> None:
    port = free_port()
    arguments = [*command.split(), "--metrics-port", str(port)]
    if command != "worker":
        arguments += ["--port", str(free_port())]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "largesse", *arguments, env={**os.environ, **works.environ}
    )
    works.workers.append(process)
    ids = set(await works.place(3))
    await works.until_arrived(ids, ids)
    told = ""

    async def counted() -> bool:
        nonlocal told
        assert process.returncode is None
        async with httpx.AsyncClient() as client:
            with suppress(httpx.TransportError):
                told = (await client.get(f"http://127.0.0.1:{port}/metrics")).text
        return 'largesse_mails_total{outcome="sent"} 3.0' in told and "largesse_queue_depth{" in told

    await until(counted)
    assert 'largesse_webhook_attempts_total{outcome="delivered"} 3.0' in told
    secrets = [works.subscription.secret, works.receiver.url(), "guest", works.environ["LARGESSE_MASTER_KEY"]]
    assert [secret for secret in secrets if secret in told] == []
    process.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(process.wait(), PATIENCE_S) == 0


def test_each_process_takes_a_port_that_is_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        first, second = taken.getsockname()[1], free_port()
        assert serve_metrics([first, second]) == second
        with pytest.raises(OperatorError, match=f"{first} to {second}"):
            serve_metrics([first, second])


@pytest.mark.parametrize(
    ("host", "said"), [("no-such-host.invalid", "not known"), ("203.0.113.7", "Cannot assign requested address")]
)
def test_an_address_that_cannot_be_listened_on_is_not_called_taken(host: str, said: str) -> None:
    port = free_port()
    with pytest.raises(OperatorError, match=f"^cannot serve metrics on {host}:{port}: .*{said}$"):
        serve_metrics([port], host)


@pytest.mark.skipif(not Path("/proc/net/if_inet6").exists(), reason="the machine has no IPv6")
def test_they_are_served_on_ipv6_too() -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as probe:
        port: int = probe.getsockname()[1]
    serve_metrics([port], "::1")
    assert "largesse_build_info" in httpx.get(f"http://[::1]:{port}/metrics").text
    assert httpx.get(f"http://[::1]:{port}/metrics", headers={"Host": "rebound.example"}).status_code == 421


@pytest.mark.parametrize(
    ("host", "status"),
    [("127.0.0.1", 200), ("localhost", 200), ("[::1]:9100", 200), ("rebound.example", 421), ("", 421)],
)
def test_they_answer_to_names_of_this_machine_alone(host: str, status: int) -> None:
    port = serve_metrics([free_port()])
    answer = httpx.get(f"http://127.0.0.1:{port}/metrics", headers={"Host": host})
    assert answer.status_code == status
    assert ("largesse_" in answer.text) is (status == 200)


def test_on_another_address_they_answer_to_any_name() -> None:
    """Whoever names the address, such as a pod's, says that others are to read them."""
    port = serve_metrics([free_port()], "127.0.0.2")
    answer = httpx.get(f"http://127.0.0.2:{port}/metrics", headers={"Host": "largesse-metrics.example:9100"})
    assert answer.status_code == 200
    assert "largesse_build_info" in answer.text
