"""API keys: looking up who calls.

A key is looked up on every request and cached nowhere, so a deletion holds at once. Look-ups that wait are
answered together by one query, which also tells the catalogue's current version.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from datetime import datetime

import msgspec
import structlog

from largesse.base import clock
from largesse.base.batching import Batcher
from largesse.base.errors import Unauthorized
from largesse.base.throttle import Pacer
from largesse.database.pool import DATABASE_AWAY, Database
from largesse.database.scope import LOOKUP
from largesse.identity.guessing import MALFORMED, UNKNOWN, WrongKeys
from largesse.identity.principal import Principal
from largesse.identity.secret import secret_hash, well_formed

_log = structlog.get_logger(__name__)

_UNKNOWN_KEY = "The API key is not known here."
_LAST_SEEN_EVERY_S = 60.0
_FLUSH_EVERY_S = 2.0
_DOUBTED_LOOKUPS_A_SECOND = 5
_RIGHT_KEYS_KEPT = 10_000


class Caller(msgspec.Struct, frozen=True):
    """Who calls and from which network address; the catalogue's version and the database's clock when that was looked up."""

    principal: Principal
    catalogue_version: int
    now: datetime  # what deliveries go by
    address: str | None = None


class Authenticator:
    """Tells who calls by the secret of an API key of one environment."""

    def __init__(self, database: Database, environment: str, wrong_keys: WrongKeys | None = None) -> None:
        self._database = database
        self._environment = environment
        self._lookups: Batcher[bytes, Caller] = Batcher(
            self._look_up, tasks=1, max_items=500, max_waiting=10_000
        )
        # From an address that sends too many wrong keys, those not known to be right wait here, so that guessing costs the
        # database next to nothing and a right key passes all the same.
        self._doubted: Batcher[bytes, Caller] = Batcher(
            self._look_up_by_turns, tasks=1, max_items=500, max_waiting=500
        )
        self._turns = Pacer(_DOUBTED_LOOKUPS_A_SECOND)
        self._wrong_keys = wrong_keys or WrongKeys()
        self._right: set[bytes] = set()  # hashes that were found once; the key may have been deleted since
        self._seen: dict[int, str | None] = {}  # keys by id, each with the address it was last used from
        self._written_at: dict[int, float] = {}
        self._writer = asyncio.create_task(self._write_last_seen_for_ever())

    async def authenticate(self, secret: str, address: str | None = None) -> Caller:
        """Who calls with `secret` from that network address.

        Raises Unauthorized; TooManyRequests when too many wrong keys came from there.
        """
        hash_ = secret_hash(secret)
        is_right = hash_ in self._right
        if not is_right and not well_formed(secret):
            self._wrong_keys.count(address)
            MALFORMED.inc()
            raise Unauthorized(_UNKNOWN_KEY)
        is_doubted = not is_right and self._wrong_keys.are_too_many(address)
        try:
            found = await (self._doubted if is_doubted else self._lookups).submit(hash_)
        except Unauthorized:
            # Who goes on with a key that was deleted is no guesser, and hears of the deletion each time.
            if not is_right:
                self._wrong_keys.count(address)
            UNKNOWN.inc()
            raise
        if not is_right:
            self._remember(hash_)
        assert found.principal.key_id is not None, "what is looked up is a key"
        self._seen[found.principal.key_id] = address
        return Caller(found.principal, found.catalogue_version, found.now, address)

    def _remember(self, hash_: bytes) -> None:
        if len(self._right) >= _RIGHT_KEYS_KEPT:
            self._right.clear()
        self._right.add(hash_)

    async def close(self) -> None:
        """Ends the look-ups, and writes down once more when which key was last used, where the database allows."""
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
        rows = await self._database.fetch(
            LOOKUP,
            """
            SELECT k.hash, k.key_id, k.environment, k.customer_id, k.customer_name, k.plan, k.funding,
                   k.service_account_id, k.service_account_name, k.active, NULL::int, NULL::text,
                   k.scopes, k.networks, k.limits, v.version, (SELECT clock_now())
            FROM callers($1, $2) k CROSS JOIN catalogue_version v
            """,
            list(set(hashes)),
            self._environment,
        )
        callers = {row[0]: Caller(Principal(*tuple(row)[1:15]), row[15], row[16]) for row in rows}
        return [callers.get(hash_) or Unauthorized(_UNKNOWN_KEY) for hash_ in hashes]

    async def _write_last_seen_for_ever(self) -> None:
        while True:
            await asyncio.sleep(_FLUSH_EVERY_S)
            try:
                await self._write_last_seen()
            except DATABASE_AWAY as error:
                _log.warning("last_seen_not_written", error=type(error).__name__)

    async def _write_last_seen(self) -> None:
        """Notes when keys were last seen and from where, at most once a minute each, off the request."""
        now = clock.passed_s()
        self._written_at = {k: at for k, at in self._written_at.items() if now - at < _LAST_SEEN_EVERY_S}
        due = {key: self._seen[key] for key in sorted(self._seen.keys() - self._written_at.keys())}
        self._seen.clear()
        if due:
            await self._database.execute(
                LOOKUP,
                "SELECT note_keys_seen($1, $2)",
                list(due),
                list(due.values()),
            )
            self._written_at.update(dict.fromkeys(due, now))
