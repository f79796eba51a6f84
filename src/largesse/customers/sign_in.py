"""Signing in by password or by a link. Each begins a new session. Neither the answer nor the time it takes shows whether an address is known."""

from contextlib import suppress
from typing import Generic, TypeVar

import msgspec

from largesse.audit.service import Acting, by_person
from largesse.base.email import email_key
from largesse.base.errors import NotFound, TooManyRequests
from largesse.base.throttle import network_of
from largesse.customers import sessions, sign_in_store
from largesse.customers.members import bind_user, note_login
from largesse.customers.passkeys import RelyingParty, take_passkey
from largesse.customers.passwords import LONGEST, Passwords
from largesse.customers.second_step import asks_second_step, take_code
from largesse.customers.sign_in_limits import Allowance, give_back, give_one_back, spend, spend_on
from largesse.customers.sign_in_links import ENDED, Link, confirm_address, end_links_of_person, find_link, use_link
from largesse.db.pool import Connection, Database, act_for
from largesse.db.scope import LOOKUP, Scope, for_customer
from largesse.encryption.chain_keys import Chains
from largesse.encryption.vault import Vault
from largesse.jobs.outbox import mail_person, mail_reset

AnySession = TypeVar("AnySession", bound=sessions.SignedIn)


class Refused(Exception):
    """The address is unknown or the password is wrong. The answer does not say which."""


class Origin(msgspec.Struct, frozen=True):
    """The network address, the browser and the request of a person who signs in."""

    address: str | None
    browser: str
    request_id: str | None = None
    device: str = ""  # a secret in a cookie that identifies the browser


class SignInStep(msgspec.Struct, frozen=True):
    """The second step that a person shows: a typed code, or the answer of a passkey."""

    code: str = ""
    passkey: str = ""


class SignInSteps(Generic[AnySession]):
    """The steps of signing in that people of customers and members of staff share.

    `allowances` is the database that counts attempts, if it is not `database`.
    """

    def __init__(
        self,
        database: Database,
        vault: Vault,
        chains: Chains,
        passwords: Passwords,
        party: RelyingParty,
        *,
        sql: sign_in_store.SignInSql = sign_in_store.PEOPLE,
        allowances: Database | None = None,
        prefix: bytes = b"",
    ) -> None:
        self._database = database
        self._allowances = allowances or database
        self._vault = vault
        self._chains = chains
        self._passwords = passwords
        self._party = party
        self._sql = sql
        self._prefix = prefix  # separates the counts of attempts of people and of staff

    async def find(self, secret: str) -> AnySession | None:
        """Returns the session of a cookie; None if it has ended or never existed."""
        raise NotImplementedError

    async def by_password(self, email: str, password: str, origin: Origin) -> str:
        """Returns the secret of a new session. Raises Refused; TooManyRequests after too many tries."""
        raise NotImplementedError

    async def _known(self, connection: Connection, email: str) -> sign_in_store.PersonRecord | None:
        """Returns the person who signs in with that address; None if nobody does."""
        raise NotImplementedError

    async def _note_second_step(self, connection: Connection, session: AnySession, origin: Origin) -> None:
        """Records that somebody has signed in, after their second step."""
        raise NotImplementedError

    async def _warn(self, session: AnySession, origin: Origin) -> None:
        """Tells the person that somebody shows wrong second steps, if they get mail."""

    def scope(self, session: AnySession) -> Scope:
        """Returns the scope of a transaction of that session."""
        raise NotImplementedError

    async def by_second_step(self, session: AnySession, step: SignInStep, origin: Origin) -> str:
        """Completes a session that waits for its second step, and returns its new secret. Raises Refused, TooManyRequests."""
        await self._take_step(session, step, origin)
        async with self._database.transaction(self.scope(session)) as connection:
            secret = await sessions.pass_second_step(connection, session.id, self._sql)
            if secret is None:
                raise Refused
            await self._note_second_step(connection, session, origin)
            return secret

    async def prove(self, session: AnySession, step: SignInStep, origin: Origin) -> None:
        """Records that the person confirmed who they are, by their second step. If they have none, `step.code` is their password.

        Raises Refused, TooManyRequests.
        """
        if session.has_second_step:
            await self._take_step(session, step, origin)
        else:
            await self._check_password(session.email, step.code, origin)
        async with self._database.transaction(LOOKUP) as connection:
            await sessions.note_proof(connection, session.id, self._sql)

    async def sign_out(self, session: AnySession) -> None:
        """Ends the session."""
        async with self._database.connection(LOOKUP) as connection:
            await sessions.end_session(connection, session.id, self._sql)

    async def _check_password(self, email: str, password: str, origin: Origin) -> sign_in_store.PersonRecord:
        """Returns the person with that address and password. Raises Refused, TooManyRequests."""
        # The prefix keeps a typed address, such as `code/7`, from using up the attempts of other people's codes, or of staff.
        about = self._prefix + b"password/" + email_key(email)[:LONGEST].encode(errors="replace")
        async with self._database.connection(LOOKUP) as connection:
            known = await self._known(connection, email)
            # Also looks up an unknown person's browser, so that both cases take the same time.
            device = await self._known_device(connection, known.id if known else 0, origin)
        await self._spend(about, device, origin)
        if not await self._passwords.is_right(known.password if known else None, password):
            raise Refused
        assert known is not None, "nobody's password is never right"
        await self._give_back(about, device, origin)
        return known

    async def _take_step(self, session: AnySession, step: SignInStep, origin: Origin) -> None:
        """Checks the second step that the person shows. Raises Refused, TooManyRequests."""
        about = self._prefix + b"code/%d" % session.person_id
        device = await self._database.read(LOOKUP, self._known_device, session.person_id, origin)
        await self._spend(about, device, origin)
        async with self._database.transaction(LOOKUP) as connection:
            if step.passkey:
                is_theirs = await take_passkey(
                    connection, self._party, session.id, session.person_id, step.passkey, self._sql
                )
            else:
                is_theirs = await take_code(connection, self._vault, session.person_id, step.code, self._sql)
        if not is_theirs:
            await self._count_wrong_step(session, about, origin)
            raise Refused
        await self._give_back(about, device, origin)
        await give_back(self._allowances, self._vault, Allowance.WRONG_STEPS, about)

    async def _count_wrong_step(self, session: AnySession, about: bytes, origin: Origin) -> None:
        """Counts a wrong second step. After too many, warns the person, once a day: somebody has their password or their browser."""
        try:
            await spend(self._allowances, self._vault, Allowance.WRONG_STEPS, about)
        except TooManyRequests:
            with suppress(TooManyRequests):
                await spend(self._allowances, self._vault, Allowance.WARNINGS, about)
                await self._warn(session, origin)

    async def _known_device(self, connection: Connection, person_id: int, origin: Origin) -> bytes:
        """Returns the hash of the browser if the person has signed in with it before, otherwise an empty one.

        Attempts from a known browser are counted separately, and not for its network. So an attacker who guesses cannot lock a person out of
        it, even from the same network.
        """
        device = sessions.secret_hash(origin.device)
        return device if device and await sessions.knows_device(connection, person_id, device, self._sql) else b""

    async def _spend(self, about: bytes, device: bytes, origin: Origin) -> None:
        """Counts an attempt from the known browser `device`, or from an unknown one. Raises TooManyRequests."""
        if not device:
            await self._spend_network(origin)
        await spend(self._allowances, self._vault, Allowance.ACCOUNT, about + device)

    async def _spend_network(self, origin: Origin) -> None:
        await spend(self._allowances, self._vault, Allowance.NETWORK, network_of(origin.address or ""))

    async def _give_back(self, about: bytes, device: bytes, origin: Origin) -> None:
        """Restores the allowances after a success, as the people of an office share its network."""
        await give_back(self._allowances, self._vault, Allowance.ACCOUNT, about + device)
        if not device:
            await self._give_network_back(origin)

    async def _give_network_back(self, origin: Origin) -> None:
        await give_one_back(self._allowances, self._vault, Allowance.NETWORK, network_of(origin.address or ""))


class SigningIn(SignInSteps[sessions.Session]):
    """Signs people of customers in. Their pages show `environment` at first. `mails` says whether mail can be sent."""

    def __init__(
        self,
        database: Database,
        vault: Vault,
        chains: Chains,
        passwords: Passwords,
        party: RelyingParty,
        environment: str,
        *,
        mails: bool,
    ) -> None:
        super().__init__(database, vault, chains, passwords, party)
        self._mails = mails
        self._environment = environment

    async def find(self, secret: str) -> sessions.Session | None:
        """Returns the session of a cookie; None if it has ended or never existed."""
        return await sessions.find_session(self._database, secret)

    async def _known(self, connection: Connection, email: str) -> sign_in_store.PersonRecord | None:
        return await sign_in_store.find_person(connection, email)

    async def _note_second_step(self, connection: Connection, session: sessions.Session, origin: Origin) -> None:
        if session.person is not None:
            await self._note_login(connection, session.person, origin)

    async def _warn(self, session: sessions.Session, origin: Origin) -> None:
        if self._mails:
            async with self._database.connection(LOOKUP) as connection:
                about = "wrong_codes", origin.address, sessions.browser_name(origin.browser)
                await mail_person(connection, "second_step", session.person_id, *about)

    def scope(self, session: sessions.Session) -> Scope:
        """Returns the scope of a transaction of that session."""
        return LOOKUP if session.person is None else session.person.scope

    async def by_password(self, email: str, password: str, origin: Origin) -> str:
        """Returns the secret of a new session. Raises Refused; TooManyRequests after too many tries."""
        known = await self._check_password(email, password, origin)
        is_outdated = known.password is not None and self._passwords.is_outdated(known.password)
        renewed = await self._passwords.hash(password) if is_outdated else None
        async with self._database.transaction(LOOKUP) as connection:
            # The password may have been replaced during the hashing.
            if not await sign_in_store.holds_password(connection, known.id, known.password):
                raise Refused
            if renewed:
                await sign_in_store.set_password(connection, known.id, renewed)
            return await self._begin(connection, known.id, origin)

    async def forget_password(self, email: str, origin: Origin) -> None:
        """Mails a link for a new password to that address, if somebody signs in with it. Raises TooManyRequests.

        Does the same work for an unknown address, except for the row of the mail. A COMMIT of its own for that row would wait for the disk,
        which an unknown address would not.
        """
        key = email_key(email)
        await self._spend_network(origin)
        async with self._database.transaction(LOOKUP) as connection:
            await spend_on(connection, self._vault, Allowance.LETTERS, key[:LONGEST].encode(errors="replace"))
            if self._mails:
                await mail_reset(connection, key)

    async def look_at(self, secret: str, origin: Origin) -> Link:
        """Returns a link without using it. Raises NotFound, TooManyRequests."""
        await self._spend_network(origin)
        link = await self._database.read(LOOKUP, find_link, secret)
        await self._give_network_back(origin)
        return link

    async def by_link(self, secret: str, origin: Origin) -> str:
        """Signs in by a link that needs no password, and returns the session's secret. Raises NotFound for any other link."""
        async with self._database.transaction(LOOKUP) as connection:
            link = await find_link(connection, secret)
            if link.kind != "sign_in":
                raise NotFound(ENDED)
            person_id = link.person_id or await sign_in_store.add_person(connection, link.email)
            place = await self._join(connection, link, person_id)
            return await self._begin(connection, person_id, origin, place)

    async def by_new_password(self, secret: str, password: str, origin: Origin) -> str:
        """Uses an invitation or a reset to set a new password, and ends all older sessions and links. Returns the session's secret.

        An invitation that somebody may have copied cannot replace a password, nor set one for a member of a customer: they sign in and
        `take_up` it. Otherwise a person who invites an address could sign in as its owner elsewhere. The first link from a mail confirms
        the address, and removes everything that was set up for it before. Raises NotFound.
        """
        kept = await self._passwords.hash(password)
        async with self._database.transaction(LOOKUP) as connection:
            link = await find_link(connection, secret)
            if not link.chooses_password:
                raise NotFound(ENDED)
            person_id = link.person_id or await sign_in_store.add_person(connection, link.email)
            place = None if link.kind == "reset" else await self._join(connection, link, person_id)
            if place is None:
                await use_link(connection, link)
            if link.confirms and not await confirm_address(connection, person_id):
                raise NotFound(ENDED)
            if link.kind == "reset":
                await sign_in_store.set_password(connection, person_id, kept)
            elif not await sign_in_store.set_first_password(connection, person_id, kept):
                raise NotFound(ENDED)
            await sessions.end_sessions(connection, person_id)
            await end_links_of_person(connection, person_id)
            if place is not None:
                await self._record(connection, "person.joined", place, origin)
            return await self._begin(connection, person_id, origin, place)

    async def take_up(self, secret: str, session: sessions.Session, origin: Origin) -> bool:
        """Accepts an invitation as the person who is signed in. Returns False if it is for another address. Raises NotFound."""
        async with self._database.transaction(LOOKUP) as connection:
            link = await find_link(connection, secret)
            if link.kind != "invitation":
                raise NotFound(ENDED)
            if link.person_id != session.person_id or link.user_id is None or session.awaits_second_step:
                return False
            place = await self._join(connection, link, session.person_id)
            if not await sessions.choose_customer(connection, session, place.user_id):
                raise NotFound(ENDED)
            await self._record(connection, "person.joined", place, origin)
            await self._note_login(connection, place, origin)
        return True

    async def choose(self, session: sessions.Session, user_id: int, origin: Origin) -> bool:
        """Makes the session's pages show the customer of a membership. Returns False if the person lacks it."""
        async with self._database.transaction(LOOKUP) as connection:
            memberships = await sessions.list_memberships(connection, session.person_id)
            place = next((one for one in memberships if one.user_id == user_id), None)
            if place is None:
                return False
            await act_for(connection, for_customer(place.customer_id, self._environment))
            if not await sessions.choose_customer(connection, session, user_id):
                return False
            await self._note_login(connection, place, origin)
        return True

    async def _join(self, connection: Connection, link: Link, person_id: int) -> sessions.Membership:
        """Uses a link, and makes a person the member that it invites. The transaction acts for their customer from then on.

        Locks the member before the link, as `members.remove` does. Raises NotFound if the link was just used or ended.
        """
        assert link.user_id is not None, "a user's link"
        assert link.customer_id is not None, "a user is of a customer"
        await act_for(connection, for_customer(link.customer_id, self._environment))
        await bind_user(connection, link.user_id, person_id)
        await use_link(connection, link)
        return sessions.Membership(
            link.user_id, link.email, link.customer_id, link.customer_name or "", link.role or ""
        )

    async def _begin(
        self, connection: Connection, person_id: int, origin: Origin, place: sessions.Membership | None = None
    ) -> str:
        """Begins a session for a membership, by default for the only one that the person has."""
        if place is None:
            memberships = await sessions.list_memberships(connection, person_id)
            place = memberships[0] if len(memberships) == 1 else None
            if place is not None:
                await act_for(connection, for_customer(place.customer_id, self._environment))
        device = sessions.secret_hash(origin.device)
        if self._mails and await sessions.is_new_device(connection, person_id, device):
            about = None, origin.address, sessions.browser_name(origin.browser)
            await mail_person(connection, "new_device", person_id, *about)
        secret = await sessions.begin_session(
            connection,
            person_id,
            place.user_id if place else None,
            self._environment,
            address=origin.address,
            browser=origin.browser,
            device=device,
        )
        if place is not None and not await asks_second_step(connection, person_id):
            await self._note_login(connection, place, origin)
        return secret

    async def _note_login(
        self, connection: Connection, place: sessions.Membership | sessions.Person, origin: Origin
    ) -> None:
        await note_login(connection, place.user_id)
        await self._record(connection, "person.signed_in", place, origin)

    async def _record(
        self, connection: Connection, act: str, place: sessions.Membership | sessions.Person, origin: Origin
    ) -> None:
        """Records an act of a person about themselves in the audit log."""
        who = by_person(place.user_id, place.email, origin.address, origin.request_id)
        await Acting(who, self._chains).record(connection, act, place.email, customer_id=place.customer_id)
