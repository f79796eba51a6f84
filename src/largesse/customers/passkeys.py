"""Passkeys (WebAuthn level 3): the requests to a browser, and the checks of its answers.

The library is imported when it is first needed: most processes never see a passkey.

Passkeys of people are a second step. Each challenge counts once, for some minutes.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from largesse.base.errors import InvalidRequest
from largesse.base.hosts import by_name
from largesse.customers.second_step import begin_recovery, end_recovery
from largesse.customers.sign_in_store import PEOPLE, SignInSql
from largesse.db.pool import Connection, open_credentials

if TYPE_CHECKING:
    from fido2.server import Fido2Server
    from fido2.webauthn import PublicKeyCredentialDescriptor

CHALLENGE_BYTES = 32
_HANDLE_BYTES = 16  # authenticators tell accounts apart by it; we find passkeys by their own ids
_PORTS = {"http": 80, "https": 443}


class NotThePasskey(Exception):
    """The answer to the challenge is not valid, or not from this passkey."""


class Signed(msgspec.Struct, frozen=True):
    """A passkey that signed: its stored credential, its id, and how often it has signed; 0 if it does not count."""

    credential_id: bytes
    credential: bytes
    sign_count: int


class RelyingParty:
    """The installation as passkeys see it: they are bound to the name in its public address."""

    def __init__(self, public_url: str) -> None:
        parts = urlsplit(by_name(public_url))
        self._host = parts.hostname or ""
        port = "" if parts.port in {None, _PORTS.get(parts.scheme)} else f":{parts.port}"
        self._origin = f"{parts.scheme}://{self._host}{port}"
        self._made: Fido2Server | None = None

    @property
    def has_name(self) -> bool:
        """Whether the public address is a host name. Passkeys are not possible for an IP address."""
        try:
            ipaddress.ip_address(self._host)
        except ValueError:
            return True
        return False

    def ask_new(self, challenge: bytes, email: str, known: Sequence[bytes]) -> str:
        """Returns the request to create a passkey, as JSON. An authenticator that has one of `known` refuses it."""
        from fido2.webauthn import PublicKeyCredentialUserEntity, ResidentKeyRequirement, UserVerificationRequirement

        options, _ = self._server.register_begin(
            PublicKeyCredentialUserEntity(id=secrets.token_bytes(_HANDLE_BYTES), name=email, display_name=email),
            _descriptors(known),
            resident_key_requirement=ResidentKeyRequirement.PREFERRED,
            user_verification=UserVerificationRequirement.REQUIRED,
            challenge=challenge,
        )
        return _json(options.public_key)

    def ask(self, challenge: bytes, known: Sequence[bytes]) -> str:
        """Returns the request to sign with one of the passkeys `known`, as JSON."""
        from fido2.webauthn import UserVerificationRequirement

        options, _ = self._server.authenticate_begin(
            _descriptors(known), UserVerificationRequirement.REQUIRED, challenge
        )
        return _json(options.public_key)

    def read_new(self, challenge: bytes, answer: str) -> Signed:
        """Returns the passkey that a browser created for that challenge. Raises NotThePasskey."""
        try:
            made = self._server.register_complete(_state(challenge), _object(answer))
            credential = made.credential_data
        except Exception as error:  # whatever a browser may send
            raise NotThePasskey from error
        if credential is None:
            raise NotThePasskey
        return Signed(credential.credential_id, bytes(credential), made.counter)

    def read(self, challenge: bytes, credentials: Sequence[bytes], answer: str) -> Signed:
        """Returns which of the stored passkeys signed the challenge. Raises NotThePasskey."""
        from fido2.webauthn import AttestedCredentialData, AuthenticationResponse

        try:
            given = AuthenticationResponse.from_dict(_object(answer))
            known = [AttestedCredentialData(credential) for credential in credentials]
            found = self._server.authenticate_complete(_state(challenge), known, given)
            counter = given.response.authenticator_data.counter
        except Exception as error:  # whatever a browser may send
            raise NotThePasskey from error
        return Signed(found.credential_id, bytes(found), counter)

    @property
    def _server(self) -> Fido2Server:
        if self._made is None:
            from fido2.server import Fido2Server
            from fido2.webauthn import PublicKeyCredentialRpEntity

            entity = PublicKeyCredentialRpEntity(id=self._host, name="Largesse")
            self._made = Fido2Server(entity, verify_origin=self._is_ours)
        return self._made

    def _is_ours(self, origin: str) -> bool:
        return origin == self._origin


def _state(challenge: bytes) -> dict[str, Any]:
    """Returns the state that the library needs between challenge and answer."""
    from fido2.utils import websafe_encode
    from fido2.webauthn import UserVerificationRequirement

    return {"challenge": websafe_encode(challenge), "user_verification": UserVerificationRequirement.REQUIRED}


def _descriptors(known: Sequence[bytes]) -> list[PublicKeyCredentialDescriptor]:
    from fido2.webauthn import PublicKeyCredentialDescriptor, PublicKeyCredentialType

    return [PublicKeyCredentialDescriptor(type=PublicKeyCredentialType.PUBLIC_KEY, id=one) for one in known]


def _json(options: Any) -> str:
    return msgspec.json.encode(dict(options), enc_hook=dict).decode()


def _object(answer: str) -> dict[str, Any]:
    return msgspec.json.decode(answer.encode(), type=dict[str, Any])


MOST_PASSKEYS = 10
CHALLENGE_LASTS = timedelta(minutes=10)
_RENEWED_AFTER = timedelta(minutes=5)  # so a challenge on a page is valid for at least five more minutes


class Unfit(InvalidRequest):
    """The passkey cannot be added: there are too many, or it is registered already."""


class Passkey(msgspec.Struct, frozen=True):
    """A passkey as its person sees it."""

    id: int
    name: str
    created_at: datetime
    used_at: datetime | None


async def list_passkeys(connection: Connection, person_id: int, sql: SignInSql = PEOPLE) -> list[Passkey]:
    """Returns the passkeys of a person, the oldest first."""
    rows = await connection.fetch(sql.list_passkeys, person_id)
    return [Passkey(**row) for row in rows]


async def ask_passkey(
    connection: Connection, party: RelyingParty, session_id: int, person_id: int, sql: SignInSql = PEOPLE
) -> str | None:
    """Returns the request to sign with one of the person's passkeys, as JSON; None if they have none."""
    known = await _credential_ids(connection, person_id, sql)
    return party.ask(await _challenge(connection, session_id, sql), known) if known else None


async def ask_new_passkey(
    connection: Connection, party: RelyingParty, session_id: int, person_id: int, email: str, sql: SignInSql = PEOPLE
) -> str:
    """Returns the request to create a passkey in a browser, as JSON."""
    known = await _credential_ids(connection, person_id, sql)
    return party.ask_new(await _challenge(connection, session_id, sql), email, known)


async def take_new_passkey(
    connection: Connection, party: RelyingParty, session_id: int, answer: str, sql: SignInSql = PEOPLE
) -> Signed:
    """Returns the passkey that a browser created for the session's challenge, which can be used only once. Raises NotThePasskey."""
    return party.read_new(await _take_challenge(connection, session_id, sql), answer)


async def add_passkey(
    connection: Connection, person_id: int, name: str, made: Signed, sql: SignInSql = PEOPLE
) -> list[str]:
    """Stores a new passkey. Returns recovery codes if it is the person's first second step, otherwise none. Raises Unfit."""
    await open_credentials(connection)
    # Additions for one person run one at a time, so that two simultaneous ones do not exceed the limit.
    await connection.execute(sql.lock, person_id)
    if len(await _credential_ids(connection, person_id, sql)) >= MOST_PASSKEYS:
        raise Unfit(f"A person has at most {MOST_PASSKEYS} passkeys.")
    added = await connection.fetchval(
        sql.add_passkey, person_id, made.credential_id, made.credential, name, made.sign_count
    )
    if added is None:
        raise Unfit("This passkey is registered already.")
    return await begin_recovery(connection, person_id, sql)


async def remove_passkey(
    connection: Connection, person_id: int, passkey_id: int, sql: SignInSql = PEOPLE
) -> str | None:
    """Removes a passkey and returns its name; None if the person has none with that id."""
    await open_credentials(connection)
    name: str | None = await connection.fetchval(sql.remove_passkey, passkey_id, person_id)
    await end_recovery(connection, person_id, sql)
    return name


async def take_passkey(
    connection: Connection, party: RelyingParty, session_id: int, person_id: int, answer: str, sql: SignInSql = PEOPLE
) -> bool:
    """Returns whether one of the person's passkeys signed the session's challenge. Each challenge counts once.

    Refuses a passkey whose count of signatures does not rise, as it may be a copy.
    """
    await open_credentials(connection)
    rows = await connection.fetch(sql.lock_passkeys, person_id)
    try:
        challenge = await _take_challenge(connection, session_id, sql)
        signed = party.read(challenge, [bytes(row["credential"]) for row in rows], answer)
    except NotThePasskey:
        return False
    return bool(await connection.fetchval(sql.count_passkey, signed.credential_id, signed.sign_count))


async def _credential_ids(connection: Connection, person_id: int, sql: SignInSql = PEOPLE) -> list[bytes]:
    rows = await connection.fetch(sql.credential_ids, person_id)
    return [bytes(row["credential_id"]) for row in rows]


async def _challenge(connection: Connection, session_id: int, sql: SignInSql = PEOPLE) -> bytes:
    """Returns the session's challenge. Makes a new one unless it is recent, so that two open pages share it."""
    challenge: bytes = await connection.fetchval(
        sql.challenge, session_id, secrets.token_bytes(CHALLENGE_BYTES), _RENEWED_AFTER
    )
    return bytes(challenge)


async def _take_challenge(connection: Connection, session_id: int, sql: SignInSql = PEOPLE) -> bytes:
    """Returns the session's challenge, once. Raises NotThePasskey if it has expired or was used."""
    row = await connection.fetchrow(sql.take_challenge, session_id, CHALLENGE_LASTS)
    if row is None or not row["holds"]:
        raise NotThePasskey
    return bytes(row["challenge"])
