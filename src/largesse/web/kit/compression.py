"""Compresses pages, files and styles with gzip for clients that accept it.

Only answers to GET are compressed, since the answer to a form may show a key or a code. An attacker who can choose part of a page and see
its compressed length must not learn the rest (BREACH). So form tokens are new for each page, and the gzip header of each answer has a random
length. See docs/decisions/0053-compression.md.
"""

import asyncio
import os
import re
import struct
import zlib

from largesse.web.kit.asgi import Message, Scope, Send

LEVEL = 5
_MIN_BYTES = 1_000  # compressing a smaller body gains nothing
_ON_LOOP_BYTES = 16 * 1024  # more is compressed in a thread: zlib releases the interpreter lock
_MOST_PADDING = 100
_TYPES = re.compile(rb"(text/|application/(.*\+)?json\b|image/svg\+xml)")
_MEMBER = re.compile(r"\s*([\w*-]+)\s*(?:;\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*)?")


def takes_gzip(accept_encoding: str) -> bool:
    """Returns whether a client with this header accepts gzip (RFC 9110, section 12.5.3)."""
    weights: dict[str, float] = {}
    for member in accept_encoding.split(","):
        if found := _MEMBER.fullmatch(member):
            weights[found[1].lower()] = float(found[2] or 1)
    return weights.get("gzip", weights.get("*", 0.0)) > 0


def gzipped(body: bytes, level: int = LEVEL, *, padding: bytes = b"") -> bytes:
    """Returns a body as gzip. `padding` fills the field of the file name, which decoders skip."""
    stream = _Gzip(level, padding)
    return stream.add(body) + stream.end()


class _Gzip:
    """A gzip stream (RFC 1952)."""

    def __init__(self, level: int, padding: bytes) -> None:
        self._head = b"\x1f\x8b\x08" + (b"\x08" if padding else b"\0") + b"\0\0\0\0\0\xff"
        self._head += padding + b"\0" if padding else b""
        self._deflate = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
        self._crc = self._size = 0

    def add(self, data: bytes) -> bytes:
        """Compresses data. Returns the bytes that are ready to send."""
        self._crc = zlib.crc32(data, self._crc)
        self._size += len(data)
        head, self._head = self._head, b""
        return head + self._deflate.compress(data)

    def end(self) -> bytes:
        """Returns the last bytes."""
        return self._deflate.flush() + struct.pack("<LL", self._crc, self._size & 0xFFFFFFFF)


class Compressing:
    """Sends one answer, compressed if the client accepts gzip and it makes the answer smaller."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._send = send
        self._is_read = scope["method"] in {"GET", "HEAD"}
        given = b",".join(value for name, value in scope["headers"] if name == b"accept-encoding")
        self._takes_gzip = takes_gzip(given.decode("latin-1"))
        self._start: Message | None = None  # the start of the answer, held until the first part of the body
        self._stream: _Gzip | None = None

    async def __call__(self, message: Message) -> None:
        """Sends an ASGI message of the answer."""
        if message["type"] == "http.response.start":
            self._start = message
            return
        start, self._start = self._start, None
        if start is not None:
            self._begin(start, message)
            if self._stream is not None and not message.get("more_body"):
                message = {**message, "body": await self._compressed(message)}
                start["headers"].append((b"content-length", str(len(message["body"])).encode()))
                self._stream = None
            await self._send(start)
        if self._stream is not None:
            message = {**message, "body": await self._compressed(message)}
            if not message["body"] and message.get("more_body"):
                return
        await self._send(message)

    def _begin(self, start: Message, first: Message) -> None:
        headers = {name.lower(): value for name, value in start["headers"]}
        is_text = _TYPES.match(headers.get(b"content-type", b"")) and b"content-encoding" not in headers
        is_whole = not first.get("more_body")
        if not is_text or not self._is_read or (is_whole and len(first.get("body", b"")) < _MIN_BYTES):
            return
        vary = headers.get(b"vary")
        changed = [(b"vary", b"Accept-Encoding" if vary is None else vary + b", Accept-Encoding")]
        dropped = {b"vary"}
        if self._takes_gzip:
            self._stream = _Gzip(LEVEL, os.urandom(1 + os.urandom(1)[0] % _MOST_PADDING).hex().encode())
            changed.append((b"content-encoding", b"gzip"))
            dropped.add(b"content-length")
        unchanged = [one for one in start["headers"] if one[0].lower() not in dropped]
        start["headers"] = [*unchanged, *changed]

    async def _compressed(self, message: Message) -> bytes:
        stream, body = self._stream, message.get("body", b"")
        assert stream is not None, "it was begun"

        def compress() -> bytes:
            return stream.add(body) + (b"" if message.get("more_body") else stream.end())

        return compress() if len(body) <= _ON_LOOP_BYTES else await asyncio.to_thread(compress)
