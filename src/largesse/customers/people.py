"""The rows of `people`: who may sign in by an address, and what they sign in with."""

from __future__ import annotations

from dataclasses import dataclass, field

from largesse.base.email import email_key
from largesse.customers.sign_in_store import PEOPLE, SignInSql
from largesse.db.pool import Connection, credentials_key, open_credentials

_FIND = """
    SELECT p.id, p.email, password_of($2, p.id) AS password, p.has_password,
           EXISTS (SELECT FROM memberships(p.id)) AS is_member,
           p.confirmed_at IS NOT NULL AS is_confirmed
    FROM people p WHERE p.email_key = $1
"""
_FIND_ID = "SELECT id FROM people WHERE email_key = $1"
_ADD = """
    INSERT INTO people (email, email_key) VALUES ($1, $2)
    ON CONFLICT (email_key) DO UPDATE SET email_key = excluded.email_key RETURNING id
"""


@dataclass(frozen=True, slots=True)
class PersonRecord:
    """Somebody who may sign in."""

    id: int
    email: str
    password: str | None = field(repr=False)  # its stored hash; None also for a process that has no master key
    has_password: bool
    is_member: bool  # of some customer
    is_confirmed: bool  # has shown that they read the mail of the address


async def find_person(connection: Connection, email: str) -> PersonRecord | None:
    """Returns the person who signs in with that address, letter case ignored; None if nobody does."""
    row = await connection.fetchrow(_FIND, email_key(email), credentials_key(connection))
    return None if row is None else PersonRecord(**row)


async def find_person_id(connection: Connection, email: str) -> int | None:
    """Returns the id of the person who signs in with that address, letter case ignored; None if nobody does."""
    person_id: int | None = await connection.fetchval(_FIND_ID, email_key(email))
    return person_id


async def add_person(connection: Connection, email: str) -> int:
    """Returns the id of the person who signs in with that address, and adds them if there is none."""
    await open_credentials(connection)
    person_id: int = await connection.fetchval(_ADD, email, email_key(email))
    return person_id


async def set_password(connection: Connection, person_id: int, password: str, sql: SignInSql = PEOPLE) -> None:
    """Stores the hash of a password."""
    await open_credentials(connection)
    await connection.execute(sql.set_hash, person_id, password)


async def set_first_password(connection: Connection, person_id: int, password: str, sql: SignInSql = PEOPLE) -> bool:
    """Sets the password of a person without one; returns False if they have one."""
    await open_credentials(connection)
    done = await connection.execute(sql.set_first_hash, person_id, password)
    return done == "UPDATE 1"


async def holds_password(connection: Connection, person_id: int, password: str | None, sql: SignInSql = PEOPLE) -> bool:
    """Returns whether that is still the hash of the person's password, and locks it until the transaction ends."""
    # Read once the row is locked, because another transaction may change it until then.
    await connection.execute(sql.lock, person_id)
    holds = await connection.fetchval(sql.holds_hash, credentials_key(connection), person_id, password)
    return bool(holds)


async def set_preferences(
    connection: Connection, person_id: int, language: str | None, zone: str | None, sql: SignInSql = PEOPLE
) -> None:
    """Saves a person's language and time zone. None means the browser's language, and UTC."""
    await connection.execute(sql.set_preferences, person_id, language, zone)
