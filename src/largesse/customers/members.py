"""Operations of administrators and operators on the members of a customer: invite, change a role, remove, reset a password."""

from collections.abc import Awaitable, Callable

import msgspec

from largesse.base.email import email_key
from largesse.base.errors import BrokenRule, InvalidRequest, NotFound
from largesse.customers import member_store as store
from largesse.customers.actor import Actor, Transaction
from largesse.customers.customer_store import lock_customer
from largesse.customers.member_store import Member
from largesse.customers.principal import ADMIN
from largesse.customers.roles import Right
from largesse.customers.second_step import asks_second_step, forget_second_step
from largesse.customers.sessions import end_sessions, end_sessions_of_user
from largesse.customers.sign_in_links import end_links, new_link
from largesse.customers.sign_in_store import end_password, find_person_id
from largesse.db.pool import Connection
from largesse.jobs.outbox import mail_invitation, mail_reset, mail_second_step
from largesse.staff.model import StaffRight

MOST_PEOPLE = 500


class LastAdministrator(BrokenRule):
    """The change would leave the customer without an administrator who can sign in or has been invited."""

    rule = "A customer needs an administrator: make somebody else one first."


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
        return await store.find_member(transaction.connection, customer, email)


async def invite(actor: Actor, email: str, *, name: str | None, role: str | None, mails: bool) -> Invitation:
    """Invites an address to the actor's customer. A person who follows the link and signs in with that address becomes a member.

    Invites a member again who was invited or removed before. Without `role` they keep theirs; a new member gets the role `member`.
    With `mails`, also mails the invitation. Raises AlreadyThere, LastAdministrator, and InvalidRequest above the maximum.
    """
    async with actor.transaction(Right.SETTINGS, StaffRight.CUSTOMERS, changes_access=True) as transaction:
        connection = transaction.connection
        place = await store.read_place(connection, actor.customer_id, email)
        if place["is_there"]:
            raise AlreadyThere(email)
        if not place["is_active"] and place["people"] >= MOST_PEOPLE:
            raise InvalidRequest(f"A customer has at most {MOST_PEOPLE} people.")
        role = role or place["role"] or "member"
        name = name or place["name"] or email.partition("@")[0]
        user_id = await store.add_user(connection, actor.customer_id, email, name, role)
        if role != ADMIN and place["is_active"]:
            await _require_other_admin(connection, actor, user_id, place["role"])
        secret = await _new_invitation(connection, user_id, mails=mails)
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


async def set_role(actor: Actor, user_id: int, role: str) -> Member:
    """Changes the role of a member from their next request on. Returns the member as they were. Raises NotFound, LastAdministrator."""
    async with actor.transaction(Right.SETTINGS, StaffRight.CUSTOMERS, changes_access=True) as transaction:
        member = await _lock_member(transaction.connection, actor, user_id)
        if role == member.role:
            return member
        if role != ADMIN:
            await _require_other_admin(transaction.connection, actor, user_id, member.role)
        await store.set_user_role(transaction.connection, actor.customer_id, user_id, role)
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
        await store.deactivate_user(connection, actor.customer_id, user_id)
        await end_sessions_of_user(connection, user_id)
        await end_links(connection, user_id=user_id)
        await take_accounts(connection, actor.customer_id, user_id)
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
    person_id = await find_person_id(connection, email)
    if person_id is None:
        raise NotFound(f"Nobody signs in as {email} yet. Invite them instead.")
    if second_step:
        if mails and await asks_second_step(connection, person_id):
            await mail_second_step(connection, person_id, "forgotten")
        await forget_second_step(connection, person_id)
        await end_password(connection, person_id)  # otherwise the password alone would be enough to sign in
    return person_id


async def _new_invitation(connection: Connection, user_id: int, *, mails: bool) -> str:
    secret = await new_link(connection, "invitation", user_id=user_id)
    if mails:
        await mail_invitation(connection, user_id)
    return secret


async def _lock_member(connection: Connection, actor: Actor, user_id: int) -> Member:
    """Returns an active member of the actor's customer. Raises NotFound."""
    # Operations that change administrators take turns, so that two administrators do not remove each other.
    await lock_customer(connection, actor.customer_id)
    member = await store.read_member(connection, actor.customer_id, user_id)
    if not member.is_active:
        raise NotFound("There is no such person.")
    return member


async def _require_other_admin(connection: Connection, actor: Actor, user_id: int, role: str) -> None:
    if role == ADMIN and not await store.has_other_admin(connection, actor.customer_id, user_id):
        raise LastAdministrator
