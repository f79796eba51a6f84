"""Which links end with which, and that none but those for it let choose a password, whatever a page asked before."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from argon2 import PasswordHasher

from largesse.base.errors import NotFound
from largesse.customers.member_store import add_user, bind_user
from largesse.customers.passwords import Passwords
from largesse.customers.people import add_person
from largesse.customers.sign_in import Origin, SigningIn
from largesse.customers.sign_in_links import end_links_of_person, find_link, new_link
from largesse.db.pool import Database
from largesse.db.scope import LOOKUP, OPERATOR
from largesse.encryption.vault import Vault

VAULT = Vault((bytes(range(32)),))
NOWHERE: Any = None


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    database = await Database.connect(database_url)
    yield database
    await database.close()


async def links_of(database: Database, email: str) -> dict[str, str]:
    """A copied link of each kind for somebody who belongs to a customer and has no password."""
    async with database.transaction(OPERATOR) as connection:
        customer_id = await connection.fetchval(
            """
            INSERT INTO customers (key, name, plan, funding) VALUES ('acme', 'Acme Ltd', 'pro', 'balance')
            ON CONFLICT (key) DO UPDATE SET name = excluded.name RETURNING id
            """
        )
        user_id = await add_user(connection, customer_id, email, "Somebody", "member")
        person_id = await add_person(connection, email)
        await bind_user(connection, user_id, person_id)
        return {
            "sign_in": await new_link(connection, "sign_in", user_id=user_id),
            "invitation": await new_link(connection, "invitation", user_id=user_id),
            "reset": await new_link(connection, "reset", person_id=person_id),
        }


async def test_only_a_persons_own_links_end_and_invitations_stay(database: Database) -> None:
    ada, bob = await links_of(database, "ada@acme.example"), await links_of(database, "bob@acme.example")
    async with database.transaction(LOOKUP) as connection:
        person_id = await connection.fetchval("SELECT id FROM people WHERE email = 'ada@acme.example'")
        await end_links_of_person(connection, person_id)
        for holds in (ada["invitation"], *bob.values()):
            await find_link(connection, holds)
        for ended in (ada["sign_in"], ada["reset"]):
            with pytest.raises(NotFound):
                await find_link(connection, ended)


@pytest.mark.parametrize("kind", ["sign_in", "invitation"])
async def test_no_such_link_gives_a_member_a_password(database: Database, kind: str) -> None:
    links = await links_of(database, "cem@acme.example")
    passwords = Passwords(PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
    signing_in = SigningIn(database, VAULT, NOWHERE, passwords, NOWHERE, "production", mails=False)
    with pytest.raises(NotFound):
        await signing_in.by_new_password(links[kind], "a password of a stranger", Origin(None, "Test"))
    async with database.connection(LOOKUP) as connection:
        await find_link(connection, links[kind])
    assert await database.fetchval(OPERATOR, "SELECT count(*) FROM people WHERE password IS NOT NULL") == 0
