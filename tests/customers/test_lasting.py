"""How long what lets people in holds, to the second before its end, and which links end with which or let choose a password."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from argon2 import PasswordHasher

from largesse.base.errors import NotFound
from largesse.customers.members import add_user, bind_user
from largesse.customers.passkeys import NotThePasskey, _challenge, _take_challenge
from largesse.customers.passwords import Passwords
from largesse.customers.sessions import Session, begin_session, find_session
from largesse.customers.sign_in import Origin, SigningIn
from largesse.customers.sign_in_links import end_links_of_person, find_link, new_link
from largesse.customers.sign_in_store import add_person
from largesse.db.pool import Database
from largesse.db.scope import LOOKUP, OPERATOR
from largesse.encryption.vault import Vault

VAULT = Vault((bytes(range(32)),))
NOWHERE: Any = None
MINUTE, HOUR, DAY = 60, 3_600, 86_400
EDGE_S = 30  # a busy machine's time between two statements


@pytest.fixture
async def database(module_database_url: str) -> AsyncIterator[Database]:
    database = await Database.connect(module_database_url)
    await ahead(database, 0)
    yield database
    await database.close()


async def ahead(database: Database, seconds: float) -> None:
    await database.execute(OPERATOR, "UPDATE clock SET ahead_by = $1 * interval '1 second'", float(seconds))


async def somebody(database: Database, email: str) -> tuple[int, int]:
    """The ids of a user and of its person."""
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
    return user_id, person_id


async def session_of(database: Database, email: str) -> str:
    user_id, person_id = await somebody(database, email)
    async with database.transaction(LOOKUP) as connection:
        return await begin_session(connection, person_id, user_id, "production", address=None, browser="Test")


@pytest.mark.parametrize(("kind", "lasts_s"), [("invitation", 7 * DAY), ("sign_in", 24 * HOUR), ("reset", HOUR)])
async def test_a_link(database: Database, kind: str, lasts_s: int) -> None:
    user_id, person_id = await somebody(database, f"{kind}@acme.example")
    of = {"person_id": person_id} if kind == "reset" else {"user_id": user_id}
    async with database.transaction(OPERATOR) as connection:
        secret = await new_link(connection, kind, **of)
    await ahead(database, lasts_s - EDGE_S)
    async with database.connection(LOOKUP) as connection:
        assert (await find_link(connection, secret)).kind == kind
        await ahead(database, lasts_s)
        with pytest.raises(NotFound):
            await find_link(connection, secret)


async def test_a_session_that_nobody_uses(database: Database) -> None:
    secret = await session_of(database, "idle@acme.example")
    await ahead(database, 12 * HOUR)
    assert await find_session(database, secret) is None
    await ahead(database, 12 * HOUR - EDGE_S)
    assert await find_session(database, secret) is not None, "and it is seen by this"
    await ahead(database, 23 * HOUR)
    assert await find_session(database, secret) is not None


async def test_a_session_that_is_used_all_the_time(database: Database) -> None:
    secret = await session_of(database, "busy@acme.example")
    for at_s, holds in ((14 * DAY - EDGE_S, True), (14 * DAY, False)):
        await ahead(database, at_s)
        await database.execute(LOOKUP, "UPDATE sessions SET seen_at = clock_now() WHERE ended_at IS NULL")
        assert (await find_session(database, secret) is not None) == holds


async def test_a_proof_that_it_is_still_them(database: Database) -> None:
    secret = await session_of(database, "proof@acme.example")
    for at_s, is_proved in ((10 * MINUTE - EDGE_S, True), (10 * MINUTE, False)):
        await ahead(database, at_s)
        session = await find_session(database, secret)
        assert isinstance(session, Session)
        assert session.person is not None
        assert session.person.is_proved == is_proved


async def test_what_a_passkey_is_asked_to_sign(database: Database) -> None:
    secret = await session_of(database, "key@acme.example")
    session = await find_session(database, secret)
    assert session is not None
    async with database.connection(LOOKUP) as connection:
        first = await _challenge(connection, session.id)
        await ahead(database, 5 * MINUTE - EDGE_S)
        assert await _challenge(connection, session.id) == first, "two pages side by side ask for the same"
        await ahead(database, 5 * MINUTE)
        second = await _challenge(connection, session.id)
        assert second != first
        await ahead(database, 15 * MINUTE - EDGE_S)
        assert await _take_challenge(connection, session.id) == second
        with pytest.raises(NotThePasskey):
            await _take_challenge(connection, session.id)
        await _challenge(connection, session.id)
        await ahead(database, 25 * MINUTE)
        with pytest.raises(NotThePasskey):
            await _take_challenge(connection, session.id)


async def links_of(database: Database, email: str) -> dict[str, str]:
    """A copied link of each kind for somebody who belongs to a customer and has no password."""
    user_id, person_id = await somebody(database, email)
    async with database.transaction(OPERATOR) as connection:
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
