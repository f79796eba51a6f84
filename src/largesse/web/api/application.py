"""The ASGI application: finds the operation, checks the key, and sends the answer."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

import structlog

from largesse.base import clock
from largesse.base.errors import NotFound, OperatorError
from largesse.customers.authenticator import Caller
from largesse.web.api import answering
from largesse.web.api.operation import Call, Operation
from largesse.web.api.reading import ignore_body, ignored_headers, read_query, read_secret
from largesse.web.api.whole import WholeRequests
from largesse.web.kit.asgi import InBrowser, Message, Receive, Reply, Scope, Send, client_address, send_reply
from largesse.web.kit.body import read_body
from largesse.web.kit.compression import Compressing
from largesse.web.kit.headers import Headers, check_size, read_headers
from largesse.web.kit.problems import MethodNotAllowed
from largesse.web.kit.services import Services

if TYPE_CHECKING:
    from starlette.routing import BaseRoute, Router

# The key of the `WholeRequests` in ASGI's `state`.
WHOLE_REQUESTS = "largesse.whole_requests"
# Pages are loaded this long after the start, or when the first page is requested. Loading them sooner would delay the first answers.
_PREFIX = re.compile(r"^/(?:api/)?(?:v\d+/)?", re.IGNORECASE)  # other APIs have it in their addresses
_PAGES_AFTER_S = 0.05
_NOT_OPERATIONS = ("claim", "page", "none")  # names that also count: pages, and requests with a wrong method

_log = structlog.get_logger(__name__)


class Application:
    """Serves operations and, for every other path, pages."""

    def __init__(
        self,
        operations: Sequence[Operation],
        *,
        lifespan: Callable[[Application], AbstractAsyncContextManager[Services]],
        pages: Callable[[Services], Awaitable[tuple[Sequence[BaseRoute], InBrowser]]],
        rate_limit: int = 0,
    ) -> None:
        """Takes `lifespan`, which opens the services, and `pages`, which makes the other routes, and the pages of their errors, while operations are already served.

        A key may send `rate_limit` requests a minute; 0 means no limit.
        """
        answering.REQUESTS.expect([*(operation.name for operation in operations), *_NOT_OPERATIONS])
        self._lifespan = lifespan
        self._make_pages = pages
        self._services: Services | None = None
        self._answering = answering.Answering(rate_limit)
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
        self._pages: asyncio.Task[Router] | None = None
        self._is_page_wanted = asyncio.Event()
        self._in_browser: InBrowser = lambda _, reply: reply

    @property
    def services(self) -> Services:
        """The services, from start to stop."""
        assert self._services is not None, "the application has not started"
        return self._services

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Opens the services until the block ends. A server enters it before it starts. Raises OperatorError, as the lifespan does."""
        async with self._lifespan(self) as services:
            self._services = services
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles a request, or the server's start and stop. Closes web sockets."""
        if scope["type"] == "http":
            await self._serve(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(scope.get("state", {}), receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _live(self, state: dict[str, Any], receive: Receive, send: Send) -> None:
        """Opens and closes the services, unless they are open. Puts `WholeRequests` into ASGI's `state`, where our own server's connections find it."""
        await receive()
        try:
            async with nullcontext() if self._services else self.opened():
                state[WHOLE_REQUESTS] = WholeRequests(self.services, self._exact, self._answering)
                self._pages = asyncio.create_task(self._open_pages(self.services))
                await send({"type": "lifespan.startup.complete"})
                await receive()
                self._pages.cancel()
        except OperatorError as error:
            # The operator made a mistake, or the database cannot be reached. A traceback would not help.
            _log.error("not_started", reason=str(error))
            await send({"type": "lifespan.startup.failed"})
            return
        except BaseException:
            _log.exception("lifespan_failed")
            stage = "startup" if self._services is None else "shutdown"
            await send({"type": f"lifespan.{stage}.failed"})
            raise
        await send({"type": "lifespan.shutdown.complete"})

    async def _open_pages(self, services: Services) -> Router:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._is_page_wanted.wait(), _PAGES_AFTER_S)
        try:
            pages, self._in_browser = await self._make_pages(services)
            from starlette.routing import Router  # already loaded, so this does not hold up the event loop

            return Router(pages, redirect_slashes=False, default=self._nothing_here)
        except Exception:
            _log.exception("pages_failed")
            raise

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        began_s = clock.passed_s()
        headers = read_headers(scope["headers"])
        request_id = headers.request_id or answering.new_request_id()
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
                reply = answering.reply_to(error, scope, found, request_id)
            reply = self._answering.completed(reply, scope, found, request_id, ignored, began_s)
            status = reply.status
            await send_reply(reply, request_id, scope, send)
            log, took_s = self.services.request_log, clock.passed_s() - began_s
            answering.log_request(
                log, scope, scope["path"], answering.route_of(scope, found), request_id, status, took_s
            )
        answering.REQUESTS.count(name, status, clock.passed_s() - began_s)

    async def _show(
        self, scope: Scope, headers: Headers, request_id: bytes, began_s: float, receive: Receive, send: Send
    ) -> int:
        """Answers with a page. Returns the status."""
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if status >= answering.REFUSED:
                    self._answering.refusals.refused(
                        scope, request_id, answering.route_of(scope, None), status, began_s
                    )
                message["headers"] = [*message["headers"], (b"x-request-id", request_id)]
            await send(message)

        scope["app"] = self  # makes the router raise errors instead of answering in plain text
        scope["request_id"] = request_id.decode()
        try:
            check_size(headers)
            assert self._pages is not None, "the application has not started"
            self._is_page_wanted.set()
            show = await asyncio.shield(self._pages)  # the first pages wait until all are made
            await show(scope, receive, Compressing(scope, send_with_id))
        except Exception as error:
            reply = self._in_browser(scope, answering.reply_to(error, scope, None, request_id))
            if status:
                raise
            self._answering.refusals.refused(scope, request_id, answering.route_of(scope, None), reply.status, began_s)
            await send_reply(reply, request_id, scope, send)
            return reply.status
        return status

    def _find(self, path: str) -> answering.Found | None:
        methods = self._exact.get(path)
        if methods is not None:
            return methods, {}
        for pattern, methods in self._patterns:
            match = pattern.fullmatch(path)
            if match:
                return methods, match.groupdict()
        return None

    async def _nothing_here(self, scope: Scope, _receive: Receive, _send: Send) -> None:
        """Raises NotFound, which names the operation that is meant if only letter case, slashes at the end or a prefix such as `/v1` differ."""
        meant = scope["path"].rstrip("/")
        address = _PREFIX.sub("/", meant).lower()
        hint = ""
        if address in self._exact:
            hint = f" Did you mean `{address}`?"
        elif meant != scope["path"] and self._find(meant):
            hint = " Did you mean it without the slash at the end?"
        elif address != meant.lower() and self._find(address):
            hint = " Did you mean it without the prefix?"
        raise NotFound(f"There is nothing at this address.{hint}")

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

        The time-out leaves out the time in which the body arrives. `ignored` gets the names of unknown parameters and members.
        """
        services = self.services
        wait = services.timeouts.wait()
        with wait:
            caller: Caller | None = None
            if operation.needs_key:
                caller = await services.authenticator.authenticate(read_secret(headers), client_address(scope))
                self._answering.admit(caller, operation, scope)
            query, unknown = read_query(scope["query_string"], operation.query)
            ignored += [*unknown, *ignored_headers(headers, operation.method)]

            def call(body: bytes) -> Awaitable[Reply]:
                given = Call(caller, path, query, body, request_id, ignored, operation.scope)
                return operation.handler(services, given)

            if operation.body is None and operation.method != "POST":
                return await call(b"")
        if operation.body is None:
            await ignore_body(receive, ignored)
            with wait:
                return await call(b"")
        sender = client_address(scope) if caller is None else caller.principal.customer_id
        with services.body_memory.share(("customer", sender)) as share:
            body = await read_body(headers, receive, share)
            with wait:
                return await call(body)


def _choose(methods: Mapping[str, Operation], method: str) -> Operation:
    operation = methods.get("GET" if method == "HEAD" else method)
    if operation is None:
        raise MethodNotAllowed(method, methods)
    return operation
