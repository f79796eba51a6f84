"""An operation of the API, declared once: it is served and documented from its declaration."""

import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from largesse.audit.service import Acting, by_key
from largesse.base import errors
from largesse.base.batching import Receiver
from largesse.base.decoding import decode_body
from largesse.base.errors import NotFound, Problem
from largesse.catalogue.snapshot import Snapshot
from largesse.customers.actor import Actor, key_actor
from largesse.customers.authenticator import Caller
from largesse.customers.principal import Principal
from largesse.web.kit.asgi import Reply
from largesse.web.kit.problems import (
    PROBLEMS,
    HeadersTooLarge,
    InternalError,
    ProblemType,
    SlowRequest,
    TooLarge,
    UnsupportedBody,
)
from largesse.web.kit.query import INT32
from largesse.web.kit.services import Services

Decoded = TypeVar("Decoded")
_PARAMETER = re.compile(r"\{(\w+)\}")
# JSON schemas of parameters in paths, for `Operation.path_types`.
ParameterTypes = dict[str, dict[str, Any]]
ID_IN_PATH: ParameterTypes = {
    "id": {"type": "integer", "minimum": 1, "maximum": INT32, "description": "The `id` from the list", "examples": [1]}
}
UUID_IN_PATH: ParameterTypes = {
    "id": {
        "type": "string",
        "format": "uuid",
        "description": "The `id` of the subscription",
        "examples": ["7f3c1e0a-5b52-4d0e-9c55-0f3f5d1c2b6a"],
    }
}
ORDER_IN_PATH: ParameterTypes = {
    "reference": {
        "type": "string",
        "minLength": 1,
        "maxLength": 64,
        "description": "The `reference` of the order's send response",
        "examples": ["0WBQK7M2PXR4D9VA1C3E"],
    }
}


class Call(msgspec.Struct, frozen=True):
    """A request to an operation."""

    caller: Caller | None
    path: dict[str, str]
    query: Any
    body: bytes
    request_id: bytes
    ignored: list[str]  # names of unknown parameters and members, which the answer lists
    scope: str | None = None  # the scope that the key must have

    def read(self, wanted: type[Decoded]) -> Decoded:
        """Returns the body decoded as `wanted`. Adds unknown members to `ignored`. Raises InvalidRequest."""
        return decode_body(self.body, wanted, self.ignored)

    @property
    def known_caller(self) -> Caller:
        """The caller. Only for operations that need a key."""
        assert self.caller is not None, "the operation needs a key"
        return self.caller

    @property
    def principal(self) -> Principal:
        """The principal of the caller. Only for operations that need a key."""
        return self.known_caller.principal

    def actor(self, services: Services) -> Actor:
        """Returns the caller as an actor. Every operation that writes needs one, except a send: there the placer checks the key."""
        principal, scopes = self.principal, () if self.scope is None else (self.scope,)
        assert principal.key_id is not None, "operations are called with keys"
        who = by_key(
            principal.key_id, principal.service_account_name, self.known_caller.address, self.request_id.decode()
        )
        return key_actor(services.database, services.writing_turns, principal, Acting(who, services.chains), *scopes)

    def id(self, name: str = "id", *, highest: int = INT32) -> int:
        """Returns an id in the path. Raises NotFound for anything but a number from 1 to `highest`."""
        text = self.path[name]
        if not (text.isascii() and text.isdigit() and len(text) <= len(str(highest)) and 0 < int(text) <= highest):
            raise NotFound(f"There is nothing under {text!r}: an id here is a whole number from 1 to {highest}.")
        return int(text)

    def uuid(self, name: str = "id") -> UUID:
        """Returns a UUID in the path. Raises NotFound for anything else."""
        try:
            return UUID(self.path[name])
        except ValueError:
            raise NotFound(f"There is nothing under {self.path[name]!r}: an id here is a UUID.") from None

    async def snapshot(self, services: Services) -> Snapshot:
        """Returns the products and curated collections, no older than when the key was looked up."""
        return await services.catalogue.at(self.known_caller.catalogue_version)

    def loaded_snapshot(self, services: Services) -> Snapshot | None:
        """Returns the result of `snapshot` if it is in memory; None if it must be loaded."""
        return services.catalogue.loaded(self.known_caller.catalogue_version)

    async def own_snapshot(self, services: Services) -> Snapshot:
        """Returns the products, the curated collections and the customer's own collections."""
        return await services.catalogue.of(self.known_caller)


Handler = Callable[[Services, Call], Awaitable[Reply]]
# Returns the reply; True if the receiver gets its body later; False if only the handler can answer.
AtOnce = Callable[[Services, Call, Receiver[bytes]], Reply | bool]


class NoQuery(msgspec.Struct, frozen=True):
    """No query parameters."""


class Operation(msgspec.Struct, frozen=True):
    """How an operation is called, answered and described.

    `path_types` has the JSON schema of each path parameter. `shape` is the type of a successful body, None without one;
    `example` shows one. `also` has further statuses with the same shape, each with an example. `problems` lists errors
    beyond those of every operation. A key of an inactive service account is admitted only if `needs_active` is
    false, and a narrowed key only if it has the `scope`. A `scope` of None admits every key.
    """

    method: str
    path: str
    name: str  # the operationId in the OpenAPI document
    summary: str
    handler: Handler
    tag: str
    shape: Any = None
    example: Any = None
    description: str = ""
    status: int = 200
    query: type[msgspec.Struct] = NoQuery
    path_types: ParameterTypes = {}
    body: type[msgspec.Struct] | None = None
    body_examples: dict[str, Any] = {}
    also: dict[int, Any] = {}
    problems: tuple[type[Problem], ...] = ()
    needs_key: bool = True
    needs_active: bool = True
    scope: str | None = None
    recalls: bool = False  # whether it accepts a remembered caller; raises StaleCaller if that may be out of date
    at_once: AtOnce | None = None  # gives the handler's answer without a task

    @property
    def all_problems(self) -> tuple[ProblemType, ...]:
        """Every problem that this operation can answer, by status."""
        common: list[type[Problem]] = [HeadersTooLarge, errors.InvalidRequest, InternalError, errors.Unavailable]
        if self.needs_key:
            common += [errors.Unauthorized, errors.NetworkNotAllowed, errors.PlanRequired, errors.TooManyRequests]
            common += [errors.Inactive] if self.needs_active else []
            common += [errors.ScopeRequired] if self.scope is not None else []
        if self.body is not None:
            common += [SlowRequest, TooLarge, UnsupportedBody]
        possible = {*common, *self.problems}
        return tuple(problem for problem in PROBLEMS if problem.raised in possible)

    @property
    def pattern(self) -> re.Pattern[str] | None:
        """The pattern of its path; None for a path without parameters."""
        if "{" not in self.path:
            return None
        return re.compile(_PARAMETER.sub(r"(?P<\1>[^/]+)", self.path))
