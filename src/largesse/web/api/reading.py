"""Reading what an operation is called with: the key, and the query within its limits."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast
from urllib.parse import parse_qsl

from largesse.base.decoding import decode_query
from largesse.base.errors import InvalidRequest, Unauthorized
from largesse.web.kit.headers import Headers

_MAX_QUERY_PARAMETERS = 50
_KEPT_QUERIES = 1_000
_KEPT_QUERY_BYTES = 200


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
