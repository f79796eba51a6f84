"""Whole requests: small requests that a connection has read to the end. They skip ASGI and get the same answers.

A request with an invalid head goes through ASGI, so that one place refuses it.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
import structlog

from largesse.base import clock
from largesse.base.errors import Problem, Unauthorized, Unavailable
from largesse.base.timeouts import TimedOut
from largesse.customers.access import StaleCaller
from largesse.customers.authenticator import Caller, secret_hash
from largesse.web.api.answering import REFUSED, REQUESTS, Answering, Found, log_request, new_request_id, reply_to
from largesse.web.api.operation import Call, Operation
from largesse.web.api.reading import ignored_headers, read_query, read_secret
from largesse.web.kit.asgi import Answer, Reply, Scope, Writer, client_address, head_lines
from largesse.web.kit.body import check_headers
from largesse.web.kit.headers import check_size, read_headers
from largesse.web.kit.refusal_log import ACTS_FOR
from largesse.web.kit.services import Services

_LOGGED = ("method", "client")

_log = structlog.get_logger(__name__)


class Head(msgspec.Struct, frozen=True):
    """The parsed head of a request. Heads are cached, so it has a hash of the key's secret, not the secret."""

    operation: Operation
    found: Found
    secret_hash: bytes | None
    query: Any
    unknown: Sequence[str]  # the names of unknown parameters, and of headers without effect
    request_id: bytes | None
    scope: dict[str, Any]  # the parts of ASGI's scope that the log needs


class WholeRequests:
    """Answers whole requests of the operations whose path has no parameters, by path and method."""

    def __init__(
        self, services: Services, operations: Mapping[str, dict[str, Operation]], answering: Answering
    ) -> None:
        self.services = services
        self._operations = operations
        self.answering = answering

    @property
    def paths(self) -> Collection[str]:
        """The paths that `read_head` knows."""
        return self._operations.keys()

    def read_head(self, scope: Scope) -> Head | None:
        """Returns the parsed head of a request; None if the request must go through ASGI."""
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
        if secret is not None and not self.services.authenticator.may_know(secret):
            return None
        return Head(
            operation,
            (methods, {}),
            None if secret is None else secret_hash(secret),
            query,
            [*unknown, *ignored_headers(headers, operation.method)],
            headers.request_id,
            {name: scope[name] for name in _LOGGED},
        )

    def begin(self, head: Head, body: bytes, writer: Writer) -> None:
        """Starts to answer a request, without a task if its operation can."""
        if head.operation.at_once is not None and _AtOnce(self, head, writer).begin():
            return
        writer.answer_in_task(self.answer(head, body, head.scope.copy(), clock.passed_s()))

    async def answer(self, head: Head, body: bytes, scope: Scope, began_s: float) -> Answer:
        """Answers a request that began at `began_s`. `scope` says whether the key's limit has counted it already."""
        request_id = head.request_id or new_request_id()
        ignored: list[str] = []
        try:
            with self.services.timeouts.wait():
                reply = await self._reply(head, body, scope, request_id, ignored)
        except Exception as error:  # noqa: BLE001 - each becomes an answer
            reply = reply_to(error, scope, head.found, request_id)
        return self.completed(head, reply, scope, request_id, ignored, began_s)

    def completed(
        self, head: Head, reply: Reply, scope: Scope, request_id: bytes, ignored: Sequence[str], began_s: float
    ) -> Answer:
        """Returns the answer to send for a reply. Counts and logs it."""
        if ignored or reply.status >= REFUSED or self.answering.has_limit:
            reply = self.answering.completed(reply, scope, head.found, request_id, ignored, began_s)
        took_s, route = clock.passed_s() - began_s, head.operation.path
        REQUESTS.count(head.operation.name, reply.status, took_s)
        log_request(self.services.request_log, scope, route, route, request_id, reply.status, took_s)
        return reply.status, head_lines(reply, request_id), reply.body

    async def _reply(self, head: Head, body: bytes, scope: Scope, request_id: bytes, ignored: list[str]) -> Reply:
        operation, caller = head.operation, None
        if operation.recalls and (reply := await self._reply_recalled(head, body, scope, request_id, ignored)):
            return reply
        if head.secret_hash is not None:
            caller = await self.services.authenticator.find(head.secret_hash, client_address(scope))
            self.answering.admit(caller, operation, scope)
        return await self._run(head, caller, body, request_id, ignored)

    async def _reply_recalled(
        self, head: Head, body: bytes, scope: Scope, request_id: bytes, ignored: list[str]
    ) -> Reply | None:
        """Runs an operation for a remembered caller. If the caller must be looked up first, returns None without any effect."""
        assert head.secret_hash is not None, "an operation that recalls its caller needs a key"
        caller = self.services.authenticator.recall(head.secret_hash, client_address(scope))
        if caller is None:
            return None
        try:
            self.answering.admit(caller, head.operation, scope)
        except Problem:  # the remembered caller may be out of date
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
        return await operation.handler(self.services, call)


class _AtOnce:
    """A request that is answered without a task. A batch of look-ups passes it the result, as it does to a future."""

    __slots__ = ("_began_s", "_head", "_ignored", "_is_done", "_request_id", "_requests", "_scope", "_writer")

    def __init__(self, requests: WholeRequests, head: Head, writer: Writer) -> None:
        self._requests = requests
        self._head = head
        self._writer = writer
        self._scope: Scope = head.scope.copy()
        self._request_id = head.request_id or new_request_id()
        self._ignored: list[str] = []
        self._began_s = clock.passed_s()
        self._is_done = False

    def begin(self) -> bool:
        """Starts the look-up of the caller. Returns False if only a task can do it."""
        services, head = self._requests.services, self._head
        assert head.secret_hash is not None, "an operation that is answered at once needs a key"
        try:
            is_begun = services.authenticator.find_for(self, head.secret_hash)
        except Unavailable:
            return False
        if is_begun:
            services.timeouts.watch(self, self._began_s)
        return is_begun

    def done(self) -> bool:
        """Returns whether the request was answered, for example after a time-out."""
        return self._is_done

    def cancel(self) -> None:
        """Answers that the request timed out."""
        self.set_exception(TimedOut())

    def set_result(self, result: Caller | bytes) -> None:
        """Runs the operation for the caller that was found, or answers with the body that the operation waited for."""
        try:
            reply = Reply(result) if isinstance(result, bytes) else self._reply(result)
        except Exception as error:  # noqa: BLE001 - each becomes an answer
            self._end(error)
            return
        if reply is not True:
            self._end(reply)

    def set_exception(self, error: Exception) -> None:
        """Answers with an error."""
        self._end(error)

    def _reply(self, found: Caller) -> Reply | bool:
        requests, operation, scope = self._requests, self._head.operation, self._scope
        caller = requests.services.authenticator.seen(found, client_address(scope))
        requests.answering.admit(caller, operation, scope)
        self._ignored += self._head.unknown
        assert operation.at_once is not None, "an operation that is answered at once"
        call = Call(caller, {}, self._head.query, b"", self._request_id, self._ignored, operation.scope)
        return operation.at_once(requests.services, call, self)

    def _end(self, outcome: Reply | Exception | bool) -> None:
        """Writes the answer; for False starts a task that does. Never raises, because the rest of the batch is waiting."""
        self._is_done = True
        requests, head, scope, request_id = self._requests, self._head, self._scope, self._request_id
        requests.services.timeouts.ended(self)
        try:
            # For an unknown key, the task repeats the look-up and counts the failure.
            if isinstance(outcome, (bool, Unauthorized)):
                self._writer.answer_in_task(requests.answer(head, b"", scope, self._began_s))
                return
            reply = outcome if isinstance(outcome, Reply) else reply_to(outcome, scope, head.found, request_id)
            answer = requests.completed(head, reply, scope, request_id, self._ignored, self._began_s)
            self._writer.write_answer(answer)
        except Exception:  # noqa: BLE001 - each ends only its own request
            _log.exception("answer_failed", operation=head.operation.name)
            self._writer.close()
