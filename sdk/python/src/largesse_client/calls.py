"""Calls as values: a request with the type of its answer, or a list that is read in pages."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import urlencode

import msgspec

if TYPE_CHECKING:
    from largesse_client.errors import ReferenceUsed

T = TypeVar("T")

Query = Mapping[str, str | int | Decimal | None]
# The steps of a call: yields each step, receives its result, and returns the value (largesse_client.asking).
Steps = Generator[Any, Any, T]
Ask = Callable[["Call[Any]"], Steps[Any]]

# One decoder for each shape, of which there are some thirty.
_decoders: dict[Any, Callable[[bytes], Any]] = {}
_encode = msgspec.json.Encoder(decimal_format="number").encode


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request: `read` returns the value of the answer's body.

    Only a repeatable request is ever sent twice: its effect is the same however often it arrives. `recover` continues after the answer
    that the request's reference is used. `also` has statuses besides 2xx whose body `read` reads. With `ends`, a 404 after an attempt
    without an answer means that the attempt succeeded.
    """

    method: str
    path: str
    read: Callable[[bytes], T]
    body: bytes | None = field(default=None, repr=False)
    is_repeatable: bool = True
    also: frozenset[int] = frozenset()
    ends: bool = False
    recover: Callable[[ReferenceUsed, Ask], Steps[T]] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Pages(Generic[T]):
    """A list in pages. `fetch` returns the call for a page by its query, and `then` the query of the next page, None after the last."""

    query: Query
    fetch: Callable[[Query], Call[Sequence[T]]]
    then: Callable[[Query, Sequence[T]], Query | None]


def get(path: str, shape: type[T], query: Query | None = None, *, also: frozenset[int] = frozenset()) -> Call[T]:
    """Returns a call that changes nothing."""
    return Call("GET", _with(path, query), reader(shape), also=also)


def post(path: str, shape: type[T], body: Mapping[str, object] | None = None, *, is_repeatable: bool) -> Call[T]:
    """Returns a call that changes something, or has a body."""
    return Call("POST", path, reader(shape), None if body is None else encode(body), is_repeatable)


def pages(
    path: str, item: type[T], query: Query, page_size: int, then: Callable[[Query, Sequence[T]], Query]
) -> Pages[T]:
    """Returns a list whose next page has the query that `then` returns for the page before. A page that is not full is the last."""
    read: Callable[[bytes], Sequence[T]] = reader(_tuple_of(item))
    return Pages(
        {**query, "limit": page_size},
        lambda query: Call("GET", _with(path, query), read),
        lambda query, page: then(query, page) if len(page) == page_size else None,
    )


def by_offset(path: str, item: type[T], page_size: int) -> Pages[T]:
    """Returns a list whose pages are found by the number of items to skip."""

    def then(query: Query, _: Sequence[T]) -> Query:
        return {**query, "offset": int(query["offset"] or 0) + page_size}

    return pages(path, item, {"offset": 0}, page_size, then)


def newest_first(path: str, item: type[T], page_size: int) -> Pages[T]:
    """Returns a list whose pages are found by the last `id` of the page before. A service that does not know `before` uses `offset`."""

    def then(query: Query, page: Sequence[T]) -> Query:
        last: Any = page[-1]
        return {**query, "offset": int(query["offset"] or 0) + page_size, "before": last.id}

    return pages(path, item, {"offset": 0}, page_size, then)


def whole(path: str, item: type[T], query: Query | None = None) -> Pages[T]:
    """Returns a list that has one page."""
    read: Callable[[bytes], Sequence[T]] = reader(_tuple_of(item))
    return Pages(query or {}, lambda query: Call("GET", _with(path, query), read), lambda *_: None)


def encode(body: Mapping[str, object]) -> bytes:
    """Returns a JSON body without the members that are None. A Decimal becomes a number, digit by digit."""
    return _encode({name: value for name, value in body.items() if value is not None})


def reader(shape: type[T]) -> Callable[[bytes], T]:
    """Returns a function that reads JSON of that shape. Numbers become exact Decimals, and unknown members are ignored.

    The function raises msgspec.DecodeError.
    """
    decode: Callable[[bytes], T] | None = _decoders.get(shape)
    if decode is None:
        decode = _decoders[shape] = msgspec.json.Decoder(shape).decode
    return decode


def nothing(_: bytes) -> None:
    """Ignores the body of an answer."""


def _tuple_of(item: type[Any]) -> Any:
    return tuple.__class_getitem__((item, ...))


def _with(path: str, query: Query | None) -> str:
    given = {name: str(value) for name, value in query.items() if value is not None} if query else None
    return f"{path}?{urlencode(given)}" if given else path
