"""The actors in the demo's history: people of the customer, service accounts with their keys, and the operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from largesse.audit.service import Acting, by_command, by_person
from largesse.customers.actor import Actor, command_actor, person_actor
from largesse.customers.authenticator import Caller, person_calls
from largesse.customers.member_store import bind_user, list_members
from largesse.customers.people import add_person
from largesse.customers.sessions import Person, begin_session, find_session
from largesse.db.pool import Database
from largesse.db.scope import LOOKUP, OPERATOR
from largesse.demo.timeline import Timeline
from largesse.web.kit.services import Services

ENVIRONMENT = "production"
_AGAIN_AFTER = timedelta(days=10)  # people sign in again after it, before their session ends
_ADDRESS = "192.0.2.17"
_BROWSER = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:140.0) Gecko/20100101 Firefox/140.0"


@dataclass(frozen=True, slots=True)
class _SignedIn:
    person: Person
    since: datetime


@dataclass(slots=True)
class People:
    """The actors of one customer. `secrets` are the API keys, by service account. `ids` are those of the seed file, by key."""

    services: Services
    operators: Database
    timeline: Timeline
    ids: Mapping[str, Mapping[str, int]]
    customer_id: int
    secrets: Mapping[str, str]
    _signed_in: dict[str, _SignedIn] = field(default_factory=dict)

    async def person(self, email: str) -> Person:
        """Returns the person with that address, and signs them in every few days."""
        before = self._signed_in.get(email)
        if before is not None and self.timeline.now - before.since < _AGAIN_AFTER:
            return before.person
        async with self.operators.transaction(OPERATOR) as connection:
            members = await list_members(connection, self.customer_id)
            user_id = next(one.id for one in members if one.email == email)
            person_id = await add_person(connection, email)
            await bind_user(connection, user_id, person_id)
        async with self.services.database.transaction(LOOKUP) as connection:
            secret = await begin_session(
                connection, person_id, user_id, ENVIRONMENT, address=_ADDRESS, browser=_BROWSER
            )
        session = await find_session(self.services.database, secret)
        assert session is not None, "it was just begun"
        assert session.person is not None, "it is for a customer"
        self._signed_in[email] = _SignedIn(session.person, self.timeline.now)
        return session.person

    async def actor(self, email: str) -> Actor:
        """Returns the person as the actor of an operation."""
        person = await self.person(email)
        who = by_person(person.user_id, person.email, _ADDRESS, None)
        return person_actor(self.services.database, person, Acting(who, self.services.chains))

    def operator(self, command: str) -> Actor:
        """Returns the operator as the actor of that command, on behalf of the customer."""
        acting = Acting(by_command(command), self.services.chains)
        return command_actor(self.operators, acting).on_behalf_of(self.customer_id, ENVIRONMENT)

    async def caller(self, sender: str) -> Caller:
        """Returns the caller of an order: a person by their address, or a service account by its key."""
        if secret := self.secrets.get(sender):
            return await self.services.authenticator.authenticate(secret, "198.51.100.7")
        person = await self.person(sender)
        async with self.services.database.connection(person.scope) as connection:
            return await person_calls(
                connection,
                user_id=person.user_id,
                customer_id=person.customer_id,
                environment=person.environment,
                session_id=person.session_id,
                address=_ADDRESS,
            )
