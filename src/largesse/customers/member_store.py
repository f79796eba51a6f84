"""The SQL of members, the table `users`: people who belong to a customer, with their role."""

from datetime import datetime

import msgspec

from largesse.base.errors import NotFound, OperatorError
from largesse.customers.access_store import LOCK_USER
from largesse.customers.customer_store import find_customer
from largesse.customers.principal import Principal
from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Connection, Row, coordinator_of, open_credentials

_LIST_USERS = """
    SELECT id, name, email, role, is_active, created_at, last_login_at
    FROM users WHERE customer_id = $1 AND ($4::int IS NULL OR id < $4) ORDER BY id DESC OFFSET $2 LIMIT $3
"""
_MEMBER = Fragment("""
    SELECT u.id, c.key AS customer, u.email, u.name, u.role, u.is_active, u.person_id IS NOT NULL AS has_signed_in,
           p.id IS NOT NULL AND (p.has_app OR EXISTS (SELECT FROM passkeys k WHERE k.person_id = p.id)) AS has_second_step,
           (SELECT max(l.ends_at) FROM sign_in_links l WHERE l.user_id = u.id AND l.kind = 'invitation'
            AND l.used_at IS NULL AND l.ends_at > clock_now()) AS invited_until,
           u.last_login_at
    FROM users u JOIN customers c ON c.id = u.customer_id LEFT JOIN people p ON p.id = u.person_id
""")
_LIST_MEMBERS = compose(
    "{member} WHERE $1::int IS NULL OR u.customer_id = $1 ORDER BY c.key, u.is_active DESC, u.name, u.id",
    member=_MEMBER,
)
_ONE_MEMBER = compose("{member} WHERE u.customer_id = $1 AND u.id = $2", member=_MEMBER)
_SEARCH_MEMBERS = compose(
    """
    {member} WHERE u.customer_id = $1 AND ($2::bool IS NULL OR u.is_active = $2)
        AND (position($3 IN lower(u.name)) > 0 OR position($3 IN lower(u.email)) > 0)
    ORDER BY u.is_active DESC, u.name, u.id OFFSET $4 LIMIT $5
    """,
    member=_MEMBER,
)
_COUNT_MEMBERS = "SELECT count(*) FILTER (WHERE is_active) AS active, count(*) FILTER (WHERE NOT is_active) AS removed FROM users WHERE customer_id = $1"
_PLACE = """
    SELECT (SELECT count(*) FROM users WHERE customer_id = $1 AND is_active) AS people, u.name, u.role, u.is_active,
           u.is_active AND u.person_id IS NOT NULL AS is_there
    FROM (VALUES (1)) AS one LEFT JOIN users u ON u.customer_id = $1 AND lower(u.email) = lower($2)
"""
_ADD = """
    INSERT INTO users (customer_id, email, name, role) VALUES ($1, $2, $3, $4)
    ON CONFLICT (customer_id, lower(email)) DO UPDATE SET name = excluded.name, role = excluded.role, is_active = true
    RETURNING id
"""
_SET_ROLE = "UPDATE users SET role = $3 WHERE customer_id = $1 AND id = $2"
_DEACTIVATE = "UPDATE users SET is_active = false, person_id = NULL WHERE customer_id = $1 AND id = $2"
_BIND = "UPDATE users SET person_id = $2 WHERE id = $1"
_NOTE_LOGIN = "UPDATE users SET last_login_at = clock_now() WHERE id = $1"
_COUNT_OTHER_ADMINS = "SELECT count(*) FROM users WHERE customer_id = $1 AND is_active AND role = 'admin' AND id <> $2"


class User(msgspec.Struct, frozen=True):
    """A member as the API lists them."""

    id: int
    name: str
    email: str
    role: str  # admin, member, finance or viewer
    is_active: bool
    created_at: datetime
    last_login_at: datetime | None


class Member(msgspec.Struct, frozen=True):
    """A person who belongs to a customer, was invited, or was removed."""

    id: int
    customer: str  # the key of the customer
    email: str
    name: str
    role: str
    is_active: bool
    has_signed_in: bool  # has ever accepted an invitation
    has_second_step: bool
    invited_until: datetime | None  # until when an open invitation is valid
    last_login_at: datetime | None


async def list_users(
    connection: Connection, principal: Principal, *, offset: int, limit: int, before: int | None = None
) -> list[User]:
    """Returns the members of the principal's customer, newest first. With the id `before`, returns older ones, and ignores `offset`."""
    rows = await connection.fetch(_LIST_USERS, principal.customer_id, 0 if before else offset, limit, before)
    return [User(**row) for row in rows]


async def find_member(connection: Connection, customer: str, email: str) -> Member:
    """Returns the active member with an address of the customer with a key. Raises OperatorError if there is none."""
    for member in await list_members(connection, await find_customer(connection, customer)):
        if member.email.lower() == email.strip().lower() and member.is_active:
            return member
    raise OperatorError(f"{customer!r} has no person with that address")


async def list_members(connection: Connection, customer_id: int | None = None) -> list[Member]:
    """Returns the members of a customer, or of all: active ones first, by name."""
    rows = await connection.fetch(_LIST_MEMBERS, customer_id)
    return [Member(**row) for row in rows]


async def read_member(connection: Connection, customer_id: int, user_id: int) -> Member:
    """Returns a member of a customer, also one who was removed. Raises NotFound."""
    row = await connection.fetchrow(_ONE_MEMBER, customer_id, user_id)
    if row is None:
        raise NotFound("There is no such person.")
    return Member(**row)


async def search_members(
    connection: Connection, customer_id: int, words: str, *, is_active: bool | None, offset: int, limit: int
) -> list[Member]:
    """Returns members whose name or address contains the words, active ones first, by name. An `is_active` of None means all."""
    rows = await connection.fetch(_SEARCH_MEMBERS, customer_id, is_active, words.lower(), offset, limit)
    return [Member(**row) for row in rows]


async def count_members(connection: Connection, customer_id: int) -> tuple[int, int]:
    """Returns how many active and how many removed members a customer has."""
    row = await connection.fetchrow(_COUNT_MEMBERS, customer_id)
    assert row is not None, "an aggregate has a row"
    return row["active"], row["removed"]


async def read_place(connection: Connection, customer_id: int, email: str) -> Row:
    """Returns how many people a customer has, and name, role, `is_active` and `is_there` of the member with an address, if there is one."""
    row = await connection.fetchrow(_PLACE, customer_id, email)
    assert row is not None, "VALUES has one row"
    return row


async def add_user(connection: Connection, customer_id: int, email: str, name: str, role: str) -> int:
    """Adds a member, or activates the one with that address again, with that name and role. Returns their id."""
    await open_credentials(connection)
    return int(await connection.fetchval(_ADD, customer_id, email, name, role))


async def set_user_role(connection: Connection, customer_id: int, user_id: int, role: str) -> None:
    """Sets the role of a member."""
    await open_credentials(connection)
    await coordinator_of(connection).execute(LOCK_USER, user_id)
    await connection.execute(_SET_ROLE, customer_id, user_id, role)


async def deactivate_user(connection: Connection, customer_id: int, user_id: int) -> None:
    """Deactivates a member. The row stays in the list, and the person may be invited again."""
    await open_credentials(connection)
    await coordinator_of(connection).execute(LOCK_USER, user_id)
    await connection.execute(_DEACTIVATE, customer_id, user_id)


async def bind_user(connection: Connection, user_id: int, person_id: int) -> None:
    """Binds a member to the person who signs in."""
    await open_credentials(connection)
    await connection.execute(_BIND, user_id, person_id)


async def note_login(connection: Connection, user_id: int) -> None:
    """Records that a member has signed in."""
    await connection.execute(_NOTE_LOGIN, user_id)


async def has_other_admin(connection: Connection, customer_id: int, user_id: int) -> bool:
    """Returns whether the customer has an administrator other than that member."""
    others = await connection.fetchval(_COUNT_OTHER_ADMINS, customer_id, user_id)
    return bool(others)
