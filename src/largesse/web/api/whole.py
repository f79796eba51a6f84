"""Whole requests: small requests of operations that a connection has read whole. They need no ASGI, and are answered as by ASGI.

Whatever is refused for its head goes by ASGI, so that there is one way to refuse it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from largesse.base import clock
from largesse.base.errors import Problem
from largesse.customers.access import StaleCaller
from largesse.customers.authenticator import Caller, secret_hash, well_formed
from largesse.web.api.answering import REFUSED, Answering, Found, log_request, new_request_id, reply_to
from largesse.web.api.metrics import REQUESTS
from largesse.web.api.operation import Call, Operation
from largesse.web.api.reading import read_query, read_secret
from largesse.web.kit.body import check_headers
from largesse.web.kit.headers import check_size, read_headers
from largesse.web.kit.refusal_log import ACTS_FOR
from largesse.web.kit.replies import Reply, head_of, lines_of
from largesse.web.kit.requests import Scope, client_address
from largesse.web.kit.services import Services

_LOGGED = ("method", "client")


class Head(msgspec.Struct, frozen=True):
    """What the head of a request says. It does not hold the key's secret, as heads are cached."""

    operation: Operation
    found: Found
    secret_hash: bytes | None
    query: Any
    unknown: Sequence[str]  # names of parameters
    request_id: bytes | None
    scope: dict[str, Any]  # what of ASGI's the log needs


class WholeRequests:
    """Answers whole requests of the operations whose path has no parameters, by path and method."""

    def __init__(
        self, services: Services, operations: Mapping[str, dict[str, Operation]], answering: Answering
    ) -> None:
        self._services = services
        self._operations = operations
        self._answering = answering

    @property
    def paths(self) -> Collection[str]:
        """The paths that `read_head` knows."""
        return self._operations.keys()

    def read_head(self, scope: Scope) -> Head | None:
        """Returns what `answer` needs of a request's scope; None if the request must go by ASGI."""
        headers = read_headers(scope["headers"])
        methods = self._operations.get(scope["path"], {})
        operation = methods.get(scope["method"])
        if operation is None:
            return None
        try:
            check_size(headers)
            query, unknown = read_query(scope["query_string"], operation.query)
            if operation.body is not None:
                check_headers(headers)
            secret = read_secret(headers) if operation.needs_key else None
        except Problem:
            return None
        if secret is not None and not well_formed(secret):
            return None
        return Head(
            operation,
            (methods, {}),
            None if secret is None else secret_hash(secret),
            query,
            unknown,
            headers.request_id,
            {name: scope[name] for name in _LOGGED},
        )

    async def answer(self, head: Head, body: bytes) -> tuple[int, bytes, bytes]:
        """Answers a request. Returns the status, the header lines and the body."""
        began_s = clock.passed_s()
        request_id = head.request_id or new_request_id()
        scope: Scope = head.scope.copy()
        ignored: list[str] = []
        try:
            with self._services.timeouts.wait():
                reply = await self._reply(head, body, scope, request_id, ignored)
        except Exception as error:  # noqa: BLE001 - each becomes an answer
            reply = reply_to(error, scope, head.found, request_id)
        if ignored or reply.status >= REFUSED or self._answering.has_limit:
            reply = self._answering.completed(reply, scope, head.found, request_id, ignored, began_s)
        took_s, route = clock.passed_s() - began_s, head.operation.path
        REQUESTS.count(head.operation.name, reply.status, took_s)
        log_request(self._services.request_log, scope, route, route, request_id, reply.status, took_s)
        return reply.status, lines_of(head_of(reply, request_id)), reply.body

    async def _reply(self, head: Head, body: bytes, scope: Scope, request_id: bytes, ignored: list[str]) -> Reply:
        operation, caller = head.operation, None
        if operation.recalls and (reply := await self._reply_recalled(head, body, scope, request_id, ignored)):
            return reply
        if head.secret_hash is not None:
            caller = await self._services.authenticator.find(head.secret_hash, client_address(scope))
            self._answering.admit(caller, operation, scope)
        return await self._run(head, caller, body, request_id, ignored)

    async def _reply_recalled(
        self, head: Head, body: bytes, scope: Scope, request_id: bytes, ignored: list[str]
    ) -> Reply | None:
        """Runs an operation for a remembered caller. Returns None if the caller must be looked up first: nothing has happened then."""
        assert head.secret_hash is not None, "an operation that recalls its caller needs a key"
        caller = self._services.authenticator.recall(head.secret_hash, client_address(scope))
        if caller is None:
            return None
        try:
            self._answering.admit(caller, head.operation, scope)
        except Problem:  # of a caller who may be gone, or another by now
            del scope[ACTS_FOR]
            return None
        try:
            return await self._run(head, caller, body, request_id, ignored)
        except StaleCaller:
            ignored.clear()
            del scope[ACTS_FOR]
            return None

    async def _run(
        self, head: Head, caller: Caller | None, body: bytes, request_id: bytes, ignored: list[str]
    ) -> Reply:
        operation = head.operation
        ignored += head.unknown
        call = Call(caller, {}, head.query, body, request_id, ignored, operation.scope)
        return await operation.handler(self._services, call)
