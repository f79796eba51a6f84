"""Actors: who performs an operation, and in which transaction.

An operation takes an `Actor`, which combines right, transaction and audit entry for all callers:

    async with actor.transaction(Right.MOVE_FUNDS) as transaction:
        ...                                                      # reads and writes through transaction.connection
        await transaction.record("top_up.requested", "top-up RF18…")   # last, as it locks the end of the audit log
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any

import msgspec
from msgspec.structs import replace

from largesse.audit.service import INSTALLATION, Acting
from largesse.base.cooperative import FairTurns
from largesse.customers.access import AccessChanged, hold_key, writing
from largesse.customers.principal import Principal, staff_principal
from largesse.customers.roles import RIGHTS, Right
from largesse.customers.sessions import Person
from largesse.customers.staff_roles import StaffMember, StaffRight
from largesse.db.pool import Connection, Database
from largesse.db.scope import OPERATOR, WORKER, Place
from largesse.encryption.chain import Chain

_MOST_NAME = 200  # characters of a file's name in the audit log


class ReadAgain(Exception):
    """Somebody else changed what the caller has read. Nothing was changed: read it again, and repeat the call."""


def require_same(seen: object, now: object) -> None:
    """Raises ReadAgain if what the caller has seen is not what is there, locked, now. A caller who depends on nothing has seen None."""
    if seen is not None and seen != now:
        raise ReadAgain


class Transaction(msgspec.Struct, frozen=True):
    """An open transaction of an actor."""

    connection: Connection
    actor: Actor

    def on_behalf_of(self, customer_id: int, environment: str | None = None) -> Transaction:
        """Returns the same transaction with audit entries for another customer: the one of a row that an operator named by id."""
        return replace(self, actor=self.actor.on_behalf_of(customer_id, environment))

    def of_installation(self) -> Transaction:
        """Returns the same transaction with audit entries for the installation, which no customer can read."""
        return replace(self, actor=replace(self.actor, customer_id=INSTALLATION, environment=None, reason=None))

    @property
    def entries(self) -> Chain:
        """The chain that ledger entries are marked with."""
        return self.actor.acting.chains.entries

    async def record(
        self, act: str, subject: str, *, before: Mapping[str, Any] | None = None, after: Mapping[str, Any] | None = None
    ) -> None:
        """Adds an entry to the audit log. Call it last: it locks the end of the customer's log."""
        actor = self.actor
        if actor.reason is not None:
            after = {**(after or {}), "reason": actor.reason}
        await actor.acting.record(
            self.connection,
            act,
            subject,
            customer_id=actor.customer_id,
            environment=actor.environment,
            before=before,
            after=after,
        )


class Actor(msgspec.Struct, frozen=True):
    """Who performs an operation: a person, an API key, a member of staff or a command.

    Members of staff and commands act for the whole installation: their `customer_id` is 0, and their `environment` None. Only a person has
    `person`, only a member of staff `staff`, and only a person and an API key `caller`.
    """

    acting: Acting
    # Begins a transaction. The argument says whether it changes access.
    begin: Callable[[bool], AbstractAsyncContextManager[Connection]]
    customer_id: int = INSTALLATION
    environment: str | None = None
    person: Person | None = None
    caller: Principal | None = None
    staff: StaffMember | None = None
    reason: str | None = None  # why a member of staff acts: each audit entry says it

    @property
    def principal(self) -> Principal:
        """The person or the API key, for rules and reads. A command has none unless it acts in an environment of a customer."""
        if self.caller is None and self.environment is not None:
            return staff_principal(self.customer_id, self.environment)
        assert self.caller is not None, "it acts on behalf of a customer in an environment"
        return self.caller

    @property
    def place(self) -> Place:
        """The customer and the environment. Use it only in operations that belong to an environment."""
        assert self.environment is not None, "it acts in an environment"
        return self.customer_id, self.environment

    @property
    def user_id(self) -> int | None:
        """The id of the person's membership. None for an API key and a command."""
        return None if self.person is None else self.person.user_id

    @property
    def role(self) -> str | None:
        """The person's role. None for an API key and a command."""
        return None if self.person is None else self.person.role

    def on_behalf_of(self, customer_id: int, environment: str | None = None, reason: str | None = None) -> Actor:
        """Returns the same actor, acting for a customer: audit entries name it and the reason. For commands and members of staff."""
        return replace(self, customer_id=customer_id, environment=environment, reason=reason or self.reason)

    def within(self, transaction: Transaction) -> Actor:
        """Returns the same actor with operations that run inside its open transaction."""
        return replace(self, begin=lambda _: nullcontext(transaction.connection))

    @asynccontextmanager
    async def transaction(
        self, right: Right | StaffRight | None = None, staff: StaffRight | None = None, *, changes_access: bool = False
    ) -> AsyncIterator[Transaction]:
        """Begins a transaction that locks what the actor's right depends on.

        An operation for both people of customers and members of staff names both rights: `Right.SETTINGS, StaffRight.CUSTOMERS`. Without a
        StaffRight, members of staff may not perform it. With only a StaffRight, people and keys may not.

        Set `changes_access` for operations that end sessions or change rights: transactions of the same customer or person then wait
        for each other first. Raises AccessChanged for a person who lacks the right, or lost it since the request began, and raises as
        `hold_key` does for a key.
        """
        if not self._may(right, staff):
            raise AccessChanged
        async with self.begin(changes_access) as connection:
            yield Transaction(connection, self)

    def _may(self, right: Right | StaffRight | None, staff: StaffRight | None) -> bool:
        if isinstance(right, StaffRight):
            right, staff = None, right
            if self.caller is not None:
                return False
        if self.staff is not None:
            return staff is not None and self.staff.may(staff)
        return self.role is None or right is None or self.role in RIGHTS[right]


def person_actor(database: Database, person: Person, acting: Acting) -> Actor:
    """Returns the actor for a person who is signed in. Each transaction locks their session, membership and role."""
    return Actor(
        acting,
        lambda changes_access: writing(database, person, changes_access=changes_access),
        person.customer_id,
        person.environment,
        person,
        person.principal,
    )


def key_actor(database: Database, turns: FairTurns[int], principal: Principal, acting: Acting, *scopes: str) -> Actor:
    """Returns the actor for an API key. Its transactions call `hold_key` with the scopes that the operation requires.

    Such a transaction may wait for locks while it uses a connection, so customers take turns. Raises Unavailable if too many wait.
    """

    @asynccontextmanager
    async def begin(_: bool) -> AsyncIterator[Connection]:
        async with turns.turn(principal.customer_id), database.transaction(principal.scope) as connection:
            await hold_key(connection, principal, *scopes, address=acting.who.address)
            yield connection

    return Actor(acting, begin, *principal.place, caller=principal)


def command_actor(database: Database, acting: Acting) -> Actor:
    """Returns the actor for an operator's command, which may do everything."""
    return Actor(acting, lambda _: database.transaction(OPERATOR))


def worker_actor(database: Database, acting: Acting) -> Actor:
    """Returns the actor for the automatic work of a worker."""
    return Actor(acting, lambda _: database.transaction(WORKER))


async def record_export(actor: Actor, name: str, staff: StaffRight | None = None) -> None:
    """Records that a person, or a member of staff with that right, downloads a file with that name."""
    async with actor.transaction(staff=staff) as transaction:
        await transaction.record("file.exported", name[:_MOST_NAME])
