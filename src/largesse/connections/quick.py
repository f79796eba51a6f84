"""Answers small requests that arrive whole, in one or two pieces, without ASGI.

Callers repeat their heads. So httptools parses each head once, and later it is found by its hash. The API key in it is not stored.

Other requests go through ASGI from their first byte: requests that are not whole after two pieces, that arrive together with the next
one, that have no known path, or that are special (chunks, `Expect`, `Upgrade`, `Connection: close`, a refusal).
"""

import asyncio
import contextlib
from collections.abc import Coroutine
from hashlib import sha256
from typing import Any, Final, NamedTuple

import httptools
from uvicorn import Config
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from largesse.base.recently_used import RecentlyUsed
from largesse.connections.manager import ConnectionManager
from largesse.connections.protocol import HOST, Connection
from largesse.web.api.application import WHOLE_REQUESTS
from largesse.web.api.whole import Head, WholeRequests
from largesse.web.kit.asgi import Answer, Scope, lines_of

_MAX_HEAD_BYTES = 8 * 1024
_MAX_BODY_BYTES = 64 * 1024
_MAX_HEADS = 5_000
# How long to wait for the second piece of a request. Most clients send the body right after the head.
_PIECE_S = 0.02
_CLOSE = b"connection: close\r\n"
_END_OF_HEAD: Final = b"\r\n\r\n"
# Headers that apply to one connection only, or change how the body is read.
_SPECIAL = frozenset((b"expect", b"transfer-encoding", b"upgrade", b"te", b"trailer"))


class _Known(NamedTuple):
    """A parsed head: its meaning for the application, or None if the request must use ASGI, and the length of the body."""

    head: Head | None
    length: int


class Heads:
    """The request heads that a process has parsed, so that a repeated one is not parsed again."""

    def __init__(self, answerer: WholeRequests, config: Config) -> None:
        self.answerer = answerer
        # The paths of request lines, without the query.
        self._paths = frozenset(path.encode("ascii") for path in answerer.paths)
        self._config = config
        self._server_headers: list[tuple[bytes, bytes]] | None = None
        self._server_lines = b""
        self._known: RecentlyUsed[tuple[bytes, str], _Known] = RecentlyUsed(max_entries=_MAX_HEADS)

    def find(self, data: bytes, host: str) -> tuple[Head, int, int] | None:
        """Returns the application's `Head` for the start of `data`, and the positions where the body begins and ends.

        Returns None if the request must go through ASGI, or the head is not whole.
        """
        begin = data.find(b" ", 0, 8) + 1
        path = data[begin : data.find(b" ", begin, _MAX_HEAD_BYTES)]
        if path.partition(b"?")[0] not in self._paths:
            return None
        size = data.find(_END_OF_HEAD, begin, _MAX_HEAD_BYTES) + len(_END_OF_HEAD)
        if size < len(_END_OF_HEAD):
            return None
        raw = data[:size]
        key = sha256(raw).digest(), host
        known = self._known.get(key)
        if known is None:
            known = self._parse(raw, host)
            self._known.put(key, known)
        return None if known.head is None else (known.head, size, size + known.length)

    def server_lines(self, headers: list[tuple[bytes, bytes]]) -> bytes:
        """Returns the headers of all answers as lines. uvicorn makes a new list every second."""
        if headers is not self._server_headers:
            self._server_headers, self._server_lines = headers, lines_of(headers)
        return self._server_lines

    def _parse(self, raw: bytes, host: str) -> _Known:
        reader = _HeadReader()
        try:
            reader.parser.feed_data(raw)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            return _Known(None, 0)
        scope = reader.scope(host)
        if scope is None:
            return _Known(None, 0)
        lengths = [value for name, value in scope["headers"] if name == b"content-length"] or [b"0"]
        length = int(lengths[0]) if len(lengths) == 1 and lengths[0].isdigit() and len(lengths[0]) < 9 else -1
        if not 0 <= length <= (_MAX_BODY_BYTES if scope["method"] == "POST" else 0):
            return _Known(None, 0)
        return _Known(self.answerer.read_head(self._behind_proxy(scope)), length)

    def _behind_proxy(self, scope: Scope) -> Scope:
        """Returns the scope with the client that a trusted proxy names, as uvicorn reads it."""
        if self._config.proxy_headers:
            middleware: Any = ProxyHeadersMiddleware(_nothing, trusted_hosts=self._config.forwarded_allow_ips)
            with contextlib.suppress(StopIteration):
                middleware(scope, None, None).send(None)
        return scope


async def _nothing(*_: Any) -> None:
    """Does nothing. A middleware of which only the changed scope is needed gets it as its application."""


class _HeadReader:
    """Reads one head. httptools calls it."""

    def __init__(self) -> None:
        self.parser = httptools.HttpRequestParser(self)
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._is_usual = False

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        # Read these now, as the parser drops them at the end of the request.
        parser = self.parser
        is_upgrade = parser.should_upgrade()
        self._is_usual = parser.get_http_version() == "1.1" and parser.should_keep_alive() and not is_upgrade

    def scope(self, host: str) -> Scope | None:
        """Returns the request as an ASGI scope, or None for a special request."""
        names = [name for name, _ in self._headers]
        hosts = [value for name, value in self._headers if name == b"host"]
        if not self._is_usual or len(hosts) != 1 or not HOST.fullmatch(hosts[0]) or not _SPECIAL.isdisjoint(names):
            return None
        url = httptools.parse_url(self._url)
        return {
            "type": "http",
            "method": self.parser.get_method().decode("ascii"),
            "path": url.path.decode("ascii"),
            "query_string": url.query or b"",
            "headers": self._headers,
            "client": (host, 0),
            "scheme": "http",
        }


class QuickConnection(Connection):
    """A connection that answers whole requests itself."""

    def __init__(self, manager: ConnectionManager, heads: Heads | None, **uvicorns: Any) -> None:
        super().__init__(manager, **uvicorns)
        self._heads = heads
        self._held = b""  # the first piece of a request
        self._letting_go: asyncio.TimerHandle | None = None
        self._is_answering = False
        self._early = b""  # bytes that arrived while a request is being answered

    def data_received(self, data: bytes) -> None:
        """Begins to answer a whole request, stores the first piece of a request, or passes the bytes on to ASGI."""
        if self._is_answering:
            self._early += data
            self.transport.pause_reading()
            return
        held = self._release()
        data = held + data
        if not self._takes(data, is_second=bool(held)):
            super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Drops the first piece of a request."""
        self._release()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Ends after the current answer."""
        if self._is_answering:
            self._manager.drain()
        else:
            super().shutdown()

    def _is_answered(self) -> bool:
        return not self._is_answering and super()._is_answered()

    def _takes(self, data: bytes, *, is_second: bool) -> bool:
        """Begins to answer a whole request, or stores its first piece. Returns False if the request must go through ASGI."""
        if self._heads is None or self.client is None or not self._is_free():
            return False
        found = self._heads.find(data, self.client[0])
        if found is None:
            return False
        head, begin, end = found
        if len(data) == end:
            self._is_answering = True
            self._heads.answerer.begin(head, data[begin:], self)
        elif len(data) > end or is_second:
            return False
        else:
            self._held = data
            self._letting_go = self.loop.call_later(_PIECE_S, self._let_go)
        self._manager.idle.pop(self, None)
        self._manager.has_head(self)
        return True

    def _is_free(self) -> bool:
        """Returns whether the next byte begins a request whose answer may be written at once."""
        is_ending = self._is_broken or self._manager.is_draining or self.transport.is_closing()
        return self.said_nothing and self._is_answered() and not is_ending and not self.flow.write_paused

    def _release(self) -> bytes:
        """Returns the stored first piece of a request, and clears it."""
        if self._letting_go is None:
            return b""
        self._letting_go.cancel()
        self._letting_go = None
        held, self._held = self._held, b""
        return held

    def _let_go(self) -> None:
        super().data_received(self._release())

    def answer_in_task(self, answer: Coroutine[Any, Any, Answer]) -> None:
        """Runs a coroutine in a task, and writes the answer that it returns."""
        task = self.loop.create_task(self._write_from(answer))
        self.tasks.add(task)  # the server waits for these when it stops
        task.add_done_callback(self.tasks.discard)

    async def _write_from(self, answer: Coroutine[Any, Any, Answer]) -> None:
        try:
            answered = await answer
        except BaseException:
            self.close()
            raise
        self.write_answer(answered)

    def close(self) -> None:
        """Closes the connection without an answer."""
        self.transport.close()

    def write_answer(self, answer: Answer) -> None:
        """Writes the answer to the current request, then reads the bytes that arrived meanwhile."""
        assert self._heads is not None, "whole requests are answered"
        status, lines, content = answer
        self._is_answering = False
        if self.transport.is_closing():  # the caller is gone
            return
        is_last = self._manager.is_draining or self._is_broken
        before = self._heads.server_lines(self.server_state.default_headers)
        after = _CLOSE if is_last else b""
        self.transport.write(b"%b%b%b%b\r\n%b" % (STATUS_LINE[status], before, lines, after, content))
        self.server_state.total_requests += 1
        if is_last:
            self.end()
            return
        self._manager.rest(self)
        if self._early:
            early, self._early = self._early, b""
            self.transport.resume_reading()
            self.data_received(early)


class QuickConnections:
    """Makes the connections of one server, which share the heads that they have parsed. uvicorn calls it as its protocol class."""

    def __init__(self, manager: ConnectionManager) -> None:
        self._manager = manager
        self._heads: Heads | None = None

    def __call__(self, *, config: Config, app_state: dict[str, Any], **uvicorns: Any) -> QuickConnection:
        """Returns a new connection."""
        heads = self._heads_of(app_state.get(WHOLE_REQUESTS), config)
        return QuickConnection(self._manager, heads, config=config, app_state=app_state, **uvicorns)

    def _heads_of(self, answerer: WholeRequests | None, config: Config) -> Heads | None:
        """Returns the known heads of requests to `answerer`.

        Returns None if there is no answerer, or if the server has options that `Heads` does not support.
        """
        if answerer is None or config.root_path or config.limit_concurrency is not None:
            return None
        if self._heads is None or self._heads.answerer is not answerer:
            self._heads = Heads(answerer, config)
        return self._heads
