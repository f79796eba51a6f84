"""Sessions of members of staff: browsers that signed in to the back office."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from largesse.audit.service import Acting
from largesse.customers.access import AccessChanged
from largesse.customers.actor import Actor
from largesse.customers.second_step import asks_second_step
from largesse.customers.secrets import new_secret, secret_hash
from largesse.customers.sessions import PROVED, SignedIn, browser_name, note_seen
from largesse.customers.sign_in import Origin
from largesse.db.pool import Connection, Database, open_credentials
from largesse.db.scope import OFFICE
from largesse.staff import store
from largesse.staff.model import IDLE, LASTS, StaffMember


@dataclass(frozen=True, slots=True, kw_only=True)
class StaffSession(SignedIn):
    """A session of a member of staff."""

    person: StaffMember


async def begin_session(connection: Connection, staff_id: int, origin: Origin) -> str:
    """Starts a session, and returns its secret, which is not stored."""
    await open_credentials(connection)
    secret = new_secret()
    await connection.execute(
        store.BEGIN_SESSION,
        secret_hash(secret),
        staff_id,
        origin.address,
        browser_name(origin.browser),
        secret_hash(origin.device),
        await asks_second_step(connection, staff_id, store),
        LASTS,
    )
    return secret


async def find_session(database: Database, secret: str) -> StaffSession | None:
    """Returns the session of a cookie; None if it has ended, was idle for too long, or never existed."""
    hash_ = secret_hash(secret)
    if hash_ is None:
        return None
    row = await database.fetchrow(OFFICE, store.FIND_SESSION, hash_, IDLE, PROVED)
    if row is None:
        return None
    if row["is_unseen"]:
        await note_seen(database, row["id"], store)
    member = StaffMember(row["id"], row["staff_id"], row["email"], row["name"], row["role"], row["is_proved"])
    return StaffSession(
        id=row["id"],
        person_id=row["staff_id"],
        email=row["email"],
        language=row["language"],
        zone=row["zone"],
        notice=row["notice"],
        has_password=row["has_password"],
        has_app=row["has_app"],
        has_passkey=row["has_passkey"],
        awaits_second_step=row["awaits_second_step"],
        lacks_second_step=not (row["has_app"] or row["has_passkey"]),
        person=member,
    )


def staff_actor(database: Database, member: StaffMember, acting: Acting) -> Actor:
    """Returns the actor for a member of staff. Each transaction locks the session and the role, and raises AccessChanged if they changed."""

    @asynccontextmanager
    async def begin(changes_access: bool) -> AsyncIterator[Connection]:
        async with database.transaction(OFFICE) as connection:
            if changes_access:
                await connection.execute(store.LOCK_ALL)
            held = await connection.fetchrow(store.HOLD, member.session_id)
            if held is None or tuple(held) != (member.person_id, member.role):
                raise AccessChanged
            yield connection

    return Actor(acting, begin, staff=member)
