"""Reads the key and the query of a request, and the paging of lists."""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Annotated, Any, cast
from urllib.parse import parse_qsl, quote

import msgspec
from msgspec import Meta

from largesse.base.decoding import decode_body, decode_query, unknown_parameters
from largesse.base.errors import InvalidRequest, Problem, Unauthorized
from largesse.customers.authenticator import KEY_IN_TEXT
from largesse.web.kit.asgi import Receive
from largesse.web.kit.body import BODY_PAUSE_S, FREE_BYTES, BodyLimits, receive_body
from largesse.web.kit.headers import Headers
from largesse.web.kit.query import INT32


class Paging(msgspec.Struct, frozen=True):
    """A part of a list: `limit` items after the first `offset`."""

    offset: Annotated[int, Meta(ge=0, le=2_147_483_647, description="Items to skip")] = 0
    limit: Annotated[int, Meta(ge=1, le=200, description="Items to return at most")] = 100


class PagingNewestFirst(Paging, frozen=True):
    """A part of a list, newest first: `limit` items after the first `offset`, or older than `before`."""

    before: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=INT32,
                description="The last `id` of the page before. With it, `offset` does not count, and no item is repeated or left out when others "
                "are added or removed meanwhile",
            ),
        ]
        | None
    ) = None


_MAX_QUERY_PARAMETERS = 50
_CACHED_QUERIES = 1_000
_CACHED_QUERY_BYTES = 200
_NAMED = 10  # the most ignored names that the header lists
_LONGEST_NAME = 64
_HALF = re.compile("%.?$")
_UNREAD = BodyLimits(FREE_BYTES, BODY_PAUSE_S, BODY_PAUSE_S)


def read_secret(headers: Headers) -> str:
    """Returns the secret of the key from its header. Raises InvalidRequest for two headers, Unauthorized for none."""
    if headers.repeated:
        raise InvalidRequest(f"The header {headers.repeated[0]} must be sent once.")
    if headers.authorization is not None and headers.api_key is not None:
        raise InvalidRequest("Send either Authorization or X-Api-Key, not both.")
    if headers.api_key is not None:
        return _require_secret(headers.api_key.decode("latin-1"), "X-Api-Key")
    if headers.authorization is None:
        raise Unauthorized("Send an API key as `Authorization: Bearer …` or `X-Api-Key: …`.")
    scheme, _, secret = headers.authorization.decode("latin-1").strip().partition(" ")
    if scheme.lower() != "bearer":
        raise Unauthorized("The Authorization header must be `Bearer` and the API key.")
    return _require_secret(secret, "Authorization")


def _require_secret(text: str, header: str) -> str:
    """Returns the secret without blanks. A program whose setting is missing sends an empty one: raises Unauthorized."""
    secret = text.strip()
    if not secret:
        raise Unauthorized(f"The header {header} has no API key.")
    return secret


def read_query(raw: bytes, shape: type[Any]) -> tuple[Any, Sequence[str]]:
    """Returns the parameters of a query string as `shape`, and the names of unknown ones. Raises InvalidRequest."""
    read = _read_query_once if len(raw) <= _CACHED_QUERY_BYTES else _read_query_anew
    return read(raw, shape)


def _read_query_anew(raw: bytes, shape: type[Any]) -> tuple[Any, Sequence[str]]:
    query = _parse_query(raw)
    return decode_query(query, shape), unknown_parameters(query, shape)


# Callers repeat the same queries.
_read_query_once = cast(
    "Callable[[bytes, type[Any]], tuple[Any, Sequence[str]]]", lru_cache(_CACHED_QUERIES)(_read_query_anew)
)


def ignored_headers(headers: Headers, method: str) -> Sequence[str]:
    """Returns the headers of a POST that have no effect although its caller may rely on them: those of idempotency."""
    return headers.ignored if method == "POST" else ()


class _NoBody(msgspec.Struct):
    """A body without members."""


async def ignore_body(receive: Receive, ignored: list[str]) -> None:
    """Adds the members of a small body to `ignored`, for an operation without one: a caller who names one gift to cancel learns that all were."""
    with suppress(Problem):
        decode_body(await receive_body(receive, _UNREAD), _NoBody, ignored)


def header_of_names(names: Sequence[str]) -> str:
    """Returns names that a caller chose, for a header or an error: all but letters, digits and `._-~[]` is percent-encoded.

    Long names and long lists are cut, and end with `...`. A name that is an API key is cut too, because the log shows names.
    """
    encoded = [quote(KEY_IN_TEXT.sub("lgs_...", name), safe="[]", errors="replace") for name in names[:_NAMED]]
    cut = [name if len(name) <= _LONGEST_NAME else _HALF.sub("", name[:_LONGEST_NAME]) + "..." for name in encoded]
    return ", ".join(cut if len(names) <= _NAMED else [*cut, "..."])


def _parse_query(raw: bytes) -> dict[str, str]:
    if not raw:
        return {}
    if raw.count(b"&") >= _MAX_QUERY_PARAMETERS:
        raise InvalidRequest(f"A query must have at most {_MAX_QUERY_PARAMETERS} parameters.")
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict")
    except ValueError:
        raise InvalidRequest("The query string cannot be read.") from None
    query = dict(pairs)
    if len(query) != len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise InvalidRequest(f"The query parameter {header_of_names([repeated])} must be sent once.")
    return query
