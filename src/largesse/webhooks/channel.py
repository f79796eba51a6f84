"""One HTTP/1.1 connection that posts and reads answers: no redirects, no cookies, no decompression, bounded memory.

A general client does more than a delivery needs, and takes four times as long for a request (docs/decisions/0010-webhook-http-client.md).
"""

import asyncio
from typing import cast

import httptools
import msgspec

KEPT_BYTES = 2_048  # the start of an answer's body that is stored, by default
_MAX_HEAD_BYTES = 65_536  # for the status line and headers, including interim answers
_MAX_BODY_BYTES = 65_536  # a longer body is cut off
# A body with its chunks may be so many times as long: the parser reads endless extensions of chunks, and endless trailers.
_MOST_FRAMING = 2


class BadAnswerError(Exception):
    """The answer is not HTTP, or its head is too large."""


class Response(msgspec.Struct, frozen=True):
    """A receiver's answer: its status, its `Retry-After` header if there is one, and the start of its body."""

    status: int
    retry_after: str | None
    body: bytes


class Channel(asyncio.Protocol):
    """A connection. `post` sends one request at a time. `reusable` tells whether it can send another.

    It stores `kept_bytes` of the body of an answer.
    """

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._kept_bytes = kept_bytes
        self._most_bytes = max(kept_bytes, _MAX_BODY_BYTES)
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._answered: asyncio.Future[Response] | None = None
        self._bytes = 0  # of the whole answer
        self._in_body = False
        self._body = bytearray()
        self._body_bytes = 0
        self._retry_after: str | None = None
        self._open = False
        self.heard = False  # whether any byte of the answer has arrived

    @property
    def reusable(self) -> bool:
        """Whether it is open and has no current request."""
        return self._open and self._answered is None

    async def post(self, request: bytes, within_s: float) -> Response:
        """Sends a whole request and returns the answer. Raises BadAnswerError, ConnectionError or TimeoutError."""
        if not self.reusable or self._transport is None:
            raise ConnectionResetError("the connection is closed")
        loop = asyncio.get_running_loop()
        self._answered = loop.create_future()
        self.heard = False
        self._begin_message()
        self._bytes = 0
        self._transport.write(request)
        late = loop.call_later(within_s, self._fail, TimeoutError())
        try:
            return await self._answered
        except asyncio.CancelledError:
            self.abort()
            raise
        finally:
            late.cancel()
            self._answered = None

    def abort(self) -> None:
        """Drops the connection at once."""
        self._open = False
        if self._transport is not None:
            self._transport.abort()

    # asyncio's callbacks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio when the connection is open."""
        self._transport = cast("asyncio.Transport", transport)
        self._open = True

    def data_received(self, data: bytes) -> None:
        """Called by asyncio with new bytes. Ends the connection on bytes without a request, on invalid HTTP, and on a head or body beyond the limit."""
        if self._answered is None or self._answered.done():
            self.abort()  # bytes came without a request
            return
        self.heard = True
        self._bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._finish(keep=False)
        except httptools.HttpParserError:
            self._fail(BadAnswerError())
        if self._answered.done():
            return
        if self._in_body and self._bytes > _MAX_HEAD_BYTES + _MOST_FRAMING * self._most_bytes:
            self._finish(keep=False)
        elif not self._in_body and self._bytes > _MAX_HEAD_BYTES:
            self._fail(BadAnswerError())

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's callback
        """Called by asyncio when the connection is closed. An answer whose head was read still counts."""
        self._open = False
        if self._in_body:
            self._finish(keep=False)  # the status is known, so an incomplete body does not matter
        else:
            self._fail(ConnectionResetError("the connection was closed"))

    # httptools' callbacks

    def on_message_begin(self) -> None:
        """Called by httptools when an answer begins. Ends the connection if there is no request for it."""
        if self._answered is None or self._answered.done():
            self.abort()  # a second answer to one request

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by httptools for each header. Stores only `Retry-After`."""
        if name.lower() == b"retry-after":
            self._retry_after = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Called by httptools at the end of a head. A body follows, unless the answer is an interim one."""
        self._in_body = self._parser.get_status_code() >= 200

    def on_body(self, body: bytes) -> None:
        """Called by httptools for each part of a body. Stores the start of the body, and stops reading beyond the limit."""
        self._body += body[: self._kept_bytes - len(self._body)]
        self._body_bytes += len(body)
        if self._body_bytes > self._most_bytes:
            self._finish(keep=False)

    def on_message_complete(self) -> None:
        """Called by httptools at the end of an answer."""
        if self._in_body:
            self._finish(keep=self._parser.should_keep_alive())
        else:
            self._begin_message()  # an interim answer (RFC 9110, 15.2); the final one follows

    def _begin_message(self) -> None:
        self._in_body = False
        self._body = bytearray()
        self._body_bytes = 0
        self._retry_after = None

    def _finish(self, *, keep: bool) -> None:
        if self._answered is not None and not self._answered.done():
            self._answered.set_result(Response(self._parser.get_status_code(), self._retry_after, bytes(self._body)))
        self._in_body = False
        if not keep:
            self.abort()

    def _fail(self, error: Exception) -> None:
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(error)
        self.abort()
