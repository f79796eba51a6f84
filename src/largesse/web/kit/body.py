"""Reading the body of a request as it comes: no longer than allowed, in bytes and in time.

Both that are sent here are read so: JSON of callers (`read_body`), and what a browser posts (`largesse.web.kit.forms`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from largesse.base.errors import InvalidRequest
from largesse.web.kit.asgi import Receive
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


async def read_body(headers: Headers, receive: Receive) -> bytes:
    """The whole body, JSON by what is said of it. Raises TooLarge, UnsupportedBody or SlowRequest."""
    _check_said(headers)
    return await receive_body(receive, JSON_LIMITS)


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
    media_type = headers.content_type
    media_type = headers.content_type.split(b";", 1)[0].strip().lower()
    if media_type and media_type not in _JSON_TYPES and not media_type.endswith(b"+json"):
        raise UnsupportedBody("The `Content-Type` must be application/json.")
    if headers.content_encoding.strip().lower() not in {b"", b"identity"}:
        raise UnsupportedBody("The body must be sent without a `Content-Encoding`.")


async def receive_body(receive: Receive, limits: BodyLimits) -> bytes:
    """The bytes of a body. Raises TooLarge, SlowRequest, or InvalidRequest for one that the connection ended."""
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    try:
        async with asyncio.timeout_at(began_s + limits.pause_s) as pause:
            return await _receive_chunks(
                receive,
                limits.most_bytes,
                lambda: pause.reschedule(min(loop.time() + limits.pause_s, began_s + limits.whole_s)),
            )
    except TimeoutError:
        raise SlowRequest(
            f"The body did not arrive within {limits.whole_s:g} seconds, or nothing of it for {limits.pause_s:g}."
        ) from None


async def _receive_chunks(receive: Receive, most_bytes: int, on_progress: Callable[[], None]) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise InvalidRequest("The connection ended before the body did.")
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > most_bytes:
            raise _too_large(most_bytes)
        chunks.append(chunk)
        if not message.get("more_body"):
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)
        if chunk:
            on_progress()


def _too_large(most_bytes: int) -> TooLarge:
    return TooLarge(f"At most {most_bytes} bytes of a body are read.")
