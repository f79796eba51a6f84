"""The people of a customer: what each is there. How they sign in is `largesse.customers`.

What administrators and operators do with a customer's people: invite, give a role, take away.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from largesse.base.errors import InvalidRequest, NotFound
from largesse.customers.people import find_person
from largesse.customers.principal import Principal
from largesse.customers.second_step import HAS_ONE, asks_second_step, forget_second_step
from largesse.customers.sessions import end_sessions_of_user
from largesse.customers.sign_in_links import end_links, new_link
from largesse.db.pool import Connection, open_credentials
from largesse.jobs.outbox import mail_second_step


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
        "UPDATE users SET is_active = false, person_id = NULL WHERE customer_id = $1 AND id = $2", customer_id, user_id
    )


async def bind_user(connection: Connection, user_id: int, person_id: int) -> None:
    """Makes a user that person, who signs in."""
    await open_credentials(connection)
    await connection.execute("UPDATE users SET person_id = $2 WHERE id = $1", user_id, person_id)


async def note_login(connection: Connection, user_id: int) -> None:
    """Notes that a user has signed in."""
    await connection.execute("UPDATE users SET last_login_at = clock_now() WHERE id = $1", user_id)


MOST_PEOPLE = 500


class LastAdministrator(InvalidRequest):
    """A customer is never without an administrator who can sign in, or has been invited."""

    def __init__(self) -> None:
        super().__init__("A customer needs an administrator: make somebody else one first.")


class AlreadyThere(InvalidRequest):
    """Who is invited belongs to the customer already."""


@dataclass(frozen=True, slots=True)
class Colleague:
    """Somebody who belongs to a customer, or was invited, or did belong to it."""

    id: int
    customer: str  # its key
    email: str
    name: str
    role: str
    is_active: bool
    has_signed_in: bool  # ever: an invitation was taken up
    has_second_step: bool
    invited_until: datetime | None  # while an invitation holds
    last_login_at: datetime | None


@dataclass(frozen=True, slots=True)
class Invitation:
    """Who was invited, and the secret of the link, told only here."""

    user_id: int
    email: str
    role: str
    secret: str


async def list_colleagues(connection: Connection, customer_id: int | None = None) -> list[Colleague]:
    """The people of a customer, or of all: those who belong to it first, by name."""
    rows = await connection.fetch(
        f"""
        SELECT u.id, c.key AS customer, u.email, u.name, u.role, u.is_active, u.person_id IS NOT NULL AS has_signed_in,
               p.id IS NOT NULL AND {HAS_ONE} AS has_second_step,
               (SELECT max(l.ends_at) FROM sign_in_links l WHERE l.user_id = u.id AND l.kind = 'invitation'
                AND l.used_at IS NULL AND l.ends_at > clock_now()) AS invited_until,
               u.last_login_at
        FROM users u JOIN customers c ON c.id = u.customer_id LEFT JOIN people p ON p.id = u.person_id
        WHERE $1::int IS NULL OR u.customer_id = $1
        ORDER BY c.key, u.is_active DESC, u.name, u.id
        """,  # noqa: S608 - put together from constants
        customer_id,
    )
    return [Colleague(**row) for row in rows]


async def invite(
    connection: Connection, customer_id: int, email: str, *, name: str | None, role: str | None
) -> Invitation:
    """Invites an address: whoever has the link and signs in by that address belongs to the customer.

    One that was invited before, or did belong to it, is invited anew. Without a `role` they keep the one they have, and somebody
    new becomes a member. Raises AlreadyThere; InvalidRequest for one too many.
    """
    row = await connection.fetchrow(
        """
        SELECT (SELECT count(*) FROM users WHERE customer_id = $1 AND is_active) AS people, u.name, u.role,
               u.is_active AND u.person_id IS NOT NULL AS is_there
        FROM (VALUES (1)) AS one LEFT JOIN users u ON u.customer_id = $1 AND lower(u.email) = lower($2)
        """,
        customer_id,
        email,
    )
    assert row is not None, "there is always one"
    if row["is_there"]:
        raise AlreadyThere(f"{email} belongs to the customer already.")
    if row["people"] >= MOST_PEOPLE:
        raise InvalidRequest(f"A customer has at most {MOST_PEOPLE} people.")
    role = role or row["role"] or "member"
    user_id = await add_user(connection, customer_id, email, name or row["name"] or email.partition("@")[0], role)
    return Invitation(user_id, email, role, await new_link(connection, "invitation", user_id=user_id))


async def invite_again(connection: Connection, customer_id: int, user_id: int) -> Invitation:
    """A new link for who was invited; the one before holds no longer. Raises NotFound; AlreadyThere."""
    colleague = await _colleague(connection, customer_id, user_id)
    if colleague.has_signed_in:
        raise AlreadyThere(f"{colleague.email} belongs to the customer already.")
    secret = await new_link(connection, "invitation", user_id=user_id)
    return Invitation(user_id, colleague.email, colleague.role, secret)


async def set_role(connection: Connection, customer_id: int, user_id: int, role: str) -> Colleague:
    """Gives somebody a role; from their next request on they have it. Raises NotFound, LastAdministrator."""
    colleague = await _colleague(connection, customer_id, user_id)
    if role != "admin":
        await _require_other_admin(connection, customer_id, colleague)
    await set_user_role(connection, customer_id, user_id, role)
    return colleague


async def remove(connection: Connection, customer_id: int, user_id: int) -> Colleague:
    """Takes somebody's place away, at once: their sessions there, and links. Raises NotFound, LastAdministrator."""
    colleague = await _colleague(connection, customer_id, user_id)
    await _require_other_admin(connection, customer_id, colleague)
    await deactivate_user(connection, customer_id, user_id)
    await end_sessions_of_user(connection, user_id)
    await end_links(connection, user_id=user_id)
    return colleague


async def reset(connection: Connection, email: str, *, second_step: bool = False, mails: bool = False) -> str:
    """The secret of a link by which a person chooses a new password, with their `second_step` forgotten, which they are told where it `mails`.

    Raises NotFound for who has never signed in.
    """
    known = await find_person(connection, email)
    if known is None:
        raise NotFound(f"Nobody signs in as {email}.")
    if second_step:
        if mails and await asks_second_step(connection, known.id):
            await mail_second_step(connection, known.id, "forgotten")
        await forget_second_step(connection, known.id)
    return await new_link(connection, "reset", person_id=known.id)


async def _colleague(connection: Connection, customer_id: int, user_id: int) -> Colleague:
    """One who belongs to the customer, or was invited, locked. Raises NotFound."""
    # All that changes who is an administrator takes turns, so that two do not remove each other.
    await connection.execute("SELECT FROM customers WHERE id = $1 FOR NO KEY UPDATE", customer_id)
    for colleague in await list_colleagues(connection, customer_id):
        if colleague.id == user_id and colleague.is_active:
            return colleague
    raise NotFound("There is nobody of that number.")


async def _require_other_admin(connection: Connection, customer_id: int, colleague: Colleague) -> None:
    if colleague.role != "admin":
        return
    others = await connection.fetchval(
        "SELECT count(*) FROM users WHERE customer_id = $1 AND is_active AND role = 'admin' AND id <> $2",
        customer_id,
        colleague.id,
    )
    if not others:
        raise LastAdministrator
