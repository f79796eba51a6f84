"""A proxy before the service that breaks one rule of the contract, in requests, responses or deliveries."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import httpx

_DELIVER = "/deliver/"


@dataclass
class Message:
    """A request, or the response to it, as a breakage may change it."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    status: int = 0

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @json.setter
    def json(self, value: Any) -> None:
        self.body = json.dumps(value).encode()

    def is_(self, method: str, path: str) -> bool:
        return self.method == method and self.path.startswith(path)


@dataclass(frozen=True)
class Breakage:
    """What is broken, the check that is meant for it, and how: each function changes a message in place.

    `forward` answers a request itself; None: it is passed on.
    """

    name: str
    check: str
    request: Callable[[Message, Mapping[str, str]], None] = lambda _, __: None
    response: Callable[[Message], None] = lambda _: None
    forward: Callable[[Message, Callable[[Message], Message]], Message | None] = lambda _, __: None
    delivery: Callable[[Message], None] = lambda _: None
    receipt: Callable[[Message], None] = lambda _: None
    needs_delivery: bool = False


class Proxy:
    """Passes requests on to the service, and its deliveries on to the receiver."""

    def __init__(self, target: str, breakage: Breakage, keys: Mapping[str, str]) -> None:
        self._target = target
        self._breakage = breakage
        self._keys = keys
        # A context without authorities: all of them would be read for each proxy, and nothing here speaks TLS.
        self._client = httpx.Client(timeout=30, verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), follow_redirects=False)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._client.close()

    def answer(self, message: Message) -> Message:
        if message.path.startswith(_DELIVER):
            return self._deliver(message)
        self._breakage.request(message, self._keys)
        self._route_deliveries(message)
        found = self._breakage.forward(message, self._ask) or self._ask(message)
        self._breakage.response(found)
        return found

    def _ask(self, message: Message) -> Message:
        url = f"{self._target}{message.path}" + (f"?{urlencode(message.query)}" if message.query else "")
        return self._pass_on(message, url)

    def _deliver(self, message: Message) -> Message:
        self._breakage.delivery(message)
        found = self._pass_on(message, unquote(message.path.removeprefix(_DELIVER)))
        self._breakage.receipt(found)
        return found

    def _pass_on(self, message: Message, url: str) -> Message:
        headers = {
            name: value
            for name, value in message.headers.items()
            if name.lower() not in {"host", "content-length", "connection"}
        }
        answered = self._client.request(message.method, url, headers=headers, content=message.body)
        kept = ("Content-Type", "Location", "Allow", "X-Request-Id", "X-Ignored", "Retry-After")
        headers = {name: answered.headers[name] for name in kept if name in answered.headers}
        return Message(message.method, message.path, message.query, headers, answered.content, answered.status_code)

    def _route_deliveries(self, message: Message) -> None:
        """Has the service deliver to this proxy what a subscription wants at an address of this machine."""
        if message.is_("POST", "/webhooks") and self._breakage.needs_delivery and message.body:
            body = message.json
            if str(body.get("targetUrl")).startswith("http://127.0.0.1"):
                message.json = body | {"targetUrl": f"{self.url}{_DELIVER}{quote(body['targetUrl'], safe='')}"}

    def _handler(proxy) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - the handler has a self of its own
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def _answer(self) -> None:
                parts = urlsplit(self.path)
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                query = dict(parse_qsl(parts.query, keep_blank_values=True))
                found = proxy.answer(Message(self.command, parts.path, query, dict(self.headers.items()), body))
                self.send_response(found.status)
                for name, value in found.headers.items():
                    self.send_header(name, value)
                if found.status != 204:
                    self.send_header("Content-Length", str(len(found.body)))
                self.end_headers()
                self.wfile.write(found.body)

            do_GET = do_POST = do_DELETE = _answer  # noqa: N815 - the names that http.server calls

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


@contextmanager
def broken(target: str, breakage: Breakage, keys: Mapping[str, str]) -> Iterator[str]:
    """The address of a proxy with a breakage, for as long as the block."""
    proxy = Proxy(target, breakage, keys)
    try:
        yield proxy.url
    finally:
        proxy.close()
