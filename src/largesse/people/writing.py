"""Transactions of a person: each holds the session, the membership and the role that it relies on until it ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from largesse.database.pool import Connection, Database
from largesse.identity.standing import HeldPerson, hold_people
from largesse.people.session import Person


class AccessChanged(Exception):
    """The person is no longer signed in, or no longer with the role, customer and environment that the request began with."""


@asynccontextmanager
async def writing(
    database: Database, person: Person, *, changes_access: bool = False
) -> AsyncIterator[Connection]:
    """Begins a transaction for what the person writes, which first locks their session and their role. Raises AccessChanged.

    With `changes_access` it goes on to end sessions, or to change who may do what. Such transactions of a customer, and of
    a person, wait for each other before they lock anything else, so that no two of them wait for each other's sessions.
    """
    async with database.transaction(person.scope) as connection:
        if changes_access:
            await connection.execute(
                "SELECT FROM customers WHERE id = $1 FOR NO KEY UPDATE", person.customer_id
            )
            await connection.execute("SELECT FROM people WHERE id = $1 FOR NO KEY UPDATE", person.person_id)
        held = await hold_people(connection, [person.session_id])
        expected = HeldPerson(person.user_id, person.customer_id, person.environment, person.role)
        if held.get(person.session_id) != expected:
            raise AccessChanged
        yield connection
