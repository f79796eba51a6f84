"""Reads request bodies as they arrive, within limits on their size and time, and on the memory of each sender and of the process.

Without the limits on memory, a sender could fill it by starting many large bodies and ending none. The first 64 KiB of a body do not count,
because the server reads that much ahead anyway. So small forms and orders are read even while there are many large bodies.
`read_body` reads the JSON of API callers, `largesse.web.kit.forms` the forms of browsers.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Hashable
from types import TracebackType
from typing import Self

import msgspec

from largesse.base.errors import InvalidRequest, TooManyRequests, Unavailable
from largesse.web.kit.asgi import Message, Receive
from largesse.web.kit.headers import Headers
from largesse.web.kit.problems import SlowRequest, TooLarge, UnsupportedBody

FREE_BYTES = 64 * 1024
BYTES_EACH = 32 * 1024 * 1024
BYTES_IN_ALL = 128 * 1024 * 1024
_RETRY_AFTER_S = 5.0


class TooManyBodies(TooManyRequests):
    """The bodies of a sender would take more memory than one sender may use."""


class BodyMemory:
    """Counts the bytes of bodies in memory."""

    def __init__(self, *, each: int = BYTES_EACH, in_all: int = BYTES_IN_ALL) -> None:
        self._each = each
        self._in_all = in_all
        self._bytes: Counter[Hashable] = Counter()

    @property
    def held_bytes(self) -> int:
        """The bytes in memory, of all senders."""
        return self._bytes.total()

    def share(self, sender: Hashable) -> BodyShare:
        """Returns the memory of one body, for a `with` block that ends when the body is no longer needed."""
        return BodyShare(self, sender)

    def take(self, sender: Hashable, count: int) -> None:
        """Counts bytes for a sender. Raises TooManyBodies or Unavailable without counting them."""
        if self._bytes[sender] + count > self._each:
            raise TooManyBodies(
                f"At most {self._each} bytes of your requests are read at once.", retry_after_s=_RETRY_AFTER_S
            )
        if self.held_bytes + count > self._in_all:
            raise Unavailable("Too many large requests are being read.", retry_after_s=_RETRY_AFTER_S)
        self._bytes[sender] += count

    def give_back(self, sender: Hashable, count: int) -> None:
        """Subtracts bytes that were taken."""
        self._bytes[sender] -= count
        if not self._bytes[sender]:
            del self._bytes[sender]


class BodyShare:
    """The memory of one body."""

    def __init__(self, memory: BodyMemory, sender: Hashable) -> None:
        self._memory = memory
        self._sender = sender
        self._size = self._taken = 0

    def add(self, count: int) -> None:
        """Counts more bytes. Raises TooManyBodies or Unavailable."""
        self._size += count
        more = max(0, self._size - FREE_BYTES) - self._taken
        if more:
            self._memory.take(self._sender, more)
            self._taken += more

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._taken:
            self._memory.give_back(self._sender, self._taken)
            self._taken = 0


MAX_BODY_BYTES = 4 * 1024 * 1024
BODY_TIMEOUT_S = 30
BODY_PAUSE_S = 10
_JSON_TYPES = (b"application/json", b"text/json")


class BodyLimits(msgspec.Struct, frozen=True):
    """The limits of a body: its bytes, the seconds until it is whole, and the longest pause in it."""

    most_bytes: int
    whole_s: float
    pause_s: float


JSON_LIMITS = BodyLimits(MAX_BODY_BYTES, BODY_TIMEOUT_S, BODY_PAUSE_S)


async def read_body(headers: Headers, receive: Receive, share: BodyShare | None = None) -> bytes:
    """Returns the whole body if its headers declare JSON. Raises TooLarge, UnsupportedBody, SlowRequest, and the errors of `share`."""
    check_headers(headers)
    return await receive_body(receive, JSON_LIMITS, share)


def check_headers(headers: Headers) -> None:
    """Raises TooLarge or UnsupportedBody if the headers declare a body that is too large or not JSON."""
    length = (headers.content_length or b"").lstrip(b"0")  # Python cannot convert thousands of zeros
    if length.isdigit() and int(length) > MAX_BODY_BYTES:
        raise TooLarge(f"The body has {int(length)} bytes; at most {MAX_BODY_BYTES} are read.")
    media_type = headers.content_type.split(b";", 1)[0].strip().lower()
    if media_type and media_type not in _JSON_TYPES and not media_type.endswith(b"+json"):
        raise UnsupportedBody("The `Content-Type` must be application/json.")
    if headers.content_encoding.strip().lower() not in {b"", b"identity"}:
        raise UnsupportedBody("The body must be sent without a `Content-Encoding`.")


async def receive_body(receive: Receive, limits: BodyLimits, share: BodyShare | None = None) -> bytes:
    """Returns the bytes of a body. Raises the errors of `BodyStream.next`."""
    stream = BodyStream(receive, limits, share)
    chunks: list[bytes] = []
    while (chunk := await stream.next()) is not None:
        chunks.append(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


class BodyStream:
    """A body as it arrives, within its limits. Only the time spent waiting for the sender counts, not the work between two chunks."""

    def __init__(self, receive: Receive, limits: BodyLimits, share: BodyShare | None = None) -> None:
        self._receive = receive
        self._limits = limits
        self._share = share
        self._size = 0
        self._is_whole = False
        self._whole_left_s = limits.whole_s
        self._pause_left_s = limits.pause_s

    async def next(self) -> bytes | None:
        """Returns the next chunk; None at the end.

        Raises TooLarge, SlowRequest, InvalidRequest if the connection ended first, and the errors of its share of memory.
        """
        if self._is_whole:
            return None
        message = await self._next_message()
        if message["type"] == "http.disconnect":
            raise InvalidRequest("The connection ended before the body did.")
        chunk: bytes = message.get("body", b"")
        self._size += len(chunk)
        if self._size > self._limits.most_bytes:
            raise TooLarge(f"At most {self._limits.most_bytes} bytes of a body are read.")
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
            whole_s, pause_s = self._limits.whole_s, self._limits.pause_s
            raise SlowRequest(
                f"The body did not arrive within {whole_s:g} seconds, or nothing of it for {pause_s:g}."
            ) from None
        finally:
            waited_s = loop.time() - began_s
            self._whole_left_s -= waited_s
            self._pause_left_s -= waited_s
