"""Signs members of staff in to the back office, by a password or a link and always with a second step, and finds their sessions."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import msgspec

from largesse.audit.service import Acting, by_staff
from largesse.base.email import email_key
from largesse.base.errors import NotFound, existing
from largesse.customers.access import AccessChanged
from largesse.customers.actor import Actor
from largesse.customers.passkeys import RelyingParty
from largesse.customers.passwords import Passwords
from largesse.customers.second_step import asks_second_step
from largesse.customers.sessions import PROVED, SignedIn, browser_name, end_sessions, new_secret, note_seen, secret_hash
from largesse.customers.sign_in import Origin, Refused, SignInSteps
from largesse.customers.sign_in_links import ENDED
from largesse.customers.sign_in_links import LASTS as LINKS_LAST
from largesse.customers.sign_in_store import PersonRecord, holds_password, set_password
from largesse.customers.staff_roles import StaffMember
from largesse.db.pool import Connection, Database, credentials_key, open_credentials
from largesse.db.scope import OFFICE, Scope
from largesse.db.statements import members_of
from largesse.encryption.chain_keys import Chains
from largesse.encryption.vault import Vault
from largesse.staff import store
from largesse.staff.store import SIGN_IN

IDLE = timedelta(minutes=30)  # after this time without requests, a session ends
LASTS = timedelta(hours=12)  # a session ends after this time


class StaffSession(SignedIn, frozen=True, kw_only=True):
    """A session of a member of staff."""

    person: StaffMember


class StaffLink(msgspec.Struct, frozen=True):
    """A valid link, with its member of staff."""

    hash: bytes
    kind: str  # invitation, reset or sign_in
    staff_id: int
    email: str


async def new_link(connection: Connection, kind: str, staff_id: int) -> str:
    """Creates a link, and returns its secret, which is not stored. Ends earlier links of the member."""
    await open_credentials(connection)
    secret = new_secret()
    await connection.execute(store.END_LINKS, staff_id)
    await connection.execute(store.NEW_LINK, secret_hash(secret), kind, staff_id, LINKS_LAST[kind])
    return secret


class StaffSigningIn(SignInSteps[StaffSession]):
    """Signs in members of staff. `allowances` is the database that counts attempts."""

    def __init__(
        self,
        database: Database,
        vault: Vault,
        chains: Chains,
        passwords: Passwords,
        party: RelyingParty,
        *,
        allowances: Database,
    ) -> None:
        super().__init__(
            database, vault, chains, passwords, party, sql=SIGN_IN, allowances=allowances, prefix=b"staff/"
        )

    async def is_open(self) -> bool:
        """Returns whether there is a back office, which begins with the first invitation."""
        return bool(await self._database.fetchval(OFFICE, store.IS_OPEN))

    async def by_password(self, email: str, password: str, origin: Origin) -> str:
        """Returns the secret of a new session. Raises Refused, or TooManyRequests after too many attempts."""
        known = await self._check_password(email, password, origin)
        async with self._database.transaction(OFFICE) as connection:
            # The password may have been replaced while it was checked.
            if not await holds_password(connection, known.id, known.password, SIGN_IN):
                raise Refused
            return await self._begin(connection, known.id, known.email, origin)

    async def look_at(self, secret: str, origin: Origin) -> StaffLink:
        """Returns a link without using it up. Raises NotFound, TooManyRequests."""
        await self._spend_network(origin)
        link = await self._database.read(OFFICE, _find_link, secret)
        await self._give_network_back(origin)
        return link

    async def by_link(self, secret: str, origin: Origin) -> str:
        """Signs in by a link that needs no password. Raises NotFound for any other link."""
        async with self._database.transaction(OFFICE) as connection:
            link = await _find_link(connection, secret)
            if link.kind != "sign_in":
                raise NotFound(ENDED)
            await _use_link(connection, link)
            return await self._begin(connection, link.staff_id, link.email, origin)

    async def by_new_password(self, secret: str, password: str, origin: Origin) -> str:
        """Sets a new password by an invitation or a reset, ends the member's other sessions, and signs in. Raises NotFound."""
        hashed = await self._passwords.hash(password)
        async with self._database.transaction(OFFICE) as connection:
            link = await _find_link(connection, secret)
            if link.kind == "sign_in":
                raise NotFound(ENDED)
            await _use_link(connection, link)
            await set_password(connection, link.staff_id, hashed, SIGN_IN)
            await end_sessions(connection, link.staff_id, sql=SIGN_IN)
            begun = await self._begin(connection, link.staff_id, link.email, origin, is_last=False)
            act = "person.joined" if link.kind == "invitation" else "person.password_chosen"
            await self._record(connection, act, link.staff_id, link.email, origin)
            return begun

    async def find(self, secret: str) -> StaffSession | None:
        """Returns the session of a cookie; None if it has ended, was idle for too long, or never existed."""
        hash_ = secret_hash(secret)
        if hash_ is None:
            return None
        row = await self._database.fetchrow(OFFICE, store.FIND_SESSION, hash_, IDLE, PROVED)
        if row is None:
            return None
        if row["is_unseen"]:
            await note_seen(self._database, row["id"], SIGN_IN)
        member = StaffMember(session_id=row["id"], **members_of(StaffMember, row))
        lacks_second_step = not (row["has_app"] or row["has_passkey"])
        return StaffSession(**members_of(StaffSession, row), lacks_second_step=lacks_second_step, person=member)

    async def _known(self, connection: Connection, email: str) -> PersonRecord | None:
        row = await connection.fetchrow(store.FIND_BY_EMAIL, email_key(email), credentials_key(connection))
        return None if row is None else PersonRecord(**row)

    async def _note_second_step(self, connection: Connection, session: StaffSession, origin: Origin) -> None:
        await connection.execute(store.NOTE_SIGNED_IN, session.person_id)
        await self._record(connection, "person.signed_in", session.person_id, session.email, origin)

    def scope(self, session: StaffSession) -> Scope:  # noqa: ARG002 - the same for all
        """Returns the scope of a transaction of that session."""
        return OFFICE

    async def _begin(
        self, connection: Connection, staff_id: int, email: str, origin: Origin, *, is_last: bool = True
    ) -> str:
        """Returns the secret of a new session. Writes the audit log if `is_last`; otherwise the caller records another act."""
        await open_credentials(connection)
        secret = new_secret()
        awaits_second_step = await asks_second_step(connection, staff_id, SIGN_IN)
        await connection.execute(
            store.BEGIN_SESSION,
            secret_hash(secret),
            staff_id,
            origin.address,
            browser_name(origin.browser),
            secret_hash(origin.device),
            awaits_second_step,
            LASTS,
        )
        if not awaits_second_step:
            await connection.execute(store.NOTE_SIGNED_IN, staff_id)
            if is_last:
                await self._record(connection, "person.signed_in", staff_id, email, origin)
        return secret

    async def _record(self, connection: Connection, act: str, staff_id: int, email: str, origin: Origin) -> None:
        who = by_staff(staff_id, email, origin.address, origin.request_id)
        await Acting(who, self._chains).record(connection, act, email)


async def _find_link(connection: Connection, secret: str) -> StaffLink:
    return StaffLink(**existing(await connection.fetchrow(store.FIND_LINK, secret_hash(secret)), ENDED))


async def _use_link(connection: Connection, link: StaffLink) -> None:
    await open_credentials(connection)
    if not await connection.fetchval(store.USE_LINK, link.hash):
        raise NotFound(ENDED)
    await connection.execute(store.END_LINKS, link.staff_id)


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
