"""Reads the request headers that we use, within their limit. Checks the host name for pages that only local users may open."""

import re
from collections.abc import Collection, Iterable, Sequence

import msgspec

from largesse.base.hosts import NOT_OURS, is_own_host
from largesse.customers.authenticator import KEY_IN_TEXT
from largesse.web.kit.problems import HeadersTooLarge, Misdirected

MAX_HEADER_BYTES = 32 * 1024
# Other APIs take the key of a repeated request from these. Here it is `externalReference`: a caller who sends only the header would pay twice.
_IDEMPOTENCY = {b"idempotency-key": "Idempotency-Key", b"x-idempotency-key": "X-Idempotency-Key"}
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")


class Headers(msgspec.Struct):
    """The request headers that we use. `repeated` names key headers that were sent twice, `ignored` headers that callers may believe to work."""

    authorization: bytes | None = None
    api_key: bytes | None = None
    content_type: bytes = b""
    content_length: bytes | None = None
    content_encoding: bytes = b""
    request_id: bytes | None = None
    size: int = 0
    repeated: list[str] = []
    ignored: list[str] = []


def read_headers(raw: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Returns the headers that we use, without checking them."""
    headers = Headers()
    for name, value in raw:
        headers.size += len(name) + len(value)
        if name == b"authorization":
            _note_repeated(headers, "Authorization", headers.authorization)
            headers.authorization = value
        elif name == b"x-api-key":
            _note_repeated(headers, "X-Api-Key", headers.api_key)
            headers.api_key = value
        elif name == b"content-type":
            headers.content_type = value
        elif name == b"content-length":
            headers.content_length = value
        elif name == b"content-encoding":
            headers.content_encoding = value
        elif name == b"x-request-id" and _may_be_logged(value):
            headers.request_id = value
        elif name in _IDEMPOTENCY:
            headers.ignored.append(_IDEMPOTENCY[name])
    return headers


def _note_repeated(headers: Headers, name: str, earlier: bytes | None) -> None:
    if earlier is not None:
        headers.repeated.append(name)


def _may_be_logged(request_id: bytes) -> bool:
    return _REQUEST_ID.fullmatch(request_id) is not None and KEY_IN_TEXT.search(request_id.decode()) is None


def check_size(headers: Headers) -> None:
    """Raises HeadersTooLarge for headers of more than 32 KiB."""
    if headers.size > MAX_HEADER_BYTES:
        raise HeadersTooLarge(f"The headers have {headers.size} bytes; at most {MAX_HEADER_BYTES} are read.")


def require_own_host(hosts: Collection[str], given: Sequence[str], connected_to: str = "") -> None:
    """Raises Misdirected unless `given` is a single Host header that names one of our hosts, as `is_own_host` checks."""
    if not is_own_host(hosts, given, connected_to):
        raise Misdirected(NOT_OURS)
