"""The ASGI application: finds the operation, checks the key, reads the body, and renders every answer.

This is the one place where exceptions become problem bodies (RFC 9457).
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, cast
from urllib.parse import parse_qsl

import structlog
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Router

from largesse.api.metrics import REQUESTS
from largesse.api.operation import Call, Operation, Reply, Services, encode_json
from largesse.client import client_address
from largesse.database import DATABASE_AWAY
from largesse.decoding import decode_query
from largesse.errors import (
    HeadersTooLarge,
    InternalError,
    InvalidRequest,
    MethodNotAllowed,
    NotFound,
    Problem,
    SlowRequest,
    TooLarge,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    UnsupportedBody,
)
from largesse.identity import Caller, require_active, require_plan
from largesse.patience import GivenUp
from largesse.throttle import Rate, Throttle

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
_Found = tuple[dict[str, Operation], dict[str, str]]  # the operations of a path by method, and its parameters

MAX_BODY_BYTES = 4 * 1024 * 1024
BODY_TIMEOUT_S = 30
BODY_PAUSE_S = 10
MAX_HEADER_BYTES = 32 * 1024
_MAX_QUERY_PARAMETERS = 50
_KEPT_QUERIES = 1_000
_KEPT_QUERY_BYTES = 200
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_JSON_TYPES = (b"application/json", b"text/json")

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Headers:
    """The request headers that matter here; `repeated` names those of the two key headers sent twice."""

    authorization: bytes | None = None
    api_key: bytes | None = None
    content_type: bytes = b""
    content_length: bytes | None = None
    content_encoding: bytes = b""
    request_id: bytes | None = None
    size: int = 0
    repeated: list[str] = field(default_factory=list)


class Application:
    """Serves operations and, for every other path, pages."""

    def __init__(
        self,
        operations: Sequence[Operation],
        *,
        lifespan: Callable[[Application], AbstractAsyncContextManager[Services]],
        pages: Sequence[BaseRoute] = (),
        rate_limit: int = 0,
    ) -> None:
        self._lifespan = lifespan
        self._services: Services | None = None
        self._rate_limit = rate_limit
        self._requests: Throttle[int] | None = Throttle(Rate(rate_limit, 60.0)) if rate_limit else None
        self._exact: dict[str, dict[str, Operation]] = {}
        self._patterns: list[tuple[re.Pattern[str], dict[str, Operation]]] = []
        by_path: dict[str, dict[str, Operation]] = {}
        for operation in operations:
            by_path.setdefault(operation.path, {})[operation.method] = operation
        for path, methods in by_path.items():
            pattern = next(iter(methods.values())).pattern
            if pattern is None:
                self._exact[path] = methods
            else:
                self._patterns.append((pattern, methods))
        self._pages = Router(pages, redirect_slashes=False, default=_nothing_here)

    @property
    def services(self) -> Services:
        """What the application works with, from start to stop."""
        assert self._services is not None, "the application has not started"
        return self._services

    def has_page(self, path: str) -> bool:
        """Whether there is a page of this path, as there is a mailbox in staging and in the demo alone."""
        return any(getattr(page, "path", None) == path for page in self._pages.routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._serve(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            async with self._lifespan(self) as services:
                self._services = services
                await send({"type": "lifespan.startup.complete"})
                await receive()
        except BaseException:
            _log.exception("lifespan_failed")
            stage = "startup" if self._services is None else "shutdown"
            await send({"type": f"lifespan.{stage}.failed"})
            raise
        await send({"type": "lifespan.shutdown.complete"})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        began_s = time.perf_counter()
        headers = _read_headers(scope["headers"])
        request_id = headers.request_id or os.urandom(8).hex().encode()
        found = self._find(scope["path"])
        if found is None:
            name = "claim" if scope["path"].startswith("/claim") else "page"
            status = await self._show(scope, headers, request_id, receive, send)
        else:
            name, reply = await self._reply(found, scope, headers, request_id, receive)
            status = reply.status
            await _send(reply, request_id, scope["method"], send)
        REQUESTS.count(name, status, time.perf_counter() - began_s)

    async def _show(
        self, scope: Scope, headers: Headers, request_id: bytes, receive: Receive, send: Send
    ) -> int:
        """Lets the pages answer; returns the status."""
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id)]
            await send(message)

        scope["app"] = self
        try:
            _check_size(headers)
            await self._pages(scope, receive, send_with_id)
        except Exception as error:
            reply = _failure_reply(error, scope["path"], request_id)
            if status:
                raise
            await _send(reply, request_id, scope["method"], send)
            return reply.status
        return status

    async def _reply(
        self, found: _Found, scope: Scope, headers: Headers, request_id: bytes, receive: Receive
    ) -> tuple[str, Reply]:
        """The name of the operation and what it answers."""
        name = "none"
        methods, path = found
        try:
            _check_size(headers)
            operation = _choose(methods, scope["method"])
            name = operation.name
            return name, await self._answer(operation, path, scope, headers, receive)
        except Exception as error:  # noqa: BLE001 - each has its answer
            return name, _failure_reply(error, scope["path"], request_id)

    def _find(self, path: str) -> _Found | None:
        methods = self._exact.get(path)
        if methods is not None:
            return methods, {}
        for pattern, methods in self._patterns:
            match = pattern.fullmatch(path)
            if match:
                return methods, match.groupdict()
        return None

    async def _answer(
        self, operation: Operation, path: dict[str, str], scope: Scope, headers: Headers, receive: Receive
    ) -> Reply:
        """The checks in the order the contract gives them, then the operation.

        Time that the caller takes to send a body is its own.
        """
        wait = self.services.patience.wait()
        with wait:
            caller = await self._identify(operation, scope, headers) if operation.needs_key else None
        query = _read_query(scope["query_string"], operation.query)
        body = await _read_body(headers, receive) if operation.body is not None else b""
        with wait:
            return await operation.handler(self.services, Call(caller, path, query, body))

    async def _identify(self, operation: Operation, scope: Scope, headers: Headers) -> Caller:
        secret = _read_secret(headers)
        caller = await self.services.authenticator.authenticate(secret, client_address(scope))
        principal = caller.principal
        require_plan(principal.plan)
        if operation.needs_active:
            require_active(principal.service_account_active, principal.service_account_name)
        if self._requests is not None and (wait_s := self._requests.take(caller.principal.key_id)):
            raise TooManyRequests(
                f"This key may send {self._rate_limit} requests a minute.", retry_after_s=wait_s
            )
        return caller


def _failure_reply(error: Exception, path: str, request_id: bytes) -> Reply:
    """What a request is answered whose handling ended with `error`; what is nobody's doing but ours is logged."""
    if isinstance(error, Problem):
        return problem_reply(error)
    if isinstance(error, HTTPException):
        return problem_reply(_problem_of(error))
    if isinstance(error, DATABASE_AWAY):
        _log.warning("database_away", error=type(error).__name__, path=path, request_id=request_id.decode())
        return problem_reply(_unavailable(error))
    _log.error("request_failed", path=path, request_id=request_id.decode(), exc_info=error)
    return problem_reply(InternalError("The failure was logged under the request id of this answer."))


def problem_reply(problem: Problem) -> Reply:
    """The problem body (RFC 9457) of an error."""
    body = {
        "type": f"/problems/{problem.slug}",
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
        "instance": problem.instance,
    }
    if problem.errors:
        body["errors"] = problem.errors
    headers = tuple((name.lower(), value) for name, value in problem.headers.items())
    return Reply(encode_json(body), problem.status, "application/problem+json", headers)


def _choose(methods: Mapping[str, Operation], method: str) -> Operation:
    operation = methods.get("GET" if method == "HEAD" else method)
    if operation is None:
        raise _method_not_allowed(method, methods)
    return operation


def _method_not_allowed(method: str, allowed: Iterable[str]) -> MethodNotAllowed:
    allow = ", ".join(sorted(allowed))
    return MethodNotAllowed(f"{method} is not allowed here; {allow} is.", headers={"Allow": allow})


def _problem_of(error: HTTPException) -> Problem:
    """What the page router says, in our words."""
    if error.status_code == 405:
        allow = (error.headers or {}).get("Allow", "GET")
        return MethodNotAllowed(f"Only {allow} is allowed here.", headers={"Allow": allow})
    if error.status_code == 404:
        return NotFound("There is nothing at this address.")
    return InvalidRequest(str(error.detail))


def _unavailable(error: BaseException) -> Unavailable:
    if isinstance(error, GivenUp):
        return Unavailable(
            "The database did not answer in time. Whether anything was written is not known: look, or repeat an order "
            "with the same `externalReference`.",
            retry_after_s=5,
        )
    return Unavailable("The database cannot be reached.")


async def _nothing_here(scope: Scope, receive: Receive, send: Send) -> None:
    raise NotFound("There is nothing at this address.")


def _read_headers(raw: Iterable[tuple[bytes, bytes]]) -> Headers:
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


def _check_size(headers: Headers) -> None:
    if headers.size > MAX_HEADER_BYTES:
        raise HeadersTooLarge(f"The headers have {headers.size} bytes; at most {MAX_HEADER_BYTES} are read.")


def _read_secret(headers: Headers) -> str:
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


def _read_query(raw: bytes, wanted: type[Any]) -> Any:
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


async def _read_body(headers: Headers, receive: Receive) -> bytes:
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


async def _send(reply: Reply, request_id: bytes, method: str, send: Send) -> None:
    headers = [
        (b"content-length", str(len(reply.body)).encode()),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        (b"x-request-id", request_id),
    ]
    if reply.body:
        headers.append((b"content-type", reply.media_type.encode()))
    for name, value in reply.headers:
        headers.append((name.encode("latin-1"), value.encode("latin-1")))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if method == "HEAD" else reply.body})
