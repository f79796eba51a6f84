"""Secrets at rest: sealing, look-up hashes and claim tokens, under keys derived from the master keys.

Every purpose has a key of its own (HKDF-SHA256, RFC 5869). Sealing is AES-256-GCM; claim tokens are AES-SIV
(RFC 5297), whose output depends on nothing but the code, so that one code always has one link. What is sealed
starts with the fingerprint of its master key, which is how older keys keep opening it after a rotation.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from binascii import b2a_base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESSIV
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from largesse.base.errors import StartError
from largesse.base.settings import Settings, decode_master_key

_FINGERPRINT_BYTES = 4
_NONCE_BYTES = 12
_LOOKUP_BYTES = 8
SIGNATURE_BYTES = _FINGERPRINT_BYTES + 32
_URL_SAFE = bytes.maketrans(b"+/", b"-_")  # RFC 4648, section 5


class SealBroken(Exception):
    """Sealed bytes that no master key opens, or that belong elsewhere."""


class _Lookup:
    """HMAC-SHA256 (RFC 2104) under one key, in half the time of `hmac`: each code of a batch pays for it."""

    def __init__(self, key: bytes) -> None:
        block = key.ljust(hashlib.sha256().block_size, b"\0")
        self._inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block))
        self._outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in block))

    def of(self, messages: Iterable[bytes]) -> list[int]:
        """The number that each message is found by: 64 bits of its HMAC, signed."""
        copy_inner, copy_outer = self._inner.copy, self._outer.copy
        numbers = []
        for message in messages:
            inner, outer = copy_inner(), copy_outer()
            inner.update(message)
            outer.update(inner.digest())
            numbers.append(int.from_bytes(outer.digest()[:_LOOKUP_BYTES], "big", signed=True))
        return numbers


@dataclass(frozen=True, slots=True, repr=False)
class _Keys:
    """What is derived from one master key."""

    fingerprint: bytes
    sealing: AESGCM
    token: AESSIV
    lookup: _Lookup
    quote: bytes

    @classmethod
    def derive(cls, master_key: bytes) -> _Keys:
        return cls(
            fingerprint=_derive(master_key, b"fingerprint", _FINGERPRINT_BYTES),
            sealing=AESGCM(_derive(master_key, b"sealing", 32)),
            token=AESSIV(_derive(master_key, b"claim-token", 64)),
            lookup=_Lookup(_derive(master_key, b"code-lookup", 32)),
            quote=_derive(master_key, b"quote", 32),
        )


class Vault:
    """Seals and opens under a ring of master keys: the first seals, all open."""

    def __init__(self, master_keys: tuple[bytes, ...]) -> None:
        if not master_keys:
            raise ValueError("a vault needs a master key")
        ring = [_Keys.derive(key) for key in master_keys]
        self._newest = ring[0]
        self._ring = {keys.fingerprint: keys for keys in ring}

    def seal(self, secret: bytes, context: bytes) -> bytes:
        """`secret` sealed: fingerprint, nonce, ciphertext and tag. Only the same `context` opens it."""
        return self.seal_all([(secret, context)])[0]

    def seal_all(self, secrets: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
        """Secrets with their contexts, each sealed as `seal` does: the nonces are drawn at once."""
        nonces = os.urandom(_NONCE_BYTES * len(secrets))
        fingerprint, encrypt = self._newest.fingerprint, self._newest.sealing.encrypt
        return [
            fingerprint + (nonce := nonces[at : at + _NONCE_BYTES]) + encrypt(nonce, secret, context)
            for at, (secret, context) in zip(range(0, len(nonces), _NONCE_BYTES), secrets, strict=True)
        ]

    def open(self, sealed: bytes, context: bytes) -> bytes:
        """What `seal` sealed. Raises SealBroken."""
        keys = self._keys_of(sealed)
        body = sealed[_FINGERPRINT_BYTES:]
        try:
            return keys.sealing.decrypt(body[:_NONCE_BYTES], body[_NONCE_BYTES:], context)
        except (ValueError, InvalidTag):  # ValueError: cut short
            raise SealBroken("the sealed bytes were changed or belong elsewhere") from None

    def knows(self, sealed: bytes) -> bool:
        """Whether `sealed` was sealed by a key of the ring, as far as its fingerprint tells."""
        return sealed[:_FINGERPRINT_BYTES] in self._ring

    def is_newest(self, sealed: bytes) -> bool:
        """Whether `sealed` was sealed by the key that seals now."""
        return sealed[:_FINGERPRINT_BYTES] == self._newest.fingerprint

    def lookup(self, code: bytes) -> int:
        """The number a new code is found by: 64 bits of its HMAC-SHA256, signed."""
        return self._newest.lookup.of([code])[0]

    def lookup_all(self, codes: Iterable[bytes]) -> list[int]:
        """The number that each new code is found by."""
        return self._newest.lookup.of(codes)

    def lookups(self, code: bytes) -> list[int]:
        """The numbers a code may be found by, one for each master key."""
        return [keys.lookup.of([code])[0] for keys in self._ring.values()]

    def token(self, code: bytes) -> str:
        """The claim token of a code of 10 bytes: 40 characters fit for a URL."""
        return self.token_all([code])[0]

    def token_all(self, codes: Iterable[bytes]) -> list[str]:
        """The claim token of each code."""
        fingerprint, encrypt = self._newest.fingerprint, self._newest.token.encrypt
        return [
            b2a_base64(fingerprint + encrypt(code, None), newline=False).translate(_URL_SAFE).decode("ascii")
            for code in codes
        ]

    def code_of_token(self, token: str) -> bytes:
        """The code `token` made the token of. Raises SealBroken for every other text."""
        try:
            sealed = base64.b64decode(token.encode("ascii"), altchars=b"-_", validate=True)
            return self._keys_of(sealed).token.decrypt(sealed[_FINGERPRINT_BYTES:], None)
        except (ValueError, InvalidTag):
            raise SealBroken("not a claim token of this installation") from None

    def sign_quote(self, quote: bytes) -> bytes:
        """What shows that `quote` is ours: the fingerprint and the HMAC-SHA256, SIGNATURE_BYTES in all."""
        return self._newest.fingerprint + hmac.digest(self._newest.quote, quote, "sha256")

    def has_signed_quote(self, quote: bytes, signature: bytes) -> bool:
        """Whether `sign_quote` made this signature of this quote, under any master key of the ring."""
        keys = self._ring.get(signature[:_FINGERPRINT_BYTES])
        if keys is None:
            return False
        return hmac.compare_digest(hmac.digest(keys.quote, quote, "sha256"), signature[_FINGERPRINT_BYTES:])

    def _keys_of(self, sealed: bytes) -> _Keys:
        keys = self._ring.get(sealed[:_FINGERPRINT_BYTES])
        if keys is None:
            raise SealBroken("sealed under a master key that is not in the ring")
        return keys


def load_vault(settings: Settings) -> Vault:
    """The vault of an installation.

    With an embedded database the master key is generated into the data directory once; with an external one
    it must be set, since every process of the installation needs the same. Raises StartError.
    """
    if settings.master_keys:
        return Vault(settings.master_keys)
    if settings.database_url is not None:
        raise StartError(
            "LARGESSE_MASTER_KEY must be set with an external database: `openssl rand -base64 32`"
        )
    return Vault((_generated_master_key(master_key_file(settings)),))


def master_key_file(settings: Settings) -> Path:
    """Where the generated master key is, or will be."""
    return settings.data_dir / "master-key"


def is_key_to_be_generated(settings: Settings) -> bool:
    """Whether there is no master key yet, and loading the vault would make one."""
    return (
        not settings.master_keys and settings.database_url is None and not master_key_file(settings).exists()
    )


def _generated_master_key(path: Path) -> bytes:
    """Reads the key at `path`, made on first use. Linking into place makes one of several starters the maker."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"master-key.{os.getpid()}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(base64.b64encode(os.urandom(32)) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return decode_master_key(path.read_text("ascii").strip(), str(path))


def _derive(master_key: bytes, purpose: bytes, length: int) -> bytes:
    return HKDF(SHA256(), length=length, salt=None, info=b"largesse/" + purpose).derive(master_key)
