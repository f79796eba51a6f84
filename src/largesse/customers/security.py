"""Operations by which people change how they sign in: password, authenticator app, passkeys, recovery codes, sessions. Also preferences."""

from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import NamedTuple

from largesse.base.errors import InvalidRequest, NotFound, existing
from largesse.customers import passkeys, second_step
from largesse.customers.actor import Actor, Transaction
from largesse.customers.members import set_user_name
from largesse.customers.passkeys import Passkey, RelyingParty
from largesse.customers.passwords import Passwords
from largesse.customers.sessions import (
    IDLE,
    OpenSession,
    Person,
    SignedIn,
    browser_name,
    choose_environment,
    end_session_of,
    end_sessions,
    list_sessions,
    note_proof,
)
from largesse.customers.sign_in import Origin, Refused
from largesse.customers.sign_in_links import end_links_of_person
from largesse.customers.sign_in_store import PEOPLE, SignInSql, set_first_password, set_password, set_preferences
from largesse.customers.staff_roles import StaffMember, StaffRight
from largesse.db.pool import Database
from largesse.db.scope import LOOKUP
from largesse.encryption.vault import Vault
from largesse.jobs.outbox import mail_person


class LastSecondStep(InvalidRequest):
    """The person would have no second step left, but needs one."""


class SignInMethods(NamedTuple):
    """A person's sessions, and the ways in which they can sign in."""

    sessions: list[OpenSession]
    recovery_codes: int  # how many are unused
    passkeys: list[Passkey]


class SecurityService:
    """Changes how people of customers sign in. With `staff`, changes how members of staff do, who always need a second step.

    With `mails`, people get a mail about changes to their second step.
    """

    def __init__(
        self,
        database: Database,
        vault: Vault,
        passwords: Passwords,
        party: RelyingParty,
        *,
        mails: bool,
        sql: SignInSql = PEOPLE,
        staff: StaffRight | None = None,
        idle: timedelta = IDLE,
    ) -> None:
        self._sql = sql
        self._staff = staff
        self._idle = idle
        self._database = database
        self._vault = vault
        self._passwords = passwords
        self._party = party
        self._mails = mails

    @property
    def has_passkeys(self) -> bool:
        """Whether passkeys are possible here: they need a public address with a host name."""
        return self._party.has_name

    async def read_methods(self, person_id: int) -> SignInMethods:
        """Returns a person's open sessions, unused recovery codes and passkeys."""
        async with self._database.connection(LOOKUP) as connection:
            return SignInMethods(
                await list_sessions(connection, person_id, self._sql, idle=self._idle),
                await second_step.count_recovery_codes(connection, person_id, self._sql),
                await passkeys.list_passkeys(connection, person_id, self._sql),
            )

    async def choose_password(self, actor: Actor, password: str) -> None:
        """Sets the first password of a person who signed in by a link. It also confirms who they are, and ends their other sessions and links.

        Raises Refused if they already have a password.
        """
        person, password_hash = _person(actor), await self._passwords.hash(password)
        async with self._transaction(actor) as transaction:
            if not await set_first_password(transaction.connection, person.person_id, password_hash, self._sql):
                raise Refused
            await note_proof(transaction.connection, person.session_id, self._sql)
            await self._end_others_after_password(transaction, person)

    async def change_password(self, actor: Actor, password: str) -> None:
        """Replaces the password, and ends the person's other sessions and links."""
        person, password_hash = _person(actor), await self._passwords.hash(password)
        async with self._transaction(actor) as transaction:
            await set_password(transaction.connection, person.person_id, password_hash, self._sql)
            await self._end_others_after_password(transaction, person)

    async def turn_on_app(self, actor: Actor, secret: bytes, code: str, origin: Origin) -> list[str] | None:
        """Switches on the authenticator app with a secret, and ends the person's other sessions.

        Returns None for a wrong code. Otherwise returns new recovery codes, or an empty list if the person has some already.
        """
        person = _person(actor)
        async with self._transaction(actor) as transaction:
            codes = await second_step.turn_on(
                transaction.connection, self._vault, person.person_id, secret, code, self._sql
            )
            if codes is not None:
                await end_sessions(transaction.connection, person.person_id, but=person.session_id, sql=self._sql)
                await self._tell(transaction, "app_on", origin)
                await transaction.record("person.second_step_on", person.email)
        return codes

    async def turn_off_app(self, actor: Actor, origin: Origin) -> None:
        """Switches off the authenticator app."""
        person = _person(actor)
        async with self._transaction(actor) as transaction:
            await second_step.forget_app(transaction.connection, person.person_id, self._sql)
            await self._require_second_step(transaction, person)
            await self._tell(transaction, "app_off", origin)
            await transaction.record("person.second_step_off", person.email)

    async def new_recovery_codes(self, actor: Actor, origin: Origin) -> list[str]:
        """Replaces the recovery codes, and returns the new ones, which cannot be read again."""
        person = _person(actor)
        async with self._transaction(actor) as transaction:
            codes = await second_step.new_recovery_codes(transaction.connection, person.person_id, self._sql)
            await self._tell(transaction, "recovery_codes", origin)
            await transaction.record("person.recovery_codes", person.email)
        return codes

    async def ask_passkey(self, session: SignedIn) -> str | None:
        """Returns the request to sign with one of the person's passkeys, as JSON; None if there are none."""
        if not session.has_passkey or not self._party.has_name:
            return None
        return await self._database.read(
            LOOKUP, passkeys.ask_passkey, self._party, session.id, session.person_id, self._sql
        )

    async def ask_new_passkey(self, person: Person | StaffMember) -> str:
        """Returns the request to create a passkey in a browser, as JSON. Raises NotFound if passkeys are not possible here."""
        if not self._party.has_name:
            raise NotFound("Passkeys need a public address with a host name.")
        return await self._database.read(
            LOOKUP, passkeys.ask_new_passkey, self._party, person.session_id, person.person_id, person.email, self._sql
        )

    async def add_passkey(self, actor: Actor, name: str, answer: str, origin: Origin) -> list[str]:
        """Adds the passkey that a browser created for `ask_new_passkey`, and ends the person's other sessions.

        Returns recovery codes if it is the first second step, otherwise an empty list. Raises NotThePasskey, Unfit.
        """
        person = _person(actor)
        made = await self._database.read(
            LOOKUP, passkeys.take_new_passkey, self._party, person.session_id, answer, self._sql
        )
        async with self._transaction(actor) as transaction:
            codes = await passkeys.add_passkey(transaction.connection, person.person_id, name, made, self._sql)
            await end_sessions(transaction.connection, person.person_id, but=person.session_id, sql=self._sql)
            await self._tell(transaction, "passkey_added", origin)
            await transaction.record("person.passkey_added", person.email, after={"name": name})
        return codes

    async def remove_passkey(self, actor: Actor, passkey_id: int, origin: Origin) -> str:
        """Removes a passkey of the person and returns its name. Raises NotFound."""
        person = _person(actor)
        async with self._transaction(actor) as transaction:
            name = existing(
                await passkeys.remove_passkey(transaction.connection, person.person_id, passkey_id, self._sql),
                "There is no such passkey.",
            )
            await self._require_second_step(transaction, person)
            await self._tell(transaction, "passkey_removed", origin)
            await transaction.record("person.passkey_removed", person.email, before={"name": name})
        return name

    async def end_session(self, actor: Actor, session_id: int) -> None:
        """Ends one of the person's sessions."""
        async with self._transaction(actor) as transaction:
            await end_session_of(transaction.connection, _person(actor).person_id, session_id, self._sql)

    async def end_other_sessions(self, actor: Actor) -> None:
        """Ends all of the person's sessions except the actor's."""
        person = _person(actor)
        async with self._transaction(actor) as transaction:
            await end_sessions(transaction.connection, person.person_id, but=person.session_id, sql=self._sql)

    async def set_preferences(self, actor: Actor, language: str | None, zone: str | None) -> None:
        """Sets the language and the time zone of the person's pages. None means the browser's language, and UTC."""
        async with self._transaction(actor) as transaction:
            await set_preferences(transaction.connection, _person(actor).person_id, language, zone, self._sql)

    async def set_name(self, actor: Actor, name: str) -> None:
        """Sets the name by which the actor's customer sees the person. Customers have a name each for somebody who belongs to several."""
        person = _person(actor)
        assert isinstance(person, Person), "only members of customers have this page"
        async with self._transaction(actor) as transaction:
            if name == person.name:
                return
            await set_user_name(transaction.connection, person.customer_id, person.user_id, name)
            own = transaction.on_behalf_of(person.customer_id)  # names belong to no environment
            await own.record("person.renamed", person.email, before={"name": person.name}, after={"name": name})

    async def choose_environment(self, actor: Actor, environment: str) -> None:
        """Sets the environment that the pages of the person's session show."""
        async with self._transaction(actor) as transaction:
            await choose_environment(transaction.connection, _person(actor).session_id, environment)

    async def _end_others_after_password(self, transaction: Transaction, person: Person | StaffMember) -> None:
        await end_sessions(transaction.connection, person.person_id, but=person.session_id, sql=self._sql)
        if self._staff is None:  # a member of staff with an open link has no password to replace
            await end_links_of_person(transaction.connection, person.person_id)
        # Passwords belong to no environment, so the audit entry has none.
        own = transaction.on_behalf_of(transaction.actor.customer_id)
        await own.record("person.password_chosen", person.email)

    def _transaction(self, actor: Actor) -> AbstractAsyncContextManager[Transaction]:
        return actor.transaction(staff=self._staff, changes_access=True)

    async def _require_second_step(self, transaction: Transaction, person: Person | StaffMember) -> None:
        """Raises LastSecondStep if a member of staff would have no second step left."""
        if self._staff is not None and not await second_step.asks_second_step(
            transaction.connection, person.person_id, self._sql
        ):
            raise LastSecondStep("A member of staff always has a second step.")

    async def _tell(self, transaction: Transaction, change: str, origin: Origin) -> None:
        if self._mails:
            person_id, browser = _person(transaction.actor).person_id, browser_name(origin.browser)
            await mail_person(transaction.connection, "second_step", person_id, change, origin.address, browser)


def _person(actor: Actor) -> Person | StaffMember:
    person = actor.person or actor.staff
    assert person is not None, "only a person changes how they sign in"
    return person
