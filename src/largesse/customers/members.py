"""The members of a customer, people with a role: the SQL of the table `users`, and operations that invite, change and remove them."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

import msgspec

from largesse.base.email import email_key
from largesse.base.errors import InvalidRequest, NotFound, OperatorError, TooManyRequests, existing
from largesse.customers.access import LOCK_CUSTOMER, LOCK_USER
from largesse.customers.actor import Actor, Transaction, require_same
from largesse.customers.customer_store import find_customer
from largesse.customers.principal import ADMIN, Principal
from largesse.customers.roles import Right
from largesse.customers.second_step import asks_second_step, forget_second_step
from largesse.customers.sessions import end_sessions, end_sessions_of_user
from largesse.customers.sign_in_links import end_links, new_link
from largesse.customers.sign_in_store import end_password, find_person_id
from largesse.customers.staff_roles import StaffRight
from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Connection, coordinator_of, open_credentials
from largesse.jobs.outbox import mail_person, mail_reset, mail_users

_LIST_USERS = """
    SELECT id, name, email, role, is_active, created_at, last_login_at
    FROM users WHERE customer_id = $1 AND ($4::int IS NULL OR id < $4) ORDER BY id DESC OFFSET $2 LIMIT $3
"""
_MEMBER = Fragment("""
    SELECT u.id, {key} AS customer, u.email, u.name, u.role, u.is_active, u.person_id IS NOT NULL AS has_signed_in,
           p.id IS NOT NULL AND (p.has_app OR EXISTS (SELECT FROM passkeys k WHERE k.person_id = p.id)) AS has_second_step,
           (SELECT max(l.ends_at) FROM sign_in_links l WHERE l.user_id = u.id AND l.kind = 'invitation'
            AND l.used_at IS NULL AND l.ends_at > clock_now()) AS invited_until,
           u.last_login_at
    FROM users u LEFT JOIN people p ON p.id = u.person_id
""")
_MEMBER_OF_ANY = compose(
    "{member} JOIN customers c ON c.id = u.customer_id", member=compose(_MEMBER, key=Fragment("c.key"))
)
# Reads the customer once. A plan for any customer expects each to have one member, and would look the customer up for each.
_MEMBER_OF_ONE = compose(
    "{member} WHERE u.customer_id = $1",
    member=compose(_MEMBER, key=Fragment("(SELECT key FROM customers WHERE id = $1)")),
)
_LIST_ALL_MEMBERS = compose("{member} ORDER BY c.key, u.is_active DESC, u.name, u.id", member=_MEMBER_OF_ANY)
_LIST_MEMBERS = compose("{member} ORDER BY u.is_active DESC, u.name, u.id", member=_MEMBER_OF_ONE)
_ONE_MEMBER = compose("{member} AND u.id = $2", member=_MEMBER_OF_ONE)
_SEARCH_MEMBERS = compose(
    """
    {member} AND ($2::bool IS NULL OR u.is_active = $2)
        AND (position($3 IN lower(u.name)) > 0 OR position($3 IN lower(u.email)) > 0)
    ORDER BY u.is_active DESC, u.name, u.id OFFSET $4 LIMIT $5
    """,
    member=_MEMBER_OF_ONE,
)
_COUNT_MEMBERS = "SELECT count(*) FILTER (WHERE is_active) AS active, count(*) FILTER (WHERE NOT is_active) AS removed FROM users WHERE customer_id = $1"
# How many people a customer has, and the member with an address, if there is one.
_PLACE = """
    SELECT (SELECT count(*) FROM users WHERE customer_id = $1 AND is_active) AS people, u.name, u.role, u.is_active,
           u.is_active AND u.person_id IS NOT NULL AS is_there
    FROM (VALUES (1)) AS one LEFT JOIN users u ON u.customer_id = $1 AND lower(u.email) = lower($2)
"""
# The seconds until another invitation may be mailed to a member; nothing if one may be now. Links that a mail carries are not counted twice.
_WAIT_TO_INVITE = """
    SELECT extract(epoch FROM created_at + $3::interval - clock_now())::float8 FROM sign_in_links
    WHERE user_id = $1 AND kind = 'invitation' AND NOT is_mailed AND created_at > clock_now() - $3::interval
    ORDER BY created_at DESC OFFSET $2 - 1 LIMIT 1
"""
_ADD = """
    INSERT INTO users (customer_id, email, name, role) VALUES ($1, $2, $3, $4)
    ON CONFLICT (customer_id, lower(email)) DO UPDATE SET
        name = CASE WHEN users.last_login_at IS NULL THEN excluded.name ELSE users.name END, role = excluded.role, is_active = true
    RETURNING id
"""
_SET_NAME = "UPDATE users SET name = $3 WHERE customer_id = $1 AND id = $2"
_SET_ROLE = "UPDATE users SET role = $3 WHERE customer_id = $1 AND id = $2"
# The row stays in the list, and the person may be invited again.
_UNBIND = "UPDATE users SET is_active = $3, person_id = NULL WHERE customer_id = $1 AND id = $2"
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
    if customer_id is None:
        rows = await connection.fetch(_LIST_ALL_MEMBERS)
    else:
        rows = await connection.fetch(_LIST_MEMBERS, customer_id)
    return [Member(**row) for row in rows]


async def read_member(connection: Connection, customer_id: int, user_id: int) -> Member:
    """Returns a member of a customer, also one who was removed. Raises NotFound."""
    return Member(**existing(await connection.fetchrow(_ONE_MEMBER, customer_id, user_id), "There is no such person."))


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


async def add_user(connection: Connection, customer_id: int, email: str, name: str, role: str) -> int:
    """Adds a member, or activates the one with that address again, with that role. Somebody who has signed in keeps their name. Returns their id."""
    await open_credentials(connection)
    return int(await connection.fetchval(_ADD, customer_id, email, name, role))


async def set_user_name(connection: Connection, customer_id: int, user_id: int, name: str) -> None:
    """Sets the name of a member."""
    await open_credentials(connection)
    await coordinator_of(connection).execute(LOCK_USER, user_id)
    await connection.execute(_SET_NAME, customer_id, user_id, name)


async def set_user_role(connection: Connection, customer_id: int, user_id: int, role: str) -> None:
    """Sets the role of a member."""
    await open_credentials(connection)
    await coordinator_of(connection).execute(LOCK_USER, user_id)
    await connection.execute(_SET_ROLE, customer_id, user_id, role)


async def bind_user(connection: Connection, user_id: int, person_id: int) -> None:
    """Binds a member to the person who signs in."""
    await open_credentials(connection)
    await connection.execute(_BIND, user_id, person_id)


async def unbind_user(
    connection: Connection,
    customer_id: int,
    user_id: int,
    take_accounts: Callable[[Connection, int, int], Awaitable[None]],
    *,
    is_active: bool,
) -> None:
    """Unbinds a member from the person who signs in, and ends their sessions, links and accounts. One who stays active needs an invitation."""
    await open_credentials(connection)
    await coordinator_of(connection).execute(LOCK_USER, user_id)
    await connection.execute(_UNBIND, customer_id, user_id, is_active)
    await end_sessions_of_user(connection, user_id)
    await end_links(connection, user_id=user_id)
    await take_accounts(connection, customer_id, user_id)


async def note_login(connection: Connection, user_id: int) -> None:
    """Records that a member has signed in."""
    await connection.execute(_NOTE_LOGIN, user_id)


MOST_PEOPLE = 500
MOST_INVITATIONS, INVITATIONS_WITHIN = 5, timedelta(hours=1)  # mailed to one address by one customer


class LastAdministrator(InvalidRequest, rule="A customer needs an administrator: make somebody else one first."):
    """The change would leave the customer without an administrator who can sign in or has been invited."""


class AlreadyThere(InvalidRequest):
    """The address belongs to a member already."""

    def __init__(self, email: str) -> None:
        super().__init__(f"{email} belongs to the customer already.")


class Invitation(msgspec.Struct, frozen=True):
    """An invitation, with the secret of its link, which cannot be read again."""

    email: str
    secret: str


async def named_member(actor: Actor, customer: str, email: str) -> Member:
    """Returns the active member with an address of the customer with a key, for a command. Raises OperatorError if there is none."""
    async with actor.transaction() as transaction:
        return await find_member(transaction.connection, customer, email)


async def invite(
    actor: Actor,
    email: str,
    *,
    name: str | None,
    role: str | None,
    mails: bool,
    start_over: Callable[[Transaction, int], Awaitable[None]] | None,
) -> Invitation:
    """Invites an address to the actor's customer. A person who follows the link and signs in with that address becomes a member.

    Invites a member again who was invited or removed before. Without `role` they keep theirs; a new member gets the role `member`.
    `start_over` ends what a removed member left, by their user id; None for a customer that is new. With `mails`, also mails the invitation. Raises AlreadyThere, LastAdministrator, and InvalidRequest above the maximum.
    """
    async with actor.transaction(Right.SETTINGS, StaffRight.CUSTOMERS, changes_access=True) as transaction:
        connection = transaction.connection
        await _take_turns(connection, actor)
        place = await connection.fetchrow(_PLACE, actor.customer_id, email)
        assert place is not None, "VALUES has one row"
        if place["is_there"]:
            raise AlreadyThere(email)
        if not place["is_active"] and place["people"] >= MOST_PEOPLE:
            raise InvalidRequest(f"A customer has at most {MOST_PEOPLE} people.")
        role = role or place["role"] or "member"
        name = name or place["name"] or email.partition("@")[0]
        user_id = await add_user(connection, actor.customer_id, email, name, role)
        if role != ADMIN and place["is_active"]:
            await _require_other_admin(connection, actor, user_id, place["role"])
        secret = await _new_invitation(connection, user_id, mails=mails)
        if place["is_active"] is False and start_over is not None:
            await start_over(transaction, user_id)
        await transaction.record("person.invited", email, after={"role": role})
    return Invitation(email, secret)


async def invite_again(actor: Actor, user_id: int, *, mails: bool) -> Invitation:
    """Replaces the link of a person who was invited. Raises NotFound, and AlreadyThere once they have signed in."""
    async with actor.transaction(Right.SETTINGS, StaffRight.CUSTOMERS, changes_access=True) as transaction:
        member = await _lock_member(transaction.connection, actor, user_id)
        if member.has_signed_in:
            raise AlreadyThere(member.email)
        secret = await _new_invitation(transaction.connection, user_id, mails=mails)
        await transaction.record("person.invited", member.email)
    return Invitation(member.email, secret)


async def set_role(actor: Actor, user_id: int, role: str, seen: str | None = None) -> Member:
    """Changes the role of a member from their next request on. Returns the member as they were.

    Raises NotFound, LastAdministrator, and ReadAgain if their role is not the one `seen` any more.
    """
    async with actor.transaction(Right.SETTINGS, StaffRight.CUSTOMERS, changes_access=True) as transaction:
        member = await _lock_member(transaction.connection, actor, user_id)
        if role == member.role:
            return member
        require_same(seen, member.role)
        if role != ADMIN:
            await _require_other_admin(transaction.connection, actor, user_id, member.role)
        await set_user_role(transaction.connection, actor.customer_id, user_id, role)
        before, after = {"role": member.role}, {"role": role}
        await transaction.record("person.role_changed", member.email, before=before, after=after)
    return member


async def remove(
    actor: Actor, user_id: int, take_accounts: Callable[[Connection, int, int], Awaitable[None]]
) -> Member:
    """Removes a member at once, with their sessions and links for this customer. Returns the member as they were.

    `take_accounts` removes their funding accounts, by customer and user id. Raises NotFound, LastAdministrator.
    """
    async with actor.transaction(Right.SETTINGS, StaffRight.CUSTOMERS, changes_access=True) as transaction:
        connection = transaction.connection
        member = await _lock_member(connection, actor, user_id)
        await _require_other_admin(connection, actor, user_id, member.role)
        await unbind_user(connection, actor.customer_id, user_id, take_accounts, is_active=False)
        await transaction.record("person.removed", member.email, before={"role": member.role})
    return member


async def reset(actor: Actor, email: str, *, second_step: bool, mails: bool) -> str:
    """Returns the secret of a link by which a person chooses a new password. For commands and members of staff.

    A command ends their sessions. With `second_step`, removes their second step and their password; with `mails`, also mails them about it.
    Raises NotFound for a person who has never signed in.
    """
    async with actor.transaction(StaffRight.CUSTOMERS) as transaction:
        person_id = await _find_and_forget(transaction, email, second_step=second_step, mails=mails)
        if actor.staff is None:  # the back office may not end sessions: they end when its link is used
            await end_sessions(transaction.connection, person_id)
        secret = await new_link(transaction.connection, "reset", person_id=person_id)
        await transaction.record("person.reset", email, after={"keeps_second_step": not second_step})
    return secret


async def reset_by_mail(actor: Actor, email: str, *, second_step: bool) -> None:
    """Mails a person a link by which they choose a new password, as `reset` makes one."""
    async with actor.transaction(StaffRight.CUSTOMERS) as transaction:
        await _find_and_forget(transaction, email, second_step=second_step, mails=True)
        await mail_reset(transaction.connection, email_key(email))
        await transaction.record("person.reset", email, after={"keeps_second_step": not second_step})


async def _find_and_forget(transaction: Transaction, email: str, *, second_step: bool, mails: bool) -> int:
    connection = transaction.connection
    person_id = existing(
        await find_person_id(connection, email), f"Nobody signs in as {email} yet. Invite them instead."
    )
    if second_step:
        if mails and await asks_second_step(connection, person_id):
            await mail_person(connection, "second_step", person_id, "forgotten")
        await forget_second_step(connection, person_id)
        await end_password(connection, person_id)  # otherwise the password alone would be enough to sign in
    return person_id


async def _new_invitation(connection: Connection, user_id: int, *, mails: bool) -> str:
    """Returns the secret of a new invitation. Raises TooManyRequests if too many are mailed to one address."""
    if mails:
        wait_s = await connection.fetchval(_WAIT_TO_INVITE, user_id, MOST_INVITATIONS, INVITATIONS_WITHIN)
        if wait_s is not None:
            raise TooManyRequests("Too many invitations were mailed to this address.", retry_after_s=wait_s)
        await mail_users(connection, "invitation", [user_id])
    return await new_link(connection, "invitation", user_id=user_id)


async def _lock_member(connection: Connection, actor: Actor, user_id: int) -> Member:
    """Returns an active member of the actor's customer. Raises NotFound."""
    await _take_turns(connection, actor)
    member = await read_member(connection, actor.customer_id, user_id)
    if not member.is_active:
        raise NotFound("There is no such person.")
    return member


async def _take_turns(connection: Connection, actor: Actor) -> None:
    """Makes operations that change administrators take turns, so that two administrators do not remove each other."""
    await coordinator_of(connection).execute(LOCK_CUSTOMER, actor.customer_id)


async def _require_other_admin(connection: Connection, actor: Actor, user_id: int, role: str) -> None:
    if role == ADMIN and not await connection.fetchval(_COUNT_OTHER_ADMINS, actor.customer_id, user_id):
        raise LastAdministrator
