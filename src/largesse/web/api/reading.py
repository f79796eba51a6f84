"""Reading a request: its headers, the key, the query and the body, each within its limits."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, cast
from urllib.parse import parse_qsl

import msgspec

from largesse.base.decoding import decode_query
from largesse.base.errors import (
    HeadersTooLarge,
    InvalidRequest,
    SlowRequest,
    TooLarge,
    Unauthorized,
    UnsupportedBody,
)
from largesse.web.api.asgi import Receive

MAX_BODY_BYTES = 4 * 1024 * 1024
BODY_TIMEOUT_S = 30
BODY_PAUSE_S = 10
MAX_HEADER_BYTES = 32 * 1024
_MAX_QUERY_PARAMETERS = 50
_KEPT_QUERIES = 1_000
_KEPT_QUERY_BYTES = 200
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_JSON_TYPES = (b"application/json", b"text/json")


class Headers(msgspec.Struct):
    """The request headers that matter here; `repeated` names those of the two key headers sent twice."""

    authorization: bytes | None = None
    api_key: bytes | None = None
    content_type: bytes = b""
    content_length: bytes | None = None
    content_encoding: bytes = b""
    request_id: bytes | None = None
    size: int = 0
    repeated: list[str] = []


def read_headers(raw: Iterable[tuple[bytes, bytes]]) -> Headers:
    """What the headers say; whether that is allowed, others judge."""
    headers = Headers()
    for name, value in raw:
        headers.size += len(name) + len(value)
        if name == b"authorization":
            if headers.authorization is not None:
                headers.repeated.append("Authorization")
            headers.authorization = value
        elif name == b"x-api-key":
            if headers.api_key is not None:
                headers.repeated.append("X-Api-Key")
            headers.api_key = value
        elif name == b"content-type":
            headers.content_type = value
        elif name == b"content-length":
            headers.content_length = value
        elif name == b"content-encoding":
            headers.content_encoding = value
        elif name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
            headers.request_id = value
    return headers


def check_size(headers: Headers) -> None:
    """Raises HeadersTooLarge."""
    if headers.size > MAX_HEADER_BYTES:
        raise HeadersTooLarge(f"The headers have {headers.size} bytes; at most {MAX_HEADER_BYTES} are read.")


def read_secret(headers: Headers) -> str:
    """The key's secret from the one header it came in. Raises InvalidRequest for two, Unauthorized for none."""
    if headers.repeated:
        raise InvalidRequest(f"The header {headers.repeated[0]} must be sent once.")
    if headers.authorization is not None and headers.api_key is not None:
        raise InvalidRequest("Send either Authorization or X-Api-Key, not both.")
    if headers.api_key is not None:
        return headers.api_key.decode("latin-1").strip()
    if headers.authorization is None:
        raise Unauthorized("Send an API key as `Authorization: Bearer …` or `X-Api-Key: …`.")
    scheme, _, secret = headers.authorization.decode("latin-1").strip().partition(" ")
    if scheme.lower() != "bearer":
        raise Unauthorized("The Authorization header must be `Bearer` and the API key.")
    return secret.strip()


def read_query(raw: bytes, wanted: type[Any]) -> Any:
    """The parameters of a query string as `wanted`. Raises InvalidRequest."""
    read = _read_query_once if len(raw) <= _KEPT_QUERY_BYTES else _read_query_anew
    return read(raw, wanted)


def _read_query_anew(raw: bytes, wanted: type[Any]) -> Any:
    return decode_query(_parse_query(raw), wanted)


# Callers ask the same again and again.
_read_query_once = cast("Callable[[bytes, type[Any]], Any]", lru_cache(_KEPT_QUERIES)(_read_query_anew))


def _parse_query(raw: bytes) -> dict[str, str]:
    if not raw:
        return {}
    try:
        pairs = parse_qsl(
            raw.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_MAX_QUERY_PARAMETERS,
        )
    except ValueError:
        raise InvalidRequest("The query string cannot be read.") from None
    query = dict(pairs)
    if len(query) != len(pairs):
        raise InvalidRequest("A query parameter must be sent once.")
    return query


async def read_body(headers: Headers, receive: Receive) -> bytes:
    """The whole body, at most MAX_BODY_BYTES. Raises TooLarge, UnsupportedBody or SlowRequest."""
    length = headers.content_length
    if length is not None and length.isdigit() and int(length) > MAX_BODY_BYTES:
        raise TooLarge(f"The body has {int(length)} bytes; at most {MAX_BODY_BYTES} are read.")
    media_type = headers.content_type.split(b";", 1)[0].strip().lower()
    if media_type and media_type not in _JSON_TYPES and not media_type.endswith(b"+json"):
        raise UnsupportedBody("The `Content-Type` must be application/json.")
    if headers.content_encoding.strip().lower() not in {b"", b"identity"}:
        raise UnsupportedBody("The body must be sent without a `Content-Encoding`.")
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    try:
        async with asyncio.timeout_at(began_s + BODY_PAUSE_S) as pause:
            return await _receive_body(
                receive,
                lambda: pause.reschedule(min(loop.time() + BODY_PAUSE_S, began_s + BODY_TIMEOUT_S)),
            )
    except TimeoutError:
        raise SlowRequest(
            f"The body did not arrive within {BODY_TIMEOUT_S} seconds, or nothing of it for {BODY_PAUSE_S}."
        ) from None


async def _receive_body(receive: Receive, on_progress: Callable[[], None]) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise InvalidRequest("The connection ended before the body did.")
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > MAX_BODY_BYTES:
            raise TooLarge(f"At most {MAX_BODY_BYTES} bytes of a body are read.")
        chunks.append(chunk)
        if not message.get("more_body"):
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)
        if chunk:
            on_progress()
