"""What is said between us and a passkey (WebAuthn level 3): what a browser is asked, and whether its answer holds.

The library is imported when it is first needed: most processes never see a passkey.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from largesse.base.hosts import by_name

if TYPE_CHECKING:
    from fido2.server import Fido2Server
    from fido2.webauthn import PublicKeyCredentialDescriptor

CHALLENGE_BYTES = 32
_HANDLE_BYTES = 16  # by which authenticators keep accounts apart; we know passkeys by their own ids
_PORTS = {"http": 80, "https": 443}


class NotThePasskey(Exception):
    """What came is no answer of a passkey to what was asked."""


@dataclass(frozen=True, slots=True)
class Signed:
    """A passkey that signed: what is kept of it, its id, and how often it has signed (0: it does not count)."""

    credential_id: bytes
    credential: bytes
    sign_count: int


class RelyingParty:
    """An installation as passkeys know it: by the name of its public address."""

    def __init__(self, public_url: str) -> None:
        parts = urlsplit(by_name(public_url))
        self._host = parts.hostname or ""
        port = "" if parts.port in {None, _PORTS.get(parts.scheme)} else f":{parts.port}"
        self._origin = f"{parts.scheme}://{self._host}{port}"
        self._made: Fido2Server | None = None

    @property
    def has_name(self) -> bool:
        """Whether there can be passkeys at all: they are for a name, never for a number."""
        try:
            ipaddress.ip_address(self._host)
        except ValueError:
            return True
        return False

    def ask_new(self, challenge: bytes, email: str, known: Sequence[bytes]) -> str:
        """What a browser is asked so that a passkey is made, as JSON; not by an authenticator that has one of those known."""
        from fido2.webauthn import (
            PublicKeyCredentialUserEntity,
            ResidentKeyRequirement,
            UserVerificationRequirement,
        )

        options, _ = self._server.register_begin(
            PublicKeyCredentialUserEntity(
                id=secrets.token_bytes(_HANDLE_BYTES), name=email, display_name=email
            ),
            _descriptors(known),
            resident_key_requirement=ResidentKeyRequirement.PREFERRED,
            user_verification=UserVerificationRequirement.REQUIRED,
            challenge=challenge,
        )
        return _json(options.public_key)

    def ask(self, challenge: bytes, known: Sequence[bytes]) -> str:
        """What a browser is asked so that one of those passkeys signs, as JSON."""
        from fido2.webauthn import UserVerificationRequirement

        options, _ = self._server.authenticate_begin(
            _descriptors(known), UserVerificationRequirement.REQUIRED, challenge
        )
        return _json(options.public_key)

    def read_new(self, challenge: bytes, answer: str) -> Signed:
        """The passkey that a browser made when it was asked with that challenge. Raises NotThePasskey."""
        try:
            made = self._server.register_complete(_state(challenge), _object(answer))
            credential = made.credential_data
        except Exception as error:  # whatever a browser may send
            raise NotThePasskey from error
        if credential is None:
            raise NotThePasskey
        return Signed(credential.credential_id, bytes(credential), made.counter)

    def read(self, challenge: bytes, credentials: Sequence[bytes], answer: str) -> Signed:
        """Which of those kept signed the challenge. Raises NotThePasskey."""
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
    """What the library keeps between asking and the answer."""
    from fido2.utils import websafe_encode
    from fido2.webauthn import UserVerificationRequirement

    return {
        "challenge": websafe_encode(challenge),
        "user_verification": UserVerificationRequirement.REQUIRED,
    }


def _descriptors(known: Sequence[bytes]) -> list[PublicKeyCredentialDescriptor]:
    from fido2.webauthn import PublicKeyCredentialDescriptor, PublicKeyCredentialType

    return [PublicKeyCredentialDescriptor(type=PublicKeyCredentialType.PUBLIC_KEY, id=one) for one in known]


def _json(options: Any) -> str:
    return msgspec.json.encode(dict(options), enc_hook=dict).decode()


def _object(answer: str) -> dict[str, Any]:
    return msgspec.json.decode(answer.encode(), type=dict[str, Any])
