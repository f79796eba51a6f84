"""API keys: their secrets, the look-up of callers, and the limit on wrong keys. Also makes callers from people.

A secret is `lgs_live_` or `lgs_test_`, 256 random bits and a checksum. The prefix says what it is to people and secret scanners. The
checksum finds typing errors and invented keys without a look-up. Only the hash is stored.

Nobody can guess 256 bits. But attempts must not cost the database a look-up each, and operators must notice them. So wrong keys are
limited by network address. Right keys from the same address still work.

A key is looked up for every request, so that a deletion takes effect at once. Look-ups that wait share one query, which also returns the
catalogue's current version. Only orders may be prepared for a remembered caller: their transaction checks the key again.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
import secrets
import zlib
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec
import structlog
from prometheus_client import Counter

from largesse.base import clock
from largesse.base.batching import Batcher, Receiver
from largesse.base.errors import TooManyRequests, Unauthorized
from largesse.base.recently_used import RecentlyUsed
from largesse.base.throttle import Pacer, Rate, Throttle, network_of
from largesse.customers import access
from largesse.customers.access import KeyStatus
from largesse.customers.principal import Principal, person_principal
from largesse.db.pool import DATABASE_AWAY, DATABASE_FAILED, Connection, Database
from largesse.db.scope import LOOKUP

_MARK = "lgs_"
KEY_PREFIXES = {"production": f"{_MARK}live_", "staging": f"{_MARK}test_"}
# A secret, or a part of one, in a text that might get into a log.
KEY_IN_TEXT = re.compile(rf"{_MARK}\w*", re.IGNORECASE)
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_RANDOM_BITS = 256
_RANDOM_LENGTH = 43  # 62**43 > 2**256
_CHECKSUM_LENGTH = 6  # 62**6 > 2**32

_SHAPE = re.compile(f"(?:{'|'.join(KEY_PREFIXES.values())})[0-9A-Za-z]{{{_RANDOM_LENGTH + _CHECKSUM_LENGTH}}}")


def new_secret(environment: str) -> str:
    """Returns a new secret for a key of `environment` (production or staging)."""
    body = KEY_PREFIXES[environment] + _base62(secrets.randbits(_RANDOM_BITS), _RANDOM_LENGTH)
    return body + _checksum(body)


def secret_hash(secret: str) -> bytes:
    """Returns the SHA-256 of the secret, 32 bytes, which the database stores.

    A plain hash is enough for 256 random bits: there is no dictionary to try.
    """
    return hashlib.sha256(secret.encode()).digest()


def well_formed(secret: str) -> bool:
    """Returns whether `secret` has the prefix, length, alphabet and checksum of a secret. It may still be unknown."""
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


# Wrong keys allowed from one address: an IPv4 address, or the /64 of an IPv6 one. They may come all at once.
WRONG_KEYS_A_MINUTE = 200
MOST_WRONG = Rate(WRONG_KEYS_A_MINUTE, 60.0)
_LINES_OF_AN_ADDRESS = Rate(1, 60.0)
_LINES = Rate(10, 60.0)

_FAILED = Counter("largesse_failed_authentications", "Requests with a wrong API key, by why.", ["reason"])
MALFORMED = _FAILED.labels("malformed")
UNKNOWN = _FAILED.labels("unknown")
_LIMITED = _FAILED.labels("limited")

_log = structlog.get_logger(__name__)


class WrongKeys:
    """Counts the wrong keys of each network address."""

    def __init__(self, rate: Rate = MOST_WRONG, *, now_s: Callable[[], float] = clock.passed_s) -> None:
        self._most = rate.most
        self._left: Throttle[bytes] = Throttle(rate, now_s=now_s)
        self._lines_of: Throttle[bytes] = Throttle(_LINES_OF_AN_ADDRESS, now_s=now_s)
        self._lines: Throttle[None] = Throttle(_LINES, now_s=now_s)

    def are_too_many(self, address: str | None) -> bool:
        """Returns whether the next wrong key from that address is above the limit."""
        return bool(self._left) and self._left.wait_s(network_of(address or "")) > 0

    def count(self, address: str | None) -> None:
        """Counts a wrong key. Above the limit, raises TooManyRequests, and logs some of these refusals."""
        network = network_of(address or "")
        wait_s = self._left.take(network)
        if not wait_s:
            return
        _LIMITED.inc()
        if not self._lines_of.take(network) and not self._lines.take(None):
            _log.warning("wrong_keys_limited", address=address, a_minute=self._most)
        raise TooManyRequests(
            f"The API key is not known here, and {self._most:g} wrong ones came from this address within a minute.",
            retry_after_s=wait_s,
        )


_UNKNOWN_KEY = "The API key is not known here."
_MALFORMED_KEY = "The API key is not known here: it is incomplete or mistyped."
_OF_OTHER = {
    "production": "This is a key of staging: it works only at staging's address.",
    "staging": "This is a key of production: it works only at production's address.",
}
_LAST_SEEN_EVERY_S = 60.0
_FLUSH_EVERY_S = 2.0
_DOUBTED_LOOKUPS_A_SECOND = 5
_RIGHT_KEYS_KEPT = 10_000
_CALLERS_REMEMBERED = 10_000
_REMEMBERED_S = 60.0


# The status of a key and the catalogue's version. A transaction for a remembered caller checks both under its locks (StaleCaller).
Remembered = tuple[KeyStatus, int]


class _Found(NamedTuple):
    """A caller, and when it was looked up."""

    caller: Caller
    status: KeyStatus
    at_s: float


class Caller(msgspec.Struct, frozen=True):
    """The caller of a request, with its network address, and with the catalogue's versions and the database's time at the look-up."""

    principal: Principal
    catalogue_version: int
    now: datetime  # the database's time at the look-up
    address: str | None = None
    collections_version: int = 0  # the version of the customer's own collections; 0: it never had any
    remembered: Remembered | None = None  # what must not have changed, if the caller was not looked up for this request
    follow_up: str | None = None  # the customer's settings for unclaimed orders, as JSON


class Authenticator:
    """Finds callers by the API keys of one environment."""

    def __init__(self, database: Database, environment: str, wrong_keys: WrongKeys | None = None) -> None:
        self._database = database
        self._environment = environment
        self._lookups: Batcher[bytes, Caller] = Batcher(self._look_up, tasks=1, max_items=500, max_waiting=10_000)
        # Looks up, slowly, keys that were not found before and come from an address with too many wrong keys.
        # So guessing costs the database almost nothing, and a right key still works.
        self._doubted: Batcher[bytes, Caller] = Batcher(self._look_up_by_turns, tasks=1, max_items=500, max_waiting=500)
        self._turns = Pacer(_DOUBTED_LOOKUPS_A_SECOND)
        self._wrong_keys = wrong_keys or WrongKeys()
        self._found: RecentlyUsed[bytes, _Found] = RecentlyUsed(max_entries=_CALLERS_REMEMBERED)
        self._catalogue_version = 0  # the newest version that was looked up
        self._right: set[bytes] = set()  # hashes that were found before; the key may be deleted by now
        self._seen: dict[int, str | None] = {}  # keys by id, each with the address it was last used from
        self._written_at: dict[int, float] = {}
        self._writer = asyncio.create_task(self._write_last_seen_for_ever())

    async def authenticate(self, secret: str, address: str | None = None) -> Caller:
        """Returns the caller with `secret` from that network address.

        Raises Unauthorized, or TooManyRequests if too many wrong keys came from there.
        """
        hash_ = secret_hash(secret)
        if hash_ not in self._right and not self.may_know(secret):
            self._wrong_keys.count(address)
            is_of_other = well_formed(secret)
            (UNKNOWN if is_of_other else MALFORMED).inc()
            raise Unauthorized(_OF_OTHER[self._environment] if is_of_other else _MALFORMED_KEY)
        return await self.find(hash_, address)

    def may_know(self, secret: str) -> bool:
        """Returns whether `secret` is well formed, as a key of this environment."""
        return secret.startswith(KEY_PREFIXES[self._environment]) and well_formed(secret)

    async def find(self, hash_: bytes, address: str | None = None) -> Caller:
        """Returns the caller whose well-formed secret has that hash. Raises what `authenticate` does."""
        is_right = hash_ in self._right
        is_doubted = not is_right and self._wrong_keys.are_too_many(address)
        try:
            found = await (self._doubted if is_doubted else self._lookups).submit(hash_)
        except Unauthorized:
            # A caller with a deleted key is not guessing, so it is not counted.
            if not is_right:
                self._wrong_keys.count(address)
            UNKNOWN.inc()
            raise
        if not is_right:
            self._remember(hash_)
        return self.seen(found, address)

    def find_for(self, receiver: Receiver[Caller], hash_: bytes) -> bool:
        """Passes the caller whose secret has that hash, or an error, to `receiver`. Returns False if only `find` can look it up.

        The receiver must call `seen`. Raises Unavailable if too many look-ups wait.
        """
        if hash_ not in self._right:
            return False
        self._lookups.submit_for(receiver, hash_)
        return True

    def seen(self, found: Caller, address: str | None) -> Caller:
        """Records that the caller's key was used from that address, and returns the caller with the address."""
        assert found.principal.key_id is not None, "what is looked up is a key"
        self._seen[found.principal.key_id] = address
        versions = found.catalogue_version, found.now, address, found.collections_version
        return Caller(found.principal, *versions, None, found.follow_up)

    def recall(self, hash_: bytes, address: str | None = None) -> Caller | None:
        """Returns the caller of that hash if it was looked up within the last minute, otherwise None.

        The key may have been deleted or changed since. Only a transaction that checks `remembered` may act for this caller.
        """
        found = self._found.get(hash_)
        if found is None:
            return None
        age_s, caller, version = clock.passed_s() - found.at_s, found.caller, self._catalogue_version
        if age_s > _REMEMBERED_S:
            return None
        assert caller.principal.key_id is not None, "what is looked up is a key"
        self._seen[caller.principal.key_id] = address
        now = caller.now + timedelta(seconds=age_s)
        remembered = found.status, version
        return Caller(caller.principal, version, now, address, caller.collections_version, remembered, caller.follow_up)

    def _remember(self, hash_: bytes) -> None:
        if len(self._right) >= _RIGHT_KEYS_KEPT:
            self._right.clear()
        self._right.add(hash_)

    async def close(self) -> None:
        """Ends the look-ups. Writes when keys were last used, unless the database is away."""
        await asyncio.gather(self._lookups.close(), self._doubted.close())
        self._writer.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._writer
        with contextlib.suppress(*DATABASE_AWAY):
            await self._write_last_seen()

    async def _look_up_by_turns(self, hashes: list[bytes]) -> Sequence[Caller | Exception]:
        await self._turns.turn()
        return await self._look_up(hashes)

    async def _look_up(self, hashes: list[bytes]) -> Sequence[Caller | Exception]:
        rows = await self._database.fetch(LOOKUP, access.FIND_KEYS, list(set(hashes)), self._environment)
        callers = {
            row[0]: Caller(Principal(*tuple(row)[1:15]), row[15], row[16], None, row[17], None, row[18]) for row in rows
        }
        at_s = clock.passed_s()
        for hash_ in set(hashes).difference(callers):
            self._found.drop(hash_)
        for hash_, caller in callers.items():
            self._found.put(hash_, _Found(caller, KeyStatus.of(caller.principal), at_s))
            self._catalogue_version = max(self._catalogue_version, caller.catalogue_version)
        return [callers.get(hash_) or Unauthorized(_UNKNOWN_KEY) for hash_ in hashes]

    async def _write_last_seen_for_ever(self) -> None:
        while True:
            await asyncio.sleep(_FLUSH_EVERY_S)
            try:
                await self._write_last_seen()
            except DATABASE_FAILED as error:  # this includes a deadlock with another process
                _log.warning("last_seen_not_written", error=type(error).__name__)

    async def _write_last_seen(self) -> None:
        """Writes when keys were last used and from where, at most once a minute for each key."""
        now = clock.passed_s()
        self._written_at = {k: at for k, at in self._written_at.items() if now - at < _LAST_SEEN_EVERY_S}
        due = {key: self._seen[key] for key in sorted(self._seen.keys() - self._written_at.keys())}
        self._seen.clear()
        if due:
            await self._database.execute(LOOKUP, access.NOTE_KEYS_SEEN, list(due), list(due.values()))
            self._written_at.update(dict.fromkeys(due, now))


async def person_calls(
    connection: Connection,
    *,
    user_id: int,
    customer_id: int,
    environment: str,
    session_id: int | None,
    address: str | None = None,
) -> Caller:
    """Returns a person of a customer as a caller in an environment, with their session and network address.

    Without a session the person can only send what others approved.

    Raises Unauthorized if they are not, or no longer, a person of the customer.
    """
    row = await connection.fetchrow(access.FIND_USER, user_id, customer_id)
    if row is None:
        raise Unauthorized("This person may no longer sign in for this customer.")
    principal = person_principal(environment, row[0], row[1], row[2], row[3], row[4], row[5], session_id)
    return Caller(principal, row[6], row[7], address, row[8], None, row[9])


async def viewer_calls(connection: Connection, principal: Principal) -> Caller:
    """Returns the caller for a member of staff who sees the pages of the principal's customer. Raises Unauthorized for an unknown customer."""
    row = await connection.fetchrow(access.FIND_VIEWER, principal.customer_id)
    if row is None:
        raise Unauthorized("There is no such customer.")
    return Caller(principal, row[0], row[1], None, row[2], None, row[3])
