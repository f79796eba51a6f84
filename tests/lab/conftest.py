"""A staging service with its worker, and a receiver whose answer a test chooses."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Network
from typing import Any

import pytest
from tests.web.api.conftest import Service, ServiceFactory, problem, service, start_service

from largesse.main import open_worker

__all__ = ["problem", "service", "start_service"]


class Receiver:
    """A receiver of webhooks: keeps the headers and the body of each, and answers `status`."""

    def __init__(self) -> None:
        self.status = 204
        self.got: list[tuple[dict[str, str], bytes]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(receiver.status)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"

    @property
    def events(self) -> list[str]:
        return [headers["x-service-event"] for headers, _ in self.got]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    thread = threading.Thread(target=receiver.server.serve_forever, daemon=True)
    thread.start()
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def staging(service: Service, start_service: ServiceFactory) -> Service:
    """The staging service of the same installation, whose worker delivers to this machine."""
    return start_service(like=service, environment="staging", webhook_allowed_networks=(IPv4Network("127.0.0.0/8"),))


@pytest.fixture
def working(staging: Service) -> Iterator[None]:
    """A worker beside the service."""
    ended = threading.Event()

    async def work() -> None:
        async with open_worker(staging.settings):
            while not ended.is_set():  # noqa: ASYNC110 - a thread's event
                await asyncio.sleep(0.05)

    thread = threading.Thread(target=lambda: asyncio.run(work()))
    thread.start()
    yield
    ended.set()
    thread.join()


@pytest.fixture
def send(staging: Service) -> Callable[..., dict[str, Any]]:
    """Sends a gift in staging to an address, and returns the order."""

    def sending(
        email: str, *, what: str = "gift", name: str = "coffee", value: int = 5, **members: Any
    ) -> dict[str, Any]:
        answer = staging.send(
            what, name, key="hr-test", account="test-gbp", value=value, recipients=[{"email": email}], **members
        )
        assert answer.status_code == 200, answer.text
        order: dict[str, Any] = answer.json()
        return order

    return sending
