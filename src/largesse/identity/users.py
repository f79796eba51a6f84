"""The people of a customer: what each is there. How they sign in is `largesse.people`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from largesse.database.pool import Connection, open_credentials
from largesse.identity.principal import Principal


@dataclass(frozen=True, slots=True)
class User:
    """A person on the customer's account."""

    id: int
    name: str
    email: str
    role: str  # admin, member, finance or viewer
    is_active: bool
    created_at: datetime
    last_login_at: datetime | None


async def list_users(connection: Connection, principal: Principal, *, offset: int, limit: int) -> list[User]:
    """The users of the principal's customer, newest first."""
    rows = await connection.fetch(
        """
        SELECT id, name, email, role, is_active, created_at, last_login_at
        FROM users WHERE customer_id = $1 ORDER BY id DESC OFFSET $2 LIMIT $3
        """,
        principal.customer_id,
        offset,
        limit,
    )
    return [User(**row) for row in rows]


async def add_user(connection: Connection, customer_id: int, email: str, name: str, role: str) -> int:
    """The id of who is known by that address at the customer; active with that name and role from now on."""
    await open_credentials(connection)
    user_id: int = await connection.fetchval(
        """
        INSERT INTO users (customer_id, email, name, role) VALUES ($1, $2, $3, $4)
        ON CONFLICT (customer_id, lower(email)) DO UPDATE SET name = excluded.name, role = excluded.role, is_active = true
        RETURNING id
        """,
        customer_id,
        email,
        name,
        role,
    )
    return user_id


async def set_user_role(connection: Connection, customer_id: int, user_id: int, role: str) -> None:
    """Gives a user of the customer that role."""
    await open_credentials(connection)
    await connection.execute(
        "UPDATE users SET role = $3 WHERE customer_id = $1 AND id = $2", customer_id, user_id, role
    )


async def deactivate_user(connection: Connection, customer_id: int, user_id: int) -> None:
    """Takes a user's place at the customer; it stays in the list, and the address is nobody's there."""
    await open_credentials(connection)
    await connection.execute(
        "UPDATE users SET is_active = false, person_id = NULL WHERE customer_id = $1 AND id = $2",
        customer_id,
        user_id,
    )


async def bind_user(connection: Connection, user_id: int, person_id: int) -> None:
    """Makes a user that person, who signs in."""
    await open_credentials(connection)
    await connection.execute("UPDATE users SET person_id = $2 WHERE id = $1", user_id, person_id)


async def note_login(connection: Connection, user_id: int) -> None:
    """Notes that a user has signed in."""
    await connection.execute("UPDATE users SET last_login_at = clock_now() WHERE id = $1", user_id)
