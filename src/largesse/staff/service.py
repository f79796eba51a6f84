"""Operations on members of staff, by owners and operators: inviting, changing a role, deactivating, resetting."""

from datetime import datetime

import msgspec

from largesse.audit.service import Acting
from largesse.base.email import email_key
from largesse.base.errors import InvalidRequest, NotFound, OperatorError
from largesse.customers.actor import Actor, require_same
from largesse.customers.passwords import hash_of_nobody
from largesse.customers.second_step import forget_second_step
from largesse.customers.sessions import forget_browsers
from largesse.customers.staff_roles import OWNER, StaffRight
from largesse.db.pool import Connection, open_credentials
from largesse.staff import store
from largesse.staff.sign_in import new_link
from largesse.staff.store import SIGN_IN

MOST_STAFF = 200
MOST_NAME = 100  # characters of a member's name


class ListedStaff(msgspec.Struct, frozen=True):
    """A member of staff in a list."""

    id: int
    email: str
    name: str
    role: str
    is_active: bool
    has_signed_in: bool
    has_second_step: bool
    invited_until: datetime | None  # the end of a valid invitation
    last_signed_in_at: datetime | None


class LastOwner(InvalidRequest, rule="The back office needs an owner: make somebody else one first."):
    """The change would leave the back office without an owner."""


class AlreadyThere(InvalidRequest):
    """The address belongs to a member of staff, or is invited already, with the role `invited_as`."""

    def __init__(self, email: str, *, invited_as: str | None) -> None:
        self.invited_as = invited_as
        super().__init__(
            f"{email} is a member of staff already."
            if invited_as is None
            else f"{email} is invited already, with the role {invited_as}. Create a new link for them with a reset."
        )


async def list_staff(connection: Connection) -> list[ListedStaff]:
    """Returns all members of staff, active ones first, by name."""
    return [ListedStaff(**row) for row in await connection.fetch(store.LIST)]


async def invite(actor: Actor, email: str, *, name: str | None, role: str) -> str:
    """Invites an address, and returns the secret of the link. Raises AlreadyThere, and InvalidRequest if there are MOST_STAFF people.

    A deactivated member can be invited again, and starts without a second step.
    """
    async with actor.transaction(StaffRight.STAFF, changes_access=True) as transaction:
        connection = transaction.connection
        place = await connection.fetchrow(store.PLACE, email_key(email))
        assert place is not None, "VALUES has one row"
        if place["is_active"]:
            raise AlreadyThere(email, invited_as=None if place["has_password"] else place["role"])
        if place["people"] >= MOST_STAFF:
            raise InvalidRequest(f"The back office has at most {MOST_STAFF} people.")
        await open_credentials(connection)
        name = name or place["name"] or email.partition("@")[0]
        staff_id: int = await connection.fetchval(store.INVITE, email, email_key(email), name, role)
        await forget_second_step(connection, staff_id, SIGN_IN)
        secret = await new_link(connection, "invitation", staff_id)
        await transaction.record("staff.invited", email, after={"role": role})
    return secret


async def demo_link(connection: Connection, acting: Acting, email: str, name: str) -> str:
    """Returns the secret of a link that signs in the demo's owner once. Adds the owner the first time."""
    await open_credentials(connection)
    place = await connection.fetchrow(store.PLACE, email_key(email))
    assert place is not None, "VALUES has one row"
    staff_id: int = await connection.fetchval(store.INVITE, email, email_key(email), name, OWNER)
    secret = await new_link(connection, "sign_in", staff_id)
    if place["role"] != OWNER or not place["is_active"]:
        await acting.record(connection, "staff.invited", email, after={"role": OWNER})
    return secret


async def find_staff(actor: Actor, email: str) -> ListedStaff:
    """Returns the active member of that address, for a command. Raises OperatorError."""
    async with actor.transaction(StaffRight.STAFF) as transaction:
        for member in await list_staff(transaction.connection):
            if email_key(member.email) == email_key(email.strip()) and member.is_active:
                return member
    raise OperatorError("no member of staff has that address")


async def set_role(actor: Actor, staff_id: int, role: str, seen: str | None = None) -> ListedStaff:
    """Changes the role of a member. Raises NotFound, LastOwner, and ReadAgain if their role is not the one `seen` any more."""
    async with actor.transaction(StaffRight.STAFF, changes_access=True) as transaction:
        connection = transaction.connection
        member = await active_member(connection, staff_id)
        if member.role != role:
            require_same(seen, member.role)
            await _require_other_owner(connection, member)
            await open_credentials(connection)
            await connection.execute(store.SET_ROLE, staff_id, role)
            await transaction.record(
                "staff.role_changed", member.email, before={"role": member.role}, after={"role": role}
            )
    return member


async def deactivate(actor: Actor, staff_id: int) -> ListedStaff:
    """Deactivates a member, and ends their sessions and links. Raises NotFound, LastOwner."""
    async with actor.transaction(StaffRight.STAFF, changes_access=True) as transaction:
        connection = transaction.connection
        member = await active_member(connection, staff_id)
        await _require_other_owner(connection, member)
        await open_credentials(connection)
        await connection.execute(store.DEACTIVATE, staff_id)
        await _forget(connection, staff_id)
        await transaction.record("staff.deactivated", member.email, before={"role": member.role})
    return member


async def reset(actor: Actor, staff_id: int) -> str:
    """Ends a member's sessions, password and second step, and returns the secret of a link to choose a new password. Raises NotFound."""
    async with actor.transaction(StaffRight.STAFF, changes_access=True) as transaction:
        connection = transaction.connection
        member = await active_member(connection, staff_id)
        await open_credentials(connection)
        # Without the second step, the password alone would be enough to get in and set up another.
        await connection.execute(store.LOCK_OUT, staff_id, hash_of_nobody())
        await _forget(connection, staff_id)
        secret = await new_link(connection, "reset" if member.has_signed_in else "invitation", staff_id)
        await transaction.record("staff.reset", member.email)
    return secret


async def _forget(connection: Connection, staff_id: int) -> None:
    """Ends sessions and links, and deletes the second step and the known browsers."""
    await forget_second_step(connection, staff_id, SIGN_IN)
    await forget_browsers(connection, staff_id, SIGN_IN)
    await connection.execute(store.END_LINKS, staff_id)


async def active_member(connection: Connection, staff_id: int) -> ListedStaff:
    """Returns an active member. Raises NotFound."""
    for member in await list_staff(connection):
        if member.id == staff_id and member.is_active:
            return member
    raise NotFound("There is no such person.")


async def _require_other_owner(connection: Connection, member: ListedStaff) -> None:
    if member.role == OWNER:
        # Commands do not take turns with members of staff otherwise. The count sees what the change before has committed.
        await connection.execute(store.LOCK_ALL)
        if not await connection.fetchval(store.COUNT_OTHER_OWNERS, member.id):
            raise LastOwner
