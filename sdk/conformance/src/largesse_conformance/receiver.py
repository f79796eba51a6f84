"""A receiver of webhooks on this machine, which answers each path in its own way."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_LARGEST_BODY = 1_000_000


@dataclass(frozen=True)
class Delivery:
    """One attempt that arrived: its path, headers in lower case, raw body, and when."""

    path: str
    method: str
    headers: dict[str, str]
    body: bytes
    at_s: float


class Receiver:
    """Listens on an address and stores deliveries. `answers` has the statuses for the attempts at each path; the last one repeats."""

    def __init__(self, address: str, answers: dict[str, list[int]]) -> None:
        host, _, port = address.rpartition(":")
        self._answers = answers
        self._lock = threading.Lock()
        self._received: list[Delivery] = []
        self._server = ThreadingHTTPServer((host, int(port)), _handler(self._receive))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://{host}:{self._server.server_address[1]}"

    def close(self) -> None:
        """Stops listening."""
        self._server.shutdown()
        self._server.server_close()

    def at(self, path: str) -> list[Delivery]:
        """Returns the attempts that arrived at a path, in their order."""
        with self._lock:
            return [one for one in self._received if one.path == path]

    def wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Waits until a condition is true. Returns whether it became true in time."""
        until_s = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > until_s:
                return False
            time.sleep(0.05)
        return True

    def _receive(self, delivery: Delivery) -> int:
        with self._lock:
            self._received.append(delivery)
            number = sum(one.path == delivery.path for one in self._received)
            statuses = self._answers.get(delivery.path, [404])
            return statuses[min(number, len(statuses)) - 1]


def _handler(receive: Callable[[Delivery], int]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 10

        def _answer(self) -> None:
            length = min(int(self.headers.get("Content-Length", "0")), _LARGEST_BODY)
            headers = {name.lower(): value for name, value in self.headers.items()}
            delivery = Delivery(self.path, self.command, headers, self.rfile.read(length), time.monotonic())
            status = receive(delivery)
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.send_header("Connection", "close")
            self.end_headers()

        do_POST = do_GET = do_PUT = _answer  # noqa: N815 - the names that http.server calls

        def log_message(self, *_: Any) -> None:
            """Logs nothing."""

    return Handler
