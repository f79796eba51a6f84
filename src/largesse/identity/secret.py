"""The secrets of API keys: `lgs_live_` or `lgs_test_`, 256 random bits, a checksum.

The prefix tells people and secret scanners what was found, the checksum sorts out typing errors and made-up
keys before any look-up. Only the hash is ever stored.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import zlib

_PREFIXES = {"production": "lgs_live_", "staging": "lgs_test_"}
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_RANDOM_BITS = 256
_RANDOM_LENGTH = 43  # 62**43 > 2**256
_CHECKSUM_LENGTH = 6  # 62**6 > 2**32

_SHAPE = re.compile(f"lgs_(?:live|test)_[0-9A-Za-z]{{{_RANDOM_LENGTH + _CHECKSUM_LENGTH}}}")


def new_secret(environment: str) -> str:
    """A fresh secret for a key of `environment` (production or staging)."""
    body = _PREFIXES[environment] + _base62(secrets.randbits(_RANDOM_BITS), _RANDOM_LENGTH)
    return body + _checksum(body)


def secret_hash(secret: str) -> bytes:
    """The SHA-256 by which the database knows the secret: 32 bytes.

    A plain hash is enough for 256 random bits: there is no dictionary to try.
    """
    return hashlib.sha256(secret.encode()).digest()


def well_formed(secret: str) -> bool:
    """Whether `secret` has the prefix, length, alphabet and checksum of a secret; it may still be unknown."""
    if _SHAPE.fullmatch(secret) is None:
        return False
    return _checksum(secret[:-_CHECKSUM_LENGTH]) == secret[-_CHECKSUM_LENGTH:]


def _checksum(body: str) -> str:
    return _base62(zlib.crc32(body.encode()), _CHECKSUM_LENGTH)


def _base62(number: int, width: int) -> str:
    digits = []
    for _ in range(width):
        number, digit = divmod(number, 62)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))
