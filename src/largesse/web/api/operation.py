"""One operation of the API: declared once, and from that both served and documented."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from largesse.audit.service import Acting, by_key
from largesse.base.decoding import decode_body
from largesse.base.errors import (
    Inactive,
    InvalidRequest,
    NetworkNotAllowed,
    NotFound,
    PlanRequired,
    Problem,
    ScopeRequired,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)
from largesse.catalogue.snapshot import Snapshot
from largesse.customers.access import hold_key
from largesse.customers.actor import Actor, key_actor
from largesse.customers.authenticator import Caller
from largesse.customers.principal import Principal
from largesse.db.pool import Connection
from largesse.web.kit.problems import (
    PROBLEMS,
    HeadersTooLarge,
    InternalError,
    ProblemType,
    SlowRequest,
    TooLarge,
    UnsupportedBody,
)
from largesse.web.kit.replies import Reply
from largesse.web.kit.services import Services

Decoded = TypeVar("Decoded")
INT32 = 2_147_483_647
INT64 = 9_223_372_036_854_775_807
_PARAMETER = re.compile(r"\{(\w+)\}")


class Call(msgspec.Struct, frozen=True):
    """One request to an operation."""

    caller: Caller | None
    path: dict[str, str]
    query: Any
    body: bytes
    request_id: bytes
    ignored: list[str]  # names of parameters and members that there are none of, for the answer to name
    scope: str | None = None  # that the operation takes

    def read(self, wanted: type[Decoded]) -> Decoded:
        """Returns the body as `wanted`, and notes the members that it does not have. Raises InvalidRequest."""
        return decode_body(self.body, wanted, self.ignored)

    @property
    def principal(self) -> Principal:
        """For whom the caller acts; operations that take no key must not ask."""
        assert self.caller is not None, "the operation needs a key"
        return self.caller.principal

    @property
    def address(self) -> str | None:
        """The network address it came from, as far as that is known."""
        assert self.caller is not None, "the operation needs a key"
        return self.caller.address

    def acting(self, services: Services) -> Acting:
        """The caller, for what is kept in the audit log."""
        principal = self.principal
        assert principal.key_id is not None, "operations are called with keys"
        name = principal.service_account_name
        return Acting(by_key(principal.key_id, name, self.address, self.request_id.decode()), services.chains)

    def actor(self, services: Services) -> Actor:
        """Returns the caller as the actor of a room's operation, whose transactions are those of `writing`."""
        return key_actor(lambda: self.writing(services), self.principal, self.acting(services))

    async def record(
        self,
        services: Services,
        connection: Connection,
        act: str,
        subject: str,
        *,
        after: Mapping[str, Any] | None = None,
    ) -> None:
        """Keeps in the audit log that the caller did this, as `Acting.record` does: last in the transaction."""
        await self.acting(services).record(
            connection,
            act,
            subject,
            customer_id=self.principal.customer_id,
            environment=self.principal.environment,
            after=after,
        )

    def id(self, name: str = "id", *, highest: int = INT32) -> int:
        """An id of the path; what is none from 1 to `highest` names nothing, which is NotFound."""
        text = self.path[name]
        if not (text.isascii() and text.isdigit() and len(text) <= len(str(highest)) and 0 < int(text) <= highest):
            raise NotFound(f"There is nothing under {text!r}.")
        return int(text)

    def uuid(self, name: str = "id") -> UUID:
        """A UUID of the path; what is none names nothing, which is NotFound."""
        try:
            return UUID(self.path[name])
        except ValueError:
            raise NotFound(f"There is nothing under {self.path[name]!r}.") from None

    @property
    def now(self) -> datetime:
        """The database's clock when the key was looked up."""
        assert self.caller is not None, "the operation needs a key"
        return self.caller.now

    @asynccontextmanager
    async def writing(self, services: Services) -> AsyncIterator[Connection]:
        """A transaction for what the call writes, in which its key has been looked at again and can be neither deleted nor narrowed.

        Every operation that writes does so in one, but for orders: the placer looks at their keys itself. It may have to wait
        for what somebody else has locked, with a connection in hand, hence in turns. Raises what `hold_key` does,
        or Unavailable when too many wait.
        """
        async with (
            services.writing_turns.turn(self.principal.customer_id),
            services.database.transaction(self.principal.scope) as connection,
        ):
            scopes = () if self.scope is None else (self.scope,)
            await hold_key(connection, self.principal, *scopes, address=self.address)
            yield connection

    async def snapshot(self, services: Services) -> Snapshot:
        """The catalogue as it is now, no older than when the key was looked up."""
        assert self.caller is not None, "the operation needs a key"
        return await services.catalogue.at(self.caller.catalogue_version)


Handler = Callable[[Services, Call], Awaitable[Reply]]


class NoQuery(msgspec.Struct, frozen=True):
    """No query parameters."""


@dataclass(frozen=True, slots=True)
class Operation:
    """How an operation is called, answered and described.

    `path_types` gives the JSON schema of each path parameter; `shape` is the type of a successful body, None when
    it has none; `example` shows one. `also` holds further statuses that answer in the same shape, each with an
    example. `problems` are those beyond what every operation can answer. A key whose service account is switched off is
    let in only where `needs_active` is false, and one that is narrowed only where it has the `scope`, None for any.
    """

    method: str
    path: str
    name: str  # operationId
    summary: str
    handler: Handler
    tag: str
    shape: Any = None
    example: Any = None
    description: str = ""
    status: int = 200
    query: type[msgspec.Struct] = NoQuery
    path_types: dict[str, dict[str, Any]] = field(default_factory=dict)
    body: type[msgspec.Struct] | None = None
    body_examples: dict[str, Any] = field(default_factory=dict)
    also: dict[int, Any] = field(default_factory=dict)
    problems: tuple[type[Problem], ...] = ()
    needs_key: bool = True
    needs_active: bool = True
    scope: str | None = None

    @property
    def all_problems(self) -> tuple[ProblemType, ...]:
        """Every kind of problem this operation can answer, by status."""
        common: list[type[Problem]] = [HeadersTooLarge, InvalidRequest, InternalError, Unavailable]
        if self.needs_key:
            common += [Unauthorized, NetworkNotAllowed, PlanRequired, TooManyRequests]
            common += [Inactive] if self.needs_active else []
            common += [ScopeRequired] if self.scope is not None else []
        if self.body is not None:
            common += [SlowRequest, TooLarge, UnsupportedBody]
        possible = {*common, *self.problems}
        return tuple(problem for problem in PROBLEMS if problem.raised in possible)

    @property
    def pattern(self) -> re.Pattern[str] | None:
        """What its path looks like, None when it has no parameters."""
        if "{" not in self.path:
            return None
        return re.compile(_PARAMETER.sub(r"(?P<\1>[^/]+)", self.path))
