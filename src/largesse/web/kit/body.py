"""Reading the body of a request as it comes: no longer than allowed, in bytes and in time.

Everything that is sent here is read so: JSON of callers (`read_body`), and what a browser posts (`largesse.web.kit.forms`).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from largesse.base.errors import InvalidRequest
from largesse.web.kit.asgi import Message, Receive
from largesse.web.kit.body_memory import BodyShare
from largesse.web.kit.headers import Headers
from largesse.web.kit.problems import SlowRequest, TooLarge, UnsupportedBody

MAX_BODY_BYTES = 4 * 1024 * 1024
BODY_TIMEOUT_S = 30
BODY_PAUSE_S = 10
_JSON_TYPES = (b"application/json", b"text/json")


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """What a body may be: so many bytes, whole after `whole_s` seconds, and without a pause of `pause_s`."""

    most_bytes: int
    whole_s: float
    pause_s: float


JSON_LIMITS = BodyLimits(MAX_BODY_BYTES, BODY_TIMEOUT_S, BODY_PAUSE_S)


async def read_body(headers: Headers, receive: Receive, share: BodyShare | None = None) -> bytes:
    """The whole body, JSON by what is said of it. Raises TooLarge, UnsupportedBody or SlowRequest, and what `share` does."""
    _check_said(headers)
    return await receive_body(receive, JSON_LIMITS, share)


def whole_body(headers: Headers, body: bytearray) -> bytes:
    """As `read_body`, of one that has come whole already."""
    _check_said(headers)
    if len(body) > MAX_BODY_BYTES:
        raise _too_large(MAX_BODY_BYTES)
    return bytes(body)


def _check_said(headers: Headers) -> None:
    """Raises TooLarge or UnsupportedBody by what the headers say of a body."""
    length = headers.content_length
    if length is not None and length.isdigit() and int(length) > MAX_BODY_BYTES:
        raise TooLarge(f"The body has {int(length)} bytes; at most {MAX_BODY_BYTES} are read.")
    media_type = headers.content_type.split(b";", 1)[0].strip().lower()
    if media_type and media_type not in _JSON_TYPES and not media_type.endswith(b"+json"):
        raise UnsupportedBody("The `Content-Type` must be application/json.")
    if headers.content_encoding.strip().lower() not in {b"", b"identity"}:
        raise UnsupportedBody("The body must be sent without a `Content-Encoding`.")


async def receive_body(receive: Receive, limits: BodyLimits, share: BodyShare | None = None) -> bytes:
    """Returns the bytes of a body. Raises what `BodyStream.next` does."""
    stream = BodyStream(receive, limits, share)
    chunks: list[bytes] = []
    while (chunk := await stream.next()) is not None:
        chunks.append(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


class BodyStream:
    """A body as it comes, held to its limits. Only the time that the sender takes counts, not what is done between two chunks."""

    def __init__(self, receive: Receive, limits: BodyLimits, share: BodyShare | None = None) -> None:
        self._receive = receive
        self._limits = limits
        self._share = share
        self._size = 0
        self._is_whole = False
        self._whole_left_s = limits.whole_s
        self._pause_left_s = limits.pause_s

    async def next(self) -> bytes | None:
        """Returns what comes next; None at the end.

        Raises TooLarge, SlowRequest, InvalidRequest for a body that the connection ended, and what its share of memory raises.
        """
        if self._is_whole:
            return None
        message = await self._next_message()
        if message["type"] == "http.disconnect":
            raise InvalidRequest("The connection ended before the body did.")
        chunk: bytes = message.get("body", b"")
        self._size += len(chunk)
        if self._size > self._limits.most_bytes:
            raise _too_large(self._limits.most_bytes)
        if self._share is not None:
            self._share.add(len(chunk))
        if chunk:
            self._pause_left_s = self._limits.pause_s
        self._is_whole = not message.get("more_body")
        return chunk

    async def _next_message(self) -> Message:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        try:
            async with asyncio.timeout(min(self._pause_left_s, self._whole_left_s)):
                return await self._receive()
        except TimeoutError:
            limits = self._limits
            raise SlowRequest(
                f"The body did not arrive within {limits.whole_s:g} seconds, or nothing of it for {limits.pause_s:g}."
            ) from None
        finally:
            waited_s = loop.time() - began_s
            self._whole_left_s -= waited_s
            self._pause_left_s -= waited_s


def _too_large(most_bytes: int) -> TooLarge:
    return TooLarge(f"At most {most_bytes} bytes of a body are read.")
