"""Passwords: argon2id (RFC 9106), computed in threads, a few at a time.

Neither the answer nor the time it takes shows whether an address is known or has a password: without a stored hash, the password is
compared with a hash that no password has.
"""

import asyncio
import base64

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from largesse.base.email import email_key
from largesse.base.errors import Unavailable

SHORTEST = 10
LONGEST = 200
_AT_ONCE = 2  # hashes at once; each takes 19 MiB and some 30 ms
_MOST_WAITING = 100
# The least that OWASP recommends. With more, requests with guessed passwords could use up the machine.
_PASSES = 2
_MEMORY_KIB = 19 * 1024
# Passwords that attackers try first: common ones from published lists that are long enough, and variants of our name.
_COMMON = frozenset((
    "1234567890", "12345678910", "123456789a", "password12", "password123", "password1234", "passw0rd123", "qwertyuiop",
    "qwerty12345", "1q2w3e4r5t", "1qaz2wsx3edc", "q1w2e3r4t5", "letmein123", "iloveyou12", "welcome123", "welcome1234",
    "administrator", "changeme123", "largesse123",
))  # fmt: skip


class Passwords:
    """Hashes and compares passwords for a process."""

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or _hasher()
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._waiting = 0
        self._nobodys = hash_of_nobody(self._hasher)

    async def hash(self, password: str) -> str:
        """Returns the hash of a password to store."""
        return await self._beside(password, None)

    async def is_right(self, stored: str | None, password: str) -> bool:
        """Returns whether `stored` is the hash of that password. Without a hash it takes as long, and returns False."""
        return bool(await self._beside(password[: LONGEST + 1], stored or self._nobodys)) and stored is not None

    def is_outdated(self, stored: str) -> bool:
        """Returns whether a hash was made with weaker parameters than are used now."""
        return self._hasher.check_needs_rehash(stored)

    async def _beside(self, password: str, stored: str | None) -> str:
        """Returns the hash of a password. With `stored`, returns `stored` if it matches, otherwise an empty text.

        Works in a thread. Raises Unavailable if too many wait.
        """
        if self._waiting >= _MOST_WAITING:
            raise Unavailable("Too many people are signing in at the moment.", retry_after_s=2)
        self._waiting += 1
        try:
            async with self._turns:
                return await asyncio.to_thread(self._compute, password, stored)
        finally:
            self._waiting -= 1

    def _compute(self, password: str, stored: str | None) -> str:
        if stored is None:
            return self._hasher.hash(password)
        try:
            self._hasher.verify(stored, password)
        except (VerificationError, InvalidHashError):
            return ""
        return stored


def _hasher() -> PasswordHasher:
    return PasswordHasher(time_cost=_PASSES, memory_cost=_MEMORY_KIB, parallelism=1)


def hash_of_nobody(hasher: PasswordHasher | None = None) -> str:
    """Returns a hash that no password has. Comparing with it takes as long as with any other hash. Making it takes no time."""
    hasher = hasher or _hasher()
    salt, digest = (base64.b64encode(bytes(size)).decode().rstrip("=") for size in (hasher.salt_len, hasher.hash_len))
    costs = f"m={hasher.memory_cost},t={hasher.time_cost},p={hasher.parallelism}"
    return f"$argon2id$v=19${costs}${salt}${digest}"


def weakness(password: str, email: str) -> str | None:
    """Returns why a password is refused: `short`, `long` or `common`; None if it is allowed (NIST SP 800-63B, 3.1.1.2)."""
    if len(password) < SHORTEST:
        return "short"
    if len(password) > LONGEST:
        return "long"
    plain = password.lower()
    local = email_key(email).partition("@")[0]
    is_repeated = len(set(plain)) < 4
    return "common" if plain in _COMMON or plain == email_key(email) or plain == local or is_repeated else None
