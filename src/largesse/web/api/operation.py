"""One operation of the API: declared once, and from that both served and documented."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from largesse.base.errors import (
    HeadersTooLarge,
    Inactive,
    InternalError,
    InvalidRequest,
    NotFound,
    PlanRequired,
    Problem,
    SlowRequest,
    TooLarge,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    UnsupportedBody,
)
from largesse.base.patience import Patience
from largesse.base.settings import Settings
from largesse.base.turns import Turns
from largesse.base.vault import Vault
from largesse.catalogue import Catalogue, Snapshot
from largesse.database import Connection, Database
from largesse.delivery.webhooks import DeliveryLimits, Resolver
from largesse.identity import Authenticator, Caller, Principal, hold_key
from largesse.orders import OrderLists, Sender

_INT32 = 2_147_483_647
_PARAMETER = re.compile(r"\{(\w+)\}")

encode_json = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Services:
    """What operations work with; made once, in `largesse.main`."""

    settings: Settings
    database: Database
    vault: Vault
    catalogue: Catalogue
    authenticator: Authenticator
    sender: Sender
    order_lists: OrderLists
    resolver: Resolver
    delivery_limits: DeliveryLimits
    patience: Patience
    # For transactions of requests: some of the pool's connections, so that those who read find one.
    writing_turns: Turns[int] = field(default_factory=lambda: Turns(at_once=6, each=3, max_waiting=1_000))


class Reply(msgspec.Struct, frozen=True):
    """An answer: status, body and its media type, and further headers in lower case."""

    body: bytes
    status: int = 200
    media_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


class Call(msgspec.Struct, frozen=True):
    """One request to an operation."""

    caller: Caller | None
    path: dict[str, str]
    query: Any
    body: bytes

    @property
    def principal(self) -> Principal:
        assert self.caller is not None, "the operation needs a key"
        return self.caller.principal

    @property
    def address(self) -> str | None:
        """The network address it came from, as far as that is known."""
        assert self.caller is not None, "the operation needs a key"
        return self.caller.address

    def id(self) -> int:
        """The `{id}` of the path; what is no int32 names nothing, which is NotFound."""
        text = self.path["id"]
        if not (text.isascii() and text.isdigit() and len(text) <= 10 and 0 < int(text) <= _INT32):
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
        """A transaction for what the call writes, in which its key has been looked at again and cannot be deleted.

        Every operation that writes does so in one, but for orders: the placer looks at their keys itself. It may have to wait
        for what somebody else has locked, with a connection in hand, hence in turns. Raises Unauthorized, PlanRequired, Inactive,
        or Unavailable when too many wait.
        """
        async with (
            services.writing_turns.turn(self.principal.customer_id),
            services.database.transaction() as connection,
        ):
            await hold_key(connection, self.principal)
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
    let in only where `needs_active` is false.
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

    @property
    def all_problems(self) -> tuple[type[Problem], ...]:
        """Every problem this operation can answer, by status."""
        common: list[type[Problem]] = [HeadersTooLarge, InvalidRequest, InternalError, Unavailable]
        if self.needs_key:
            common += [Unauthorized, PlanRequired, TooManyRequests]
            common += [Inactive] if self.needs_active else []
        if self.body is not None:
            common += [SlowRequest, TooLarge, UnsupportedBody]
        return tuple(sorted({*common, *self.problems}, key=lambda problem: (problem.status, problem.slug)))

    @property
    def pattern(self) -> re.Pattern[str] | None:
        """What its path looks like, None when it has no parameters."""
        if "{" not in self.path:
            return None
        return re.compile(_PARAMETER.sub(r"(?P<\1>[^/]+)", self.path))
