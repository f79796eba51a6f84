"""A passkey made of software, as an authenticator and a browser answer together (WebAuthn level 3, sections 6.1 and 5.8.1)."""

import base64
import hashlib
import html
import json
import os
import re
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from fido2 import cbor
from fido2.cose import ES256

PRESENT, VERIFIED, WITH_CREDENTIAL = 0x01, 0x04, 0x40


def asked(page: str) -> dict[str, Any]:
    """What a page asks passkeys."""
    return json.loads(html.unescape(re.findall(r'data-options="([^"]*)"', page)[0]))


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@dataclass
class SoftPasskey:
    """One passkey; what is wrong with its answers is said by changing it."""

    origin: str = "https://gifts.example"
    rp_id: str = "gifts.example"
    flags: int = PRESENT | VERIFIED
    count: int = 0
    counts: bool = True
    id: bytes = field(default_factory=lambda: os.urandom(16))
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def make(self, options: dict[str, Any], kind: str = "webauthn.create") -> str:
        """The answer to who asks for a new one."""
        public = cbor.encode(dict(ES256.from_cryptography_key(self.key.public_key())))
        credential = bytes(16) + len(self.id).to_bytes(2, "big") + self.id + public
        attestation = {"fmt": "none", "attStmt": {}, "authData": self._data(self.flags | WITH_CREDENTIAL) + credential}
        return self._answer(clientDataJSON=self._client(options, kind), attestationObject=cbor.encode(attestation))

    def sign(self, options: dict[str, Any], kind: str = "webauthn.get") -> str:
        """The answer to who asks it to sign."""
        if self.counts:
            self.count += 1
        client, data = self._client(options, kind), self._data(self.flags)
        signature = self.key.sign(data + hashlib.sha256(client).digest(), ec.ECDSA(SHA256()))
        return self._answer(clientDataJSON=client, authenticatorData=data, signature=signature)

    def _data(self, flags: int) -> bytes:
        return hashlib.sha256(self.rp_id.encode()).digest() + bytes([flags]) + self.count.to_bytes(4, "big")

    def _client(self, options: dict[str, Any], kind: str) -> bytes:
        said = {"type": kind, "challenge": options["challenge"], "origin": self.origin, "crossOrigin": False}
        return json.dumps(said).encode()

    def _answer(self, **parts: bytes) -> str:
        return json.dumps(
            {
                "id": _text(self.id),
                "rawId": _text(self.id),
                "type": "public-key",
                "clientExtensionResults": {},
                "response": {name: _text(part) for name, part in parts.items()},
            }
        )
