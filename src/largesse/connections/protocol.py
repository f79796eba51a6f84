"""One connection: uvicorn's HTTP/1.1 on httptools, with limits on requests.

- Trailers after a body are dropped, so that none is taken for an API key or a header of a proxy.
- The head of a request, and a body with its chunks, have a largest size. The manager limits their time.
- Invalid HTTP is answered with a problem, after the answers to earlier requests.
"""

import asyncio
import enum
import os
import re
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from largesse.base.errors import InvalidRequest, Problem
from largesse.connections.manager import CLOSED, ConnectionManager
from largesse.web.kit.asgi import head_of, lines_of
from largesse.web.kit.body import MAX_BODY_BYTES
from largesse.web.kit.headers import MAX_HEADER_BYTES
from largesse.web.kit.problems import HeadersTooLarge, TooLarge, problem_reply

# The largest head. Twice the limit of headers, to leave room for the request line and separators.
_MAX_HEAD_BYTES = 2 * MAX_HEADER_BYTES
# The largest body, including the sizes of its chunks and its trailers.
_MAX_WRAPPED_BODY_BYTES = 4 * MAX_BODY_BYTES
# Parsing a chunk of any size takes more than a microsecond, and nothing else runs meanwhile.
# So a body may have FREE_CHUNKS chunks, and one more for each CHUNK_BYTES of its bytes.
FREE_CHUNKS = 1_000
CHUNK_BYTES = 64
# How long to wait before such a body is refused. Reading it took a millisecond or more, so its sender must not try again at once.
REFUSES_CHUNKS_AFTER_S = 1.0
MAX_TRAILERS = 100
# A host and a port as RFC 3986 writes them. It may be empty.
HOST = re.compile(rb"[A-Za-z0-9._~!$&'()*+,;=%:\[\]-]*")
# How many requests may wait for the answers before them.
MAX_PIPELINED = 100
_MALFORMED = CLOSED.labels("malformed")


class _Reads(enum.Enum):
    NOTHING = enum.auto()  # between two requests
    HEAD = enum.auto()
    BODY = enum.auto()


class _ManyChunks(InvalidRequest):
    """A body with too many small chunks."""


class _Trailers(list[tuple[bytes, bytes]]):
    """Drops the trailers of a body. Raises InvalidRequest for too many: each would cost as much as a small chunk."""

    def __init__(self) -> None:
        super().__init__()
        self._dropped = 0

    def append(self, _: tuple[bytes, bytes]) -> None:
        self._dropped += 1
        if self._dropped > MAX_TRAILERS:
            raise InvalidRequest(f"The body has more than {MAX_TRAILERS} trailers.")


class _Joined:
    """Writes an answer. The head waits for the first part of the body, and both are sent in one system call.

    ASGI requires this too: an answer must not begin before a part of its body is there.
    """

    __slots__ = ("_head", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head: bytes | None = None  # None before an answer, empty after it was written

    def write(self, data: bytes) -> None:
        if self._head:
            self._transport.write(self._head + data)
            self._head = b""
        elif self._head is None and not data.startswith(b"HTTP/1.1 1"):  # 100 Continue is sent at once
            self._head = data
        else:
            self._transport.write(data)

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def close(self) -> None:
        self._transport.close()


class Connection(HttpToolsProtocol):
    """A caller's connection, which a manager watches: see `Managed`."""

    def __init__(self, manager: ConnectionManager, **uvicorns: Any) -> None:
        super().__init__(**uvicorns)
        self._manager = manager
        self._reads = _Reads.NOTHING
        self._bytes = 0  # bytes received for the current request, without those that came together with its first byte
        self._chunks = 0  # chunks of the current body
        self._body_bytes = 0  # bytes of the current body, without the sizes of its chunks
        self._is_broken = False  # bytes that arrive are discarded
        self._refuses_late = False  # a body with too many chunks gets its refusal after a moment

    @property
    def descriptor(self) -> int:
        """The file descriptor of the socket."""
        number: int = self.transport.get_extra_info("socket").fileno()
        return number

    @property
    def unread_bytes(self) -> int:
        """The bytes of answers that the client has not read."""
        return self.transport.get_write_buffer_size()

    @property
    def said_nothing(self) -> bool:
        """Whether no part of a request has arrived since the last request."""
        return self._reads is _Reads.NOTHING

    # Calls from the manager

    def end(self) -> None:
        """Closes after the client has read its answers."""
        self.transport.close()
        if self.unread_bytes:
            self._manager.await_reading(self)

    def abort(self) -> None:
        """Closes at once."""
        self.transport.abort()

    def give_way(self) -> None:
        """Closes at once, to make room for another connection, even if the client has not read everything."""
        if self.unread_bytes:
            self.transport.abort()
        else:
            self.transport.close()

    def read_on(self) -> None:
        """Reads on after a pause."""
        if not self.transport.is_closing():
            self.flow.resume_reading()

    def refuse(self, problem: Problem, *, at_once: bool = False) -> None:
        """Stops reading, answers `problem` if that is still possible, and closes.

        If earlier requests have no answer yet, they get theirs, and this one gets none. `at_once` does not wait until the
        client has read the answer.
        """
        if self._is_broken or self.transport.is_closing():
            self.end()
            return
        self._is_broken = True
        if self._is_answered():
            # A request that is already answered gets no second answer.
            self._part(None if self._reads is _Reads.BODY else problem, at_once=at_once)
        elif self._reads is not _Reads.BODY:
            self.cycle.keep_alive = False
        elif self.pipeline:
            self.pipeline.popleft()  # drop the request of this body; the requests before it get their answers
        else:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            self._part(None if self.cycle.response_started else problem)

    def _part(self, problem: Problem | None, *, at_once: bool = False) -> None:
        """Ends the connection after the answer `problem`, or without an answer."""
        if problem is None:
            self.end()
            return
        self._write(problem)
        if at_once:
            self.end()
            return
        # Closing with unread bytes resets the socket, and the client might never see the answer.
        self.transport.write_eof()
        self._manager.await_head(self)

    def _is_answered(self) -> bool:
        """Returns whether every request whose head was read has been answered."""
        return bool(getattr(self.cycle, "response_complete", True))  # None before the first request

    def _write(self, problem: Problem) -> None:
        reply = problem_reply(problem)
        head = head_of(reply, os.urandom(8).hex().encode())
        headers = [
            *self.server_state.default_headers,
            *(header for header in head if header[0] != b"connection"),
            (b"connection", b"close"),
        ]
        self.transport.write(STATUS_LINE[reply.status] + lines_of(headers) + b"\r\n" + reply.body)

    # Calls from the transport

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Registers the connection with the manager."""
        super().connection_made(transport)
        # On a socket for IPv4 and IPv6, 127.0.0.1 appears as ::ffff:127.0.0.1, which would not match a trusted proxy.
        if self.client is not None:
            self.client = (self.client[0].removeprefix("::ffff:"), self.client[1])
        self._manager.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends the current request, and removes the connection from the manager."""
        super().connection_lost(exc)
        self._manager.leave(self)

    def data_received(self, data: bytes) -> None:
        """Feeds the parser. Refuses invalid HTTP, and heads and bodies that are too large."""
        if self._is_broken:
            self._discard()
            return
        if self._refuses_late:  # reading had been resumed, as the request waited for more of its body
            self.flow.pause_reading()
            return
        scope = self.scope
        try:
            self._parse(data)
        except httptools.HttpParserError as error:
            self._refuse_malformed(error)
            return
        self._bytes = self._bytes + len(data) if self.scope is scope else 0
        if self._reads is _Reads.HEAD:
            if self._is_answered():
                self._manager.await_head(self)
            if self._bytes > _MAX_HEAD_BYTES:
                self.refuse(HeadersTooLarge(f"The head of the request has more than {_MAX_HEAD_BYTES} bytes."))
        elif self._reads is _Reads.BODY and self._bytes > _MAX_WRAPPED_BODY_BYTES:
            self.refuse(TooLarge(f"The body with its chunks has more than {_MAX_WRAPPED_BODY_BYTES} bytes."))
        elif self._reads is _Reads.BODY and self._is_answered():
            self._discard()

    def _parse(self, data: bytes) -> None:
        """Feeds the parser. Ignores requests for another protocol (RFC 9110, 7.8).

        Java's client and `curl --http2` ask for HTTP/2 with every request, also with a body. The parser reads no body after
        `Upgrade`, so it gets the head again without that header.
        """
        while data:
            read, data = data, b""
            try:
                self.parser.feed_data(read)
            except httptools.HttpParserUpgrade as upgrade:
                if self._asks_for_upgrade():
                    data = self._head_without_upgrade() + read[upgrade.args[0] :]

    def _head_without_upgrade(self) -> bytes:
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()
        lines = lines_of([header for header in self.headers if header[0] != b"upgrade"])
        return b"%b %b HTTP/%b\r\n%b\r\n" % (method, self.url, version, lines)

    def _asks_for_upgrade(self) -> bool:
        """Returns whether the current request asks for another protocol, except by CONNECT: after its head there is no HTTP."""
        return bool(self.parser.should_upgrade()) and self.parser.get_method() != b"CONNECT"

    def _refuse_malformed(self, error: httptools.HttpParserError) -> None:
        _MALFORMED.inc()
        if self._reads is _Reads.BODY and self._is_answered():
            # Its sender may not have read the answer yet, and closing now would reset the socket.
            self._is_broken = True
            self._discard()
            return
        refusal = error.__context__
        if isinstance(refusal or error, httptools.HttpParserInvalidURLError):
            refusal = InvalidRequest(
                "The address cannot be read: percent-encode what is not ASCII, such as `%C3%A9` for é, and send at most 65535 bytes."
            )
        elif not isinstance(refusal, InvalidRequest):
            refusal = InvalidRequest("The request cannot be read as HTTP/1.1.")
        if isinstance(refusal, _ManyChunks):
            self._refuses_late = True
            self.flow.pause_reading()
            self.loop.call_later(REFUSES_CHUNKS_AFTER_S, self._refuse_late, refusal)
        else:
            self.refuse(refusal)

    def _refuse_late(self, refusal: Problem) -> None:
        self.read_on()
        self.refuse(refusal)

    def _discard(self) -> None:
        """Reads no more for a moment, as no request waits for what was read."""
        if not self.transport.is_closing():
            self.flow.pause_reading()
            self._manager.put_off(self)

    def pause_writing(self) -> None:
        """Starts the manager's time limit for a client that reads too slowly."""
        super().pause_writing()
        self._manager.await_reading(self)

    def resume_writing(self) -> None:
        """Ends the time limit, as the client has read."""
        super().resume_writing()
        if not self.transport.is_closing():
            self._manager.was_read(self)

    # Calls from the parser

    def on_message_begin(self) -> None:
        """Begins the head of a request. The connection is no longer idle."""
        self._manager.idle.pop(self, None)
        self._reads = _Reads.HEAD
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Begins the request. Its answer is written in as few pieces as possible.

        Raises InvalidRequest if too many requests wait, and unless the request has exactly one valid Host header (RFC 9112, 3.2): two
        programs might each use a different one. HTTP/1.0 needs none.
        """
        if self._asks_for_upgrade():
            return  # `_parse` feeds the head again
        if len(self.pipeline) >= MAX_PIPELINED:
            raise InvalidRequest(f"More than {MAX_PIPELINED} requests wait for the answers before them.")
        hosts = [value for name, value in self.headers if name == b"host"]
        if len(hosts) > 1:
            raise InvalidRequest("The request has more than one `Host` header.")
        if not hosts and self.parser.get_http_version() not in ("0.9", "1.0"):
            raise InvalidRequest("The request has no `Host` header, which HTTP/1.1 requires.")
        if hosts and not HOST.fullmatch(hosts[0]):
            raise InvalidRequest("The `Host` header is not a name or address with an optional port.")
        self._manager.has_head(self)
        super().on_headers_complete()
        self._reads = _Reads.BODY
        self._chunks = self._body_bytes = 0
        # The request has its headers. From now on, headers of the parser are trailers.
        self.headers = _Trailers()
        if self._manager.is_draining:
            self.cycle.keep_alive = False
        if self.scope["method"] != "HEAD":  # the answer to HEAD has no body
            self.cycle.transport = _Joined(self.transport)  # type: ignore[assignment]

    def on_chunk_header(self) -> None:
        """Counts the chunks of a body. Raises InvalidRequest if they are too many and too small."""
        self._chunks += 1
        if self._chunks > FREE_CHUNKS + self._body_bytes // CHUNK_BYTES:
            raise _ManyChunks(
                f"The body has too many small chunks: after the first {FREE_CHUNKS}, they must have {CHUNK_BYTES} bytes on average."
            )

    def on_body(self, body: bytes) -> None:
        """Counts the bytes of a body."""
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Ends the request. If it was answered already, the connection is idle."""
        if self._asks_for_upgrade():
            return
        self._reads = _Reads.NOTHING
        super().on_message_complete()
        if self.cycle.response_complete and not self.transport.is_closing():
            self._manager.rest(self)

    # Calls from the request

    def on_response_complete(self) -> None:
        """Continues after an answer with the next request of the pipeline, or as an idle connection, or closes."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            if self.unread_bytes:
                self._manager.await_reading(self)
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self._is_broken:
            self.end()
        elif self._reads is _Reads.NOTHING:
            self._manager.rest(self)
        else:
            self._manager.await_head(self)

    def shutdown(self) -> None:
        """Ends after the current request. The server calls this when it stops.

        uvicorn would close at once if it has read no request. But a request may be on its way, and its caller would see a broken
        connection.
        """
        self._manager.drain()
        if not self._is_answered():
            self.cycle.keep_alive = False
