"""One connection: uvicorn's HTTP/1.1 on httptools, held to what a request may be.

- What comes after a body is no header: trailers are dropped, so that none passes for a key or a proxy's word.
- A head, and what a body is wrapped in, have a size; the manager sees to the time they take.
- What cannot be read as HTTP is answered with a problem, and after the answers that are owed.
"""

from __future__ import annotations

import asyncio
import enum
import os
from functools import partial
from typing import TYPE_CHECKING, Any

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from largesse.base.errors import InvalidRequest, Problem
from largesse.connections import metrics
from largesse.web.kit.body import MAX_BODY_BYTES
from largesse.web.kit.headers import MAX_HEADER_BYTES
from largesse.web.kit.problems import HeadersTooLarge, TooLarge, problem_reply
from largesse.web.kit.replies import head_of, lines_of
from largesse.web.kit.requests import NAME as EXCHANGE

if TYPE_CHECKING:
    from largesse.connections.manager import ConnectionManager

# More than headers that are answered in full detail may have, for the request line and what stands between them.
_MAX_HEAD_BYTES = 2 * MAX_HEADER_BYTES
# With the sizes of its chunks and the trailers.
_MAX_WRAPPED_BODY_BYTES = 4 * MAX_BODY_BYTES


class _Reads(enum.Enum):
    NOTHING = enum.auto()  # between two requests
    HEAD = enum.auto()
    BODY = enum.auto()


class _Joined:
    """What an answer is written to: its head waits for the first of its body, and both leave in one system call.

    ASGI wants it so, too: an answer does not begin before there is something of its body.
    """

    __slots__ = ("_head", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head: bytes | None = None  # empty once it was written

    def write(self, data: bytes) -> None:
        if self._head:
            self._transport.write(self._head + data)
            self._head = b""
        elif self._head is None and not data.startswith(b"HTTP/1.1 1"):  # 100 Continue comes before
            self._head = data
        else:
            self._transport.write(data)

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def close(self) -> None:
        self._transport.close()


class Connection(HttpToolsProtocol):
    """A caller's connection."""

    def __init__(self, manager: ConnectionManager, **uvicorns: Any) -> None:
        super().__init__(**uvicorns)
        self._manager = manager
        self._reads = _Reads.NOTHING
        self._bytes = 0  # of the request that is being read, as they came, but for those that came with its first
        self._is_broken = False  # nothing more is read

    @property
    def unread_bytes(self) -> int:
        """What was answered and waits for the client to read it."""
        return self.transport.get_write_buffer_size()

    @property
    def said_nothing(self) -> bool:
        """Whether nothing of a request has come since the last one."""
        return self._reads is _Reads.NOTHING

    # What the manager asks for

    def end(self) -> None:
        """Closes once what was answered has been read."""
        self.transport.close()
        if self.unread_bytes:
            self._manager.await_reading(self)

    def abort(self) -> None:
        """Closes at once."""
        self.transport.abort()

    def give_way(self) -> None:
        """Closes so that its place is free, whatever the client has still to read."""
        if self.unread_bytes:
            self.transport.abort()
        else:
            self.transport.close()

    def refuse(self, problem: Problem, *, at_once: bool = False) -> None:
        """Reads no more, answers `problem` where that is still possible, and closes.

        Answers that are owed to earlier requests go first, and then there is none to this one. `at_once` does not wait
        until the client has seen the answer.
        """
        if self._is_broken or self.transport.is_closing():
            self.end()
            return
        self._is_broken = True
        if self._is_answered():
            # A request that had its answer gets no second one.
            self._part(None if self._reads is _Reads.BODY else problem, at_once=at_once)
        elif self._reads is not _Reads.BODY:
            self.cycle.keep_alive = False
        elif self.pipeline:
            self.pipeline.popleft()  # the request whose body it is; those before it are answered
        else:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            self._part(None if self.cycle.response_started else problem)

    def _part(self, problem: Problem | None, *, at_once: bool = False) -> None:
        """Ends with `problem`, or without a word."""
        if problem is None:
            self.end()
            return
        self._write(problem)
        if at_once:
            self.end()
            return
        # Closed with bytes unread, the socket would be reset, and the answer might never be seen.
        self.transport.write_eof()
        self._manager.await_head(self)

    def _is_answered(self) -> bool:
        """Whether every request that came whole, or had its head read, has had its answer."""
        return bool(getattr(self.cycle, "response_complete", True))  # before the first there is none

    def _write(self, problem: Problem) -> None:
        reply = problem_reply(problem)
        head = head_of(reply, os.urandom(8).hex().encode())
        headers = [
            *self.server_state.default_headers,
            *(header for header in head if header[0] != b"connection"),
            (b"connection", b"close"),
        ]
        self.transport.write(STATUS_LINE[reply.status] + lines_of(headers) + b"\r\n" + reply.body)

    def _answer(self, cycle: RequestResponseCycle, status: int, lines: bytes, body: bytes) -> bool:
        """Writes a whole answer, as an Exchange has it; False where the connection is to end with it, or its client is slow or gone."""
        if not cycle.keep_alive or cycle.disconnected or cycle.response_started or self.flow.write_paused:
            return False
        cycle.response_started = cycle.response_complete = True
        cycle.message_event.set()
        self.transport.write(
            b"%b%b%b\r\n%b" % (STATUS_LINE[status], lines_of(self.server_state.default_headers), lines, body)
        )
        cycle.on_response()
        return True

    # What the transport tells

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Has the manager watch it from its first moment on."""
        super().connection_made(transport)
        self._manager.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends the request under way, and the manager's watch."""
        super().connection_lost(exc)
        self._manager.leave(self)

    def data_received(self, data: bytes) -> None:
        """Feeds the parser; refuses what is no HTTP, and heads and bodies of more bytes than are read."""
        if self._is_broken:
            return
        scope = self.scope
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # answered as if it had not been asked for
        except httptools.HttpParserError as error:
            metrics.MALFORMED.inc()
            refusal = error.__context__
            if not isinstance(refusal, InvalidRequest):
                refusal = InvalidRequest("The request cannot be read as HTTP/1.1.")
            self.refuse(refusal)
            return
        self._bytes = self._bytes + len(data) if self.scope is scope else 0
        if self._reads is _Reads.HEAD:
            if self._is_answered():
                self._manager.await_head(self)
            if self._bytes > _MAX_HEAD_BYTES:
                self.refuse(HeadersTooLarge(f"The head of the request has more than {_MAX_HEAD_BYTES} bytes."))
        elif self._reads is _Reads.BODY and self._bytes > _MAX_WRAPPED_BODY_BYTES:
            self.refuse(TooLarge(f"The body with its chunks has more than {_MAX_WRAPPED_BODY_BYTES} bytes."))

    def pause_writing(self) -> None:
        """The client reads too slowly: the manager gives it until its time is up."""
        super().pause_writing()
        self._manager.await_reading(self)

    def resume_writing(self) -> None:
        """The client has read: its time begins anew."""
        super().resume_writing()
        if not self.transport.is_closing():
            self._manager.was_read(self)

    # What the parser tells

    def on_message_begin(self) -> None:
        """The head of a request begins; until it is whole, the connection is not idle."""
        self._manager.idle.pop(self, None)
        self._reads = _Reads.HEAD
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head is whole: the request begins, its answer written in as few pieces as there can be.

        Raises InvalidRequest for more than one Host header (RFC 9112, 3.2): two programs might each take another one.
        """
        if [name for name, _ in self.headers].count(b"host") > 1:
            raise InvalidRequest("The request has more than one `Host` header.")
        self._manager.has_head(self)
        super().on_headers_complete()
        self._reads = _Reads.BODY
        # The request keeps its list; what the parser calls headers from here on are trailers.
        self.headers = []
        if self._manager.is_draining:
            self.cycle.keep_alive = False
        if self.scope["method"] != "HEAD":  # whose answer has no body
            self.cycle.transport = _Joined(self.transport)  # type: ignore[assignment]

    def on_message_complete(self) -> None:
        """The request is whole. Where it had its answer before, the connection rests."""
        self._reads = _Reads.NOTHING
        super().on_message_complete()
        cycle = self.cycle
        if not cycle.response_complete:
            self.scope["extensions"] = {EXCHANGE: {"body": cycle.body, "answer": partial(self._answer, cycle)}}
        elif not self.transport.is_closing():
            self._manager.rest(self)

    # What the request under way tells

    def on_response_complete(self) -> None:
        """The answer is written: goes on with the next request of the pipeline, rests, or closes."""
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
        """Ends with the request that is under way, or may be, as the server asks for when it stops.

        uvicorn would close at once where it has read no request. One may have been sent all the same, and its caller would see
        the connection break.
        """
        self._manager.drain()
        if not self._is_answered():
            self.cycle.keep_alive = False
