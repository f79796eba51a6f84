"""Secrets at rest: encryption, look-up hashes and claim tokens, under keys derived from the master keys.

Every purpose is a compartment with its own keys (HKDF-SHA256, RFC 5869, with the purpose as `info`). Only the compartment that encrypted a
value can decrypt it. Encryption is AES-256-GCM. Its output begins with the id of the key, so that older master keys still decrypt it after a
rotation. Look-ups are HMAC-SHA256 (RFC 2104). Claim tokens are AES-SIV (RFC 5297): they depend only on the code, so a code always has the
same link. People store links, so the part of a master key that links need is stored after it is retired, as its `RetiredKey`.

In 0.1.0 all compartments shared the keys of codes. They still decrypt and find older values. New values use the compartment's own keys.
"""

from __future__ import annotations

import base64
import hmac
import os
from binascii import b2a_base64
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESSIV
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from largesse.base.confidential import Confidential
from largesse.base.errors import OperatorError
from largesse.base.settings import Settings, decode_master_keys

KEY_ID_BYTES = 4
_NONCE_BYTES = 12
_LOOKUP_BYTES = 8
_CODE_BYTES, _CUSTOMER_BYTES = 10, 6  # the parts of a token; together they are one block of the cipher
SIGNATURE_BYTES = KEY_ID_BYTES + 32
_REST_CONTEXT = b"rest-of-master-key/"
_URL_SAFE = bytes.maketrans(b"+/", b"-_")  # RFC 4648, section 5


class DecryptionFailed(Exception):
    """No master key decrypts the bytes, or they belong to another compartment or context."""


class RetiredKey(Confidential, frozen=True):
    """The part of a retired master key that is still needed. It opens claim links, and nothing else."""

    links_id: bytes
    links: bytes


class _Keys:
    """The keys of one purpose under one master key: the encryption key with its id, and the look-up key."""

    def __init__(self, master_key: bytes, key_id: bytes, sealing: bytes, lookup: bytes) -> None:
        self.id = _derive(master_key, key_id, KEY_ID_BYTES)
        self.sealing = AESGCM(_derive(master_key, sealing, 32))
        # Copying it for each message takes 0.6 µs. `hmac.digest` takes 1.5 µs, and a copy of `hmac.new` 1.2 µs.
        self._lookup = HMAC(_derive(master_key, lookup, 32), SHA256())

    @classmethod
    def of_codes(cls, master_key: bytes) -> _Keys:
        """Returns the keys of codes. Their names are older than compartments."""
        return cls(master_key, b"fingerprint", b"sealing", b"code-lookup")

    @classmethod
    def of(cls, purpose: str, master_key: bytes) -> _Keys:
        """Returns the keys of any other purpose."""
        names = (f"{purpose}/{use}".encode("ascii") for use in ("key-id", "sealing", "lookup"))
        return cls(master_key, *names)

    def lookups(self, messages: Iterable[bytes]) -> list[int]:
        """Returns the look-up number of each message: 64 bits of its HMAC, signed."""
        copy = self._lookup.copy
        numbers = []
        for message in messages:
            found_by = copy()
            found_by.update(message)
            numbers.append(int.from_bytes(found_by.finalize()[:_LOOKUP_BYTES], "big", signed=True))
        return numbers


_encode_rest = msgspec.msgpack.Encoder().encode
_decode_rest = msgspec.msgpack.Decoder(RetiredKey).decode


class Compartment:
    """The secrets of one purpose, under a ring of keys. The first key encrypts, and all decrypt."""

    def __init__(self, ring: Sequence[_Keys]) -> None:
        self._newest = ring[0]
        self._ring = {keys.id: keys for keys in ring}

    def seal(self, secret: bytes, context: bytes) -> bytes:
        """Returns `secret` encrypted: the key's id, nonce, ciphertext and tag. Decryption needs the same `context`."""
        return self.seal_all([(secret, context)])[0]

    def seal_all(self, secrets: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
        """Encrypts secrets with their contexts as `seal` does, but gets the random bytes of all nonces at once."""
        nonces = os.urandom(_NONCE_BYTES * len(secrets))
        key_id, encrypt = self._newest.id, self._newest.sealing.encrypt
        return [
            key_id + (nonce := nonces[at : at + _NONCE_BYTES]) + encrypt(nonce, secret, context)
            for at, (secret, context) in zip(range(0, len(nonces), _NONCE_BYTES), secrets, strict=True)
        ]

    def open(self, sealed: bytes, context: bytes) -> bytes:
        """Decrypts the output of `seal`. Raises DecryptionFailed."""
        keys = self._ring.get(sealed[:KEY_ID_BYTES])
        if keys is None:
            raise DecryptionFailed("encrypted for another purpose, or under a master key that is not in the ring")
        body = sealed[KEY_ID_BYTES:]
        try:
            return keys.sealing.decrypt(body[:_NONCE_BYTES], body[_NONCE_BYTES:], context)
        except (ValueError, InvalidTag):  # ValueError: the bytes are too short
            raise DecryptionFailed("the encrypted bytes were changed or belong elsewhere") from None

    @property
    def newest_id(self) -> bytes:
        """The id of the key that encrypts now, KEY_ID_BYTES long. Its output begins with it."""
        return self._newest.id

    def knows(self, sealed: bytes) -> bool:
        """Returns whether a key of the ring encrypted `sealed`. Compares only the id of the key."""
        return sealed[:KEY_ID_BYTES] in self._ring

    def is_newest(self, sealed: bytes) -> bool:
        """Returns whether the newest key encrypted `sealed`."""
        return sealed[:KEY_ID_BYTES] == self._newest.id

    def lookup(self, message: bytes) -> int:
        """Returns the look-up number of a new message: 64 bits of its HMAC-SHA256, signed."""
        return self._newest.lookups([message])[0]

    def lookup_all(self, messages: Iterable[bytes]) -> list[int]:
        """Returns the look-up number of each new message."""
        return self._newest.lookups(messages)

    def lookups(self, message: bytes) -> list[int]:
        """Returns the possible look-up numbers of a message, one for each key of the ring, newest first."""
        return [keys.lookups([message])[0] for keys in self._ring.values()]

    def name(self, message: bytes) -> str:
        """Returns the look-up number of a message as 16 hexadecimal digits. It reveals nothing about the message."""
        return _in_hex(self.lookup(message))

    def is_name(self, name: str, message: bytes) -> bool:
        """Returns whether `name` is the name of `message` under a key of the ring, compared in constant time."""
        given = name.encode(errors="replace")  # a caller may have sent any text
        return any(hmac.compare_digest(_in_hex(n).encode(), given) for n in self.lookups(message))


class Vault:
    """The compartments of an installation, the claim tokens of its codes, and the signatures of its quotes."""

    def __init__(self, master_keys: tuple[bytes, ...]) -> None:
        """Takes the master keys, 32 bytes each. The first one encrypts, and all decrypt. Duplicates count once."""
        if not master_keys:
            raise ValueError("a vault needs a master key")
        master_keys = tuple(dict.fromkeys(master_keys))
        codes = [_Keys.of_codes(key) for key in master_keys]

        def compartment(purpose: str) -> Compartment:
            return Compartment([*(_Keys.of(purpose, key) for key in master_keys), *codes])

        self.codes = Compartment(codes)  # codes with their PINs
        self.vouchers = compartment("vouchers")
        self.addresses = compartment("addresses")  # postal addresses of parcels
        self.emails = compartment("emails")  # addresses for notifications
        self.notes = compartment("notes")  # thank-you notes of recipients
        self.webhooks = compartment("webhooks")  # signing secrets of webhooks
        self.captured = compartment("captured")  # mail of staging and the demo
        self.sessions = compartment("sessions")  # cookies of recipients
        self.handles = compartment("handles")  # identifiers in the addresses of a gift's pages
        self.forms = compartment("forms")  # hidden fields of a session's forms
        self.networks = compartment("networks")  # hashes by which attempts are counted
        self.asks = compartment("asks")  # codes that are mailed to visitors of a campaign
        self.second_steps = compartment("second-steps")  # secrets of people's authenticator apps
        self.proof = compartment("proof")  # known texts that verify the master keys
        self.chains = compartment("chains")  # the keys of the chains of ledger and audit log
        self.rests = compartment("rests")  # the parts of retired master keys that are still needed
        # One compartment for each master key, by the key's name: the id at the beginning of its encrypted known text.
        proofs = [_Keys.of("proof", key) for key in master_keys]
        self._proofs = {keys.id: Compartment([keys]) for keys in proofs}
        self.key_ids = tuple(self._proofs)  # the key ids, newest first
        # For each master key, in that order: the key that the database requires before people's credentials are changed.
        self._credentials_keys = tuple(_derive(key, b"credentials", 32) for key in master_keys)
        # Tokens and signatures of quotes begin with the id of a key: the codes' key of the same master key.
        rests = [
            RetiredKey(keys.id, _derive(key, b"claim-token", 64)) for keys, key in zip(codes, master_keys, strict=True)
        ]
        self._rests = dict(zip(self.key_ids, rests, strict=True))
        self._tokens = {rest.links_id: AESSIV(rest.links) for rest in rests}
        self._quotes = {keys.id: _derive(key, b"quote", 32) for keys, key in zip(codes, master_keys, strict=True)}
        self._newest_id = codes[0].id

    def knows(self, sealed: bytes) -> bool:
        """Returns whether one of the master keys encrypted `sealed` for any purpose. Compares only the id of the key."""
        return any(part.knows(sealed) for part in vars(self).values() if isinstance(part, Compartment))

    @property
    def credentials_key(self) -> bytes:
        """The key that the database requires before credentials of people are changed."""
        return self._credentials_keys[0]

    @property
    def credentials_hashes(self) -> list[bytes]:
        """Returns the SHA-256 of each master key's credentials key, in the order of `key_ids`, as the database stores it."""
        return [sha256(key).digest() for key in self._credentials_keys]

    def prove(self, key_id: bytes, text: bytes, context: bytes) -> bytes:
        """Returns `text` encrypted under the master key with that id, one of `key_ids`, as a proof of it."""
        return self._proofs[key_id].seal(text, context)

    def rest_of(self, key_id: bytes) -> bytes:
        """Returns, encrypted, the part of a master key (by its id, one of `key_ids`) that is needed after it is retired."""
        return self.rests.seal(_encode_rest(self._rests[key_id]), _REST_CONTEXT + key_id)

    def reseal_rest(self, key_id: bytes, sealed: bytes) -> bytes:
        """Encrypts the output of `rest_of` under the newest key. Raises DecryptionFailed."""
        context = _REST_CONTEXT + key_id
        return self.rests.seal(self.rests.open(sealed, context), context)

    def keep_rest(self, key_id: bytes, sealed: bytes) -> None:
        """Lets the vault open claim links of a retired master key, with the output of `rest_of`. Raises DecryptionFailed."""
        rest = _decode_rest(self.rests.open(sealed, _REST_CONTEXT + key_id))
        self._tokens.setdefault(rest.links_id, AESSIV(rest.links))

    def token(self, code: bytes, customer_id: int | None = None) -> str:
        """Returns the claim token of a code of 10 bytes: 40 URL-safe characters, or 48 with the customer's id."""
        return self.token_all([code], customer_id)[0]

    def token_all(self, codes: Iterable[bytes], customer_id: int | None = None) -> list[str]:
        """Returns the claim token of each code, of one customer if given."""
        key_id, encrypt = self._newest_id, self._tokens[self._newest_id].encrypt
        whose = b"" if customer_id is None else customer_id.to_bytes(_CUSTOMER_BYTES, "big")
        return [
            b2a_base64(key_id + encrypt(code + whose, None), newline=False).translate(_URL_SAFE).decode("ascii")
            for code in codes
        ]

    def code_of_token(self, token: str) -> tuple[bytes, int | None]:
        """Returns the code of a token that `token` made, and its customer. Raises DecryptionFailed for any other text."""
        try:
            sealed = base64.b64decode(token.encode("ascii"), altchars=b"-_", validate=True)
            opened = self._tokens[sealed[:KEY_ID_BYTES]].decrypt(sealed[KEY_ID_BYTES:], None)
        except (ValueError, KeyError, InvalidTag):
            raise DecryptionFailed("not a claim token of this installation") from None
        code, whose = opened[:_CODE_BYTES], opened[_CODE_BYTES:]
        return code, int.from_bytes(whose, "big") if whose else None

    def sign_quote(self, quote: bytes) -> bytes:
        """Returns the signature of `quote`: the key's id and the HMAC-SHA256, SIGNATURE_BYTES in all."""
        return self._newest_id + hmac.digest(self._quotes[self._newest_id], quote, "sha256")

    def has_signed_quote(self, quote: bytes, signature: bytes) -> bool:
        """Returns whether `sign_quote` made this signature of this quote, under any master key of the ring."""
        key = self._quotes.get(signature[:KEY_ID_BYTES])
        if key is None:
            return False
        return hmac.compare_digest(hmac.digest(key, quote, "sha256"), signature[KEY_ID_BYTES:])


def load_vault(settings: Settings) -> Vault:
    """Returns the vault of an installation.

    With an embedded database, the master key is generated once, in the data directory. With an external one it must be set, as all processes
    of the installation need the same key. Raises OperatorError.
    """
    if settings.master_keys:
        return Vault(settings.master_keys)
    if settings.database_url is not None:
        raise OperatorError(
            "LARGESSE_MASTER_KEY must be set with an external database: to the key that it is encrypted under, or for a new "
            "database to the output of `openssl rand -base64 32`"
        )
    return Vault(_keys_of_file(master_key_file(settings)))


def master_key_file(settings: Settings) -> Path:
    """Returns the path where the generated master key is, or will be."""
    return settings.data_dir / "master-key"


def is_key_to_be_generated(settings: Settings) -> bool:
    """Returns whether there is no master key yet, and loading the vault would make one."""
    return not settings.master_keys and settings.database_url is None and not master_key_file(settings).exists()


def _keys_of_file(path: Path) -> tuple[bytes, ...]:
    """Returns the keys in the file at `path`, one on each line, newest first. Makes the file with one key if it does not exist."""
    if not path.exists():
        _generate_master_key(path)
    keys = decode_master_keys(path.read_text("ascii", "replace"), str(path))
    if not keys:
        raise OperatorError(f"{path} contains no master key: bring it back from a backup")
    return keys


def _generate_master_key(path: Path) -> None:
    """Writes a new key to `path`. If several processes start at once, one of them makes the link, and its key counts."""
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


def _derive(master_key: bytes, purpose: bytes, length: int) -> bytes:
    return HKDF(SHA256(), length=length, salt=None, info=b"largesse/" + purpose).derive(master_key)


def _in_hex(lookup: int) -> str:
    return f"{lookup & 0xFFFF_FFFF_FFFF_FFFF:016x}"
