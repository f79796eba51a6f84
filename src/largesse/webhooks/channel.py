"""One HTTP/1.1 connection that posts and reads answers: no redirects, no cookies, no decompression, bounded memory.

A general client does much more for each request than a delivery wants, and takes four times as long for it
(docs/decisions/0010-webhook-http-client.md).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import cast

import httptools

KEPT_BYTES = 2_048  # of an answer's body
_MAX_HEAD_BYTES = 65_536  # status line and headers, interim answers included
_MAX_BODY_BYTES = 65_536  # an answer that goes on after these is cut off


class BadAnswerError(Exception):
    """What came back is not HTTP, or its head has no end."""


@dataclass(frozen=True, slots=True)
class Response:
    """A receiver's answer: its status, its Retry-After if it has one, and the start of its body."""

    status: int
    retry_after: str | None
    body: bytes


class Channel(asyncio.Protocol):
    """A connection. `post` uses it, one request at a time; `reusable` says whether it can have another.

    It stores `kept_bytes` of the body of an answer.
    """

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._kept_bytes = kept_bytes
        self._most_bytes = max(kept_bytes, _MAX_BODY_BYTES)
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._answered: asyncio.Future[Response] | None = None
        self._head_bytes = 0
        self._in_body = False
        self._body = b""
        self._body_bytes = 0
        self._retry_after: str | None = None
        self._open = False
        self.heard = False  # whether anything came back since the request

    @property
    def reusable(self) -> bool:
        """Whether it is open and no request is under way on it."""
        return self._open and self._answered is None

    async def post(self, request: bytes) -> Response:
        """Sends a whole request and returns the answer. Raises BadAnswerError or ConnectionError."""
        if not self.reusable or self._transport is None:
            raise ConnectionResetError("the connection is closed")
        self._answered = asyncio.get_running_loop().create_future()
        self.heard = False
        self._begin_message()
        self._head_bytes = 0
        self._transport.write(request)
        try:
            return await self._answered
        except asyncio.CancelledError:
            self.abort()
            raise
        finally:
            self._answered = None

    def abort(self) -> None:
        """Drops the connection at once."""
        self._open = False
        if self._transport is not None:
            self._transport.abort()

    # asyncio's callbacks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: there is a connection."""
        self._transport = cast("asyncio.Transport", transport)
        self._open = True

    def data_received(self, data: bytes) -> None:
        """asyncio: bytes came. What nobody asked for, what is no HTTP, and a head beyond the limit end the connection."""
        if self._answered is None or self._answered.done():
            self.abort()  # nothing was asked
            return
        self.heard = True
        if not self._in_body:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._finish(keep=False)
        except httptools.HttpParserError:
            self._fail(BadAnswerError())
        if not self._in_body and self._head_bytes > _MAX_HEAD_BYTES:
            self._fail(BadAnswerError())

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's callback
        """asyncio: the connection is gone; an answer whose status was there counts all the same."""
        self._open = False
        if self._in_body:
            self._finish(keep=False)  # a body that breaks off changes nothing: the status was there
        else:
            self._fail(ConnectionResetError("the connection was closed"))

    # httptools' callbacks

    def on_message_begin(self) -> None:
        """httptools: an answer begins; one too many ends the connection."""
        if self._answered is None or self._answered.done():
            self.abort()  # more came than was asked for

    def on_header(self, name: bytes, value: bytes) -> None:
        """httptools: one header; only `Retry-After` is stored."""
        if name.lower() == b"retry-after":
            self._retry_after = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """httptools: the head is whole; what follows is a body unless the answer is an interim one."""
        self._in_body = self._parser.get_status_code() >= 200

    def on_body(self, body: bytes) -> None:
        """httptools: a piece of the body; its start is stored, and beyond the limit no more is read."""
        self._body += body[: self._kept_bytes - len(self._body)]
        self._body_bytes += len(body)
        if self._body_bytes > self._most_bytes:
            self._finish(keep=False)

    def on_message_complete(self) -> None:
        """httptools: the answer is whole."""
        if self._in_body:
            self._finish(keep=self._parser.should_keep_alive())
        else:
            self._begin_message()  # an interim answer (RFC 9110, 15.2); the final one follows

    def _begin_message(self) -> None:
        self._in_body = False
        self._body = b""
        self._body_bytes = 0
        self._retry_after = None

    def _finish(self, *, keep: bool) -> None:
        if self._answered is not None and not self._answered.done():
            self._answered.set_result(Response(self._parser.get_status_code(), self._retry_after, self._body))
        self._in_body = False
        if not keep:
            self.abort()

    def _fail(self, error: Exception) -> None:
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(error)
        self.abort()
