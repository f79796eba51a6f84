"""Serves the metrics of a process on a port, only for this machine or on another address."""

import errno
import socket
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import Gauge, make_wsgi_app
from prometheus_client.exposition import ThreadingWSGIServer

from largesse import __version__
from largesse.base.errors import OperatorError
from largesse.base.hosts import LOCAL_HOSTS, NOT_OURS, is_own_host

LOOPBACK = "127.0.0.1"
_BUILD = Gauge("largesse_build_info", "Always 1; the label says which version this process is of.", ["version"])
_BUILD.labels(__version__).set(1)
_tell = make_wsgi_app()


def serve_metrics(ports: Sequence[int], host: str = LOOPBACK) -> int:
    """Serves this process's metrics on the first free one of these ports of `host`, and returns that port.

    Several processes get the same list, and each takes one port. Raises OperatorError if none is free, or `host` cannot be listened on.
    """
    answer = _answer_here if host in LOCAL_HOSTS else _tell
    for port in ports:
        try:
            server = make_server(host, port, answer, _Server6 if ":" in host else ThreadingWSGIServer, _Handler)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                continue
            raise OperatorError(f"cannot serve metrics on {host}:{port}: {error.strerror}") from None
        threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
        return port
    said = f"{ports[0]}" if len(ports) == 1 else f"{ports[0]} to {ports[-1]}"
    raise OperatorError(f"cannot serve metrics: no free port of {host} among {said}")


class _Server6(ThreadingWSGIServer):
    address_family = socket.AF_INET6


class _Handler(WSGIRequestHandler):
    timeout = 10  # seconds within which a request must arrive

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the library calls it
        """Logs nothing."""


def _answer_here(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Returns the metrics, but only to requests whose Host header names this machine."""
    if not is_own_host(LOCAL_HOSTS, [environ.get("HTTP_HOST", "")]):
        start_response("421 Misdirected Request", [("Content-Type", "text/plain; charset=utf-8")])
        return [NOT_OURS.encode()]
    answer: Iterable[bytes] = _tell(environ, start_response)
    return answer
