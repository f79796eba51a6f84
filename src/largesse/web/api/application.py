"""The ASGI application: finds the operation, checks the key, and sends the answer."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager

import msgspec
import structlog
from starlette.routing import BaseRoute, Router

from largesse.base import clock
from largesse.base.errors import NotFound, OperatorError
from largesse.base.throttle import Rate, Throttle
from largesse.customers.access import require_admission
from largesse.customers.authenticator import Authenticator, Caller
from largesse.customers.restrictions import require_network, require_scope
from largesse.web.api.metrics import REQUESTS
from largesse.web.api.operation import Call, Operation
from largesse.web.api.reading import header_of_names, read_query, read_secret
from largesse.web.kit.body import read_body, whole_body
from largesse.web.kit.compression import Compressing
from largesse.web.kit.headers import Headers, check_size, read_headers
from largesse.web.kit.problems import MethodNotAllowed, problem_of, problem_reply
from largesse.web.kit.refusal_log import ACTS_FOR, PROBLEM, RefusalLog
from largesse.web.kit.replies import Reply, send_reply
from largesse.web.kit.requests import Message, Receive, Scope, Send, client_address, exchange_of
from largesse.web.kit.services import Services

_Found = tuple[dict[str, Operation], dict[str, str]]  # operations of a path by method, and parameters of the path

_NOT_OPERATIONS = ("claim", "page", "none")  # counted too: pages, and methods that an address does not have
_REFUSED = 400  # the lowest status of a refusal

_log = structlog.get_logger(__name__)


class Application:
    """Serves operations and, for every other path, pages."""

    def __init__(
        self,
        operations: Sequence[Operation],
        *,
        lifespan: Callable[[Application], AbstractAsyncContextManager[Services]],
        pages: Callable[[Services], Sequence[BaseRoute]],
        rate_limit: int = 0,
    ) -> None:
        """`lifespan` opens the services, from which `pages` makes the routes beside the operations.

        A key may send `rate_limit` requests a minute; 0 means no limit.
        """
        REQUESTS.expect([*(operation.name for operation in operations), *_NOT_OPERATIONS])
        self._lifespan = lifespan
        self._make_pages = pages
        self._services: Services | None = None
        self._too_many = f"This key may send {rate_limit} requests a minute."
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
        self._pages = _router(())
        self._refusals = RefusalLog()

    @property
    def services(self) -> Services:
        """The services, from start to stop."""
        assert self._services is not None, "the application has not started"
        return self._services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles a request, or the server's start and stop. Closes web sockets."""
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
                self._pages = _router(self._make_pages(services))
                await send({"type": "lifespan.startup.complete"})
                await receive()
        except OperatorError as error:
            # An operator must correct it, or the database went away since the command checked: a trace does not help.
            _log.error("not_started", reason=str(error))
            await send({"type": "lifespan.startup.failed"})
            return
        except BaseException:
            _log.exception("lifespan_failed")
            stage = "startup" if self._services is None else "shutdown"
            await send({"type": f"lifespan.{stage}.failed"})
            raise
        await send({"type": "lifespan.shutdown.complete"})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        began_s = clock.passed_s()
        headers = read_headers(scope["headers"])
        request_id = headers.request_id or os.urandom(8).hex().encode()
        found = self._find(scope["path"])
        if found is None:
            name = "claim" if scope["path"].startswith("/claim") else "page"
            status = await self._show(scope, headers, request_id, began_s, receive, send)
        else:
            methods, path = found
            name = "none"
            ignored: list[str] = []
            try:
                check_size(headers)
                operation = _choose(methods, scope["method"])
                name = operation.name
                reply = await self._answer(operation, path, scope, headers, receive, request_id, ignored)
            except Exception as error:  # noqa: BLE001 - each becomes an answer
                reply = _reply_to(error, scope, found, request_id)
            if ignored:
                names = header_of_names(ignored)
                reply = msgspec.structs.replace(reply, headers=(*reply.headers, ("x-ignored", names)))
                self._refusals.ignored(scope, request_id, _route_of(scope, found), names)
            status = reply.status
            if status >= _REFUSED:
                self._refusals.refused(scope, request_id, _route_of(scope, found), status, began_s)
            await send_reply(reply, request_id, scope, send)
        REQUESTS.count(name, status, clock.passed_s() - began_s)

    async def _show(
        self, scope: Scope, headers: Headers, request_id: bytes, began_s: float, receive: Receive, send: Send
    ) -> int:
        """Answers with a page. Returns the status."""
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if status >= _REFUSED:
                    self._refusals.refused(scope, request_id, _route_of(scope, None), status, began_s)
                message["headers"] = [*message["headers"], (b"x-request-id", request_id)]
            await send(message)

        scope["app"] = self  # makes the router raise errors instead of answering in plain text
        scope["request_id"] = request_id.decode()
        try:
            check_size(headers)
            await self._pages(scope, receive, Compressing(scope, send_with_id))
        except Exception as error:
            reply = _reply_to(error, scope, None, request_id)
            if status:
                raise
            self._refusals.refused(scope, request_id, _route_of(scope, None), reply.status, began_s)
            await send_reply(reply, request_id, scope, send)
            return reply.status
        return status

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
        self,
        operation: Operation,
        path: dict[str, str],
        scope: Scope,
        headers: Headers,
        receive: Receive,
        request_id: bytes,
        ignored: list[str],
    ) -> Reply:
        """Runs the checks in the order of the contract, then the operation.

        The time in which the caller sends a body does not count. `ignored` gets the names of unknown parameters and members.
        """
        services = self.services
        wait = services.timeouts.wait()
        exchange = exchange_of(scope)
        with wait:
            caller = None
            if operation.needs_key:
                caller = await self._identify(services.authenticator, operation, scope, headers)
            query, unknown = read_query(scope["query_string"], operation.query)
            if unknown:
                ignored += unknown

            def call(body: bytes) -> Awaitable[Reply]:
                given = Call(caller, path, query, body, request_id, ignored, operation.scope)
                return operation.handler(services, given)

            body = b"" if operation.body is None else None
            if body is None and exchange is not None:
                body = whole_body(headers, exchange["body"])
            if body is not None:
                return await call(body)
        sender = client_address(scope) if caller is None else caller.principal.customer_id
        with services.body_memory.share(("customer", sender)) as share:
            body = await read_body(headers, receive, share)
            with wait:
                return await call(body)

    async def _identify(
        self, authenticator: Authenticator, operation: Operation, scope: Scope, headers: Headers
    ) -> Caller:
        caller = await authenticator.authenticate(read_secret(headers), client_address(scope))
        scope[ACTS_FOR] = caller.principal
        require_network(caller.principal, caller.address)
        require_admission(caller.principal, inactive_too=not operation.needs_active)
        if operation.scope is not None:
            require_scope(caller.principal, operation.scope)
        if self._requests is not None and caller.principal.key_id is not None:
            self._requests.spend(caller.principal.key_id, self._too_many)
        return caller


def _reply_to(error: Exception, scope: Scope, found: _Found | None, request_id: bytes) -> Reply:
    problem = problem_of(error, route=_route_of(scope, found), request_id=request_id.decode())
    scope[PROBLEM] = problem.slug
    return problem_reply(problem)


def _route_of(scope: Scope, found: _Found | None) -> str:
    """Returns the template of a request's address, without the values of its parameters."""
    if found is not None:
        return next(iter(found[0].values())).path
    return getattr(scope.get("route"), "path", "none")


def _choose(methods: Mapping[str, Operation], method: str) -> Operation:
    operation = methods.get("GET" if method == "HEAD" else method)
    if operation is None:
        allow = ", ".join(sorted(methods))
        raise MethodNotAllowed(f"{method} is not allowed here; {allow} is.", allow=allow)
    return operation


def _router(pages: Sequence[BaseRoute]) -> Router:
    return Router(pages, redirect_slashes=False, default=_nothing_here)


async def _nothing_here(scope: Scope, receive: Receive, send: Send) -> None:
    raise NotFound("There is nothing at this address.")
