"""Claiming: a code and its PIN give a gift to its recipient, once, in one transaction with the line locked."""

import asyncio
from datetime import datetime
from enum import Enum, auto
from typing import Protocol

import msgspec

from largesse.base.errors import NotFound
from largesse.base.throttle import Pacer, Waits, network_of
from largesse.db.pool import Connection, Database, act_for, commit_as_one
from largesse.db.scope import LOOKUP, for_customer
from largesse.db.statements import read_now
from largesse.encryption.vault import DecryptionFailed, Vault
from largesse.jobs.outbox import withdraw_reminders
from largesse.lines.attempts import Attempt, CheckedCode, CodeChecker, forget_failures, record_failure
from largesse.lines.states import LineKey, Progress, State, expiry, lock_issued, record_claim, record_opened
from largesse.lines.store import (
    Deadline,
    Line,
    find_line,
    find_recipient_lines,
    have_stopped,
    read_deadline,
    read_progress,
    stop_reminders,
)

# How many requests of recipients one process serves at once. The API shares the connection pool, and many recipients must not use it up.
_CHANGES_AT_ONCE = 4
_LOOKS_AT_ONCE = 3
_REMEMBERED_ADDRESSES = 10_000
# The most refusals of a process in a second. A guess that is checked costs about ten times as much as one that is only slowed.
_REFUSED_PER_S = 200.0
_SLOWED_PER_S = 500.0

_LEADS_NOWHERE = "This link leads to no gift."


class Outcome(Enum):
    """The outcome of an attempt to claim."""

    CLAIMED = auto()
    """The gift is this recipient's now."""
    CLAIMED_BEFORE = auto()
    """Right code and PIN, of a gift claimed earlier."""
    WITHDRAWN = auto()
    """Right code and PIN, but the customer cancelled the line."""
    REFUSED = auto()
    """An unknown code, a wrong PIN, or a paused code: the answer does not say which."""
    SLOWED = auto()
    """Too many wrong answers to this network address."""


class Claim(msgspec.Struct, frozen=True):
    """A decided attempt to claim. `line` and `at`, the time, are set when code and PIN were right; `wait_s` when the address must wait."""

    outcome: Outcome
    line: LineKey | None = None
    at: datetime | None = None
    wait_s: float = 0.0


class RecipientSlots:
    """Limits how many requests of recipients a process serves at once: requests that change something, and requests that only read."""

    def __init__(self) -> None:
        self.changes = asyncio.Semaphore(_CHANGES_AT_ONCE)
        self.looks = asyncio.Semaphore(_LOOKS_AT_ONCE)


class Fulfiller(Protocol):
    """Fulfils a claimed gift when there is nothing to choose."""

    async def settle(self, connection: Connection, line: Line, product_id: int, at: datetime) -> bool:
        """Settles the product of the claimed line in the claim's transaction. Returns False if it has to wait for stock."""
        ...

    async def serve(self, line: Line, product_id: int) -> None:
        """Assigns new stock to the customer's lines that wait, after the commit."""
        ...


class Claiming:
    """Claiming in one environment, and the steps before it: following a link and opening a page."""

    def __init__(
        self,
        database: Database,
        vault: Vault,
        environment: str,
        fulfiller: Fulfiller,
        *,
        default_expiry_days: int,
        slots: RecipientSlots,
    ) -> None:
        self._database = database
        self._vault = vault
        self._environment = environment
        self._fulfiller = fulfiller
        self._default_expiry_days = default_expiry_days
        self._slots = slots
        self._examiner = CodeChecker(vault, environment)
        self._pacers = {Outcome.REFUSED: Pacer(_REFUSED_PER_S), Outcome.SLOWED: Pacer(_SLOWED_PER_S)}
        self._slowed: Waits[bytes] = Waits(remembered=_REMEMBERED_ADDRESSES)

    async def find(self, token: str) -> tuple[Line, Progress]:
        """Returns the line of a claim link and its progress. Changes nothing. Raises NotFound for a link without a gift."""
        try:
            code, customer_id = self._vault.code_of_token(token)
        except DecryptionFailed:
            raise NotFound(_LEADS_NOWHERE) from None
        async with self._slots.looks, self._database.transaction(LOOKUP) as connection:
            line = await find_line(connection, self._vault, code, self._environment, customer_id)
            if line is None or not line.is_sent(await read_now(connection)):
                raise NotFound(_LEADS_NOWHERE)
            await act_for(connection, line.scope)
            return line, await read_progress(connection, line.key)

    async def deadline(self, key: LineKey) -> Deadline:
        """Returns until when a line can be claimed."""
        scope = for_customer(key.customer_id, self._environment)
        async with self._slots.looks, self._database.connection(scope) as connection:
            return await read_deadline(connection, key)

    async def stop_reminders(self, token: str) -> Line:
        """Ends the reminders of the recipient of a claim link; returns its line. Raises NotFound for a link without a gift."""
        line, _ = await self.find(token)
        async with self._slots.changes, self._database.transaction(line.scope) as connection:
            await commit_as_one(connection)
            key = (line.customer_id, line.order_id)
            numbers = await find_recipient_lines(connection, *key, line.number)
            await lock_issued(connection, *key, numbers)  # locked, so that no reminder is made meanwhile
            await stop_reminders(connection, *key, numbers)
            await withdraw_reminders(connection, key, numbers)
        return line

    async def gets_reminders(self, line: Line) -> bool:
        """Returns whether the recipient of a line has not ended the reminders."""
        key = (line.customer_id, line.order_id)
        async with self._slots.looks, self._database.connection(line.scope) as connection:
            numbers = await find_recipient_lines(connection, *key, line.number)
            return not await have_stopped(connection, *key, numbers)

    async def open(self, token: str) -> None:
        """Records that a person did something on the page of a claim link. Does nothing for a link without a gift."""
        try:
            line, _ = await self.find(token)
        except NotFound:
            return
        async with self._slots.looks, self._database.transaction(line.scope) as connection:
            await record_opened(connection, line.key)

    async def claim(self, attempt: Attempt, language: str | None) -> Claim:
        """Claims the gift of a code and PIN, once. Limits the rate of refusals."""
        claim = await self._claim(attempt, language)
        if claim.outcome in self._pacers:
            await self._pacers[claim.outcome].turn()
        return claim

    async def _claim(self, attempt: Attempt, language: str | None) -> Claim:
        network = network_of(attempt.host)
        if (slowed := self._slowed_for(network)) is not None:
            return slowed
        async with self._slots.changes:
            if (slowed := self._slowed_for(network)) is not None:
                return slowed
            async with self._database.transaction(LOOKUP) as connection:
                examined = await self._examiner.examine(connection, attempt)
                if examined.wait:
                    return self._slow(network, examined)
                if examined.line is None or not examined.is_right:
                    await record_failure(connection, examined)
                    return Claim(Outcome.REFUSED)
                await commit_as_one(connection)
                await forget_failures(connection, examined)
                outcome, waits_for = await self._take(connection, examined.line, examined, language)
        if waits_for is not None:
            await self._fulfiller.serve(examined.line, waits_for)
        return Claim(outcome, examined.line.key, examined.now)

    async def _take(
        self, connection: Connection, line: Line, examined: CheckedCode, language: str | None
    ) -> tuple[Outcome, int | None]:
        """Claims the locked line after a right PIN. Also returns the product that the line waits for; None if it need not wait."""
        if examined.progress.state is State.CANCELLED:
            return Outcome.WITHDRAWN, None
        if examined.progress.state is not State.ISSUED:
            return Outcome.CLAIMED_BEFORE, None
        expires_at = expiry(examined.now, line.expiry_after_days, self._default_expiry_days)
        await record_claim(connection, line.key, examined.now, expires_at, language)
        if line.product_id is None:
            return Outcome.CLAIMED, None
        served = await self._fulfiller.settle(connection, line, line.product_id, examined.now)
        return Outcome.CLAIMED, None if served else line.product_id

    def _slowed_for(self, network: bytes) -> Claim | None:
        """Returns the answer for an address that must still wait, without a query; None for any other. Then the database decides."""
        wait_s = self._slowed.left_s(network)
        return Claim(Outcome.SLOWED, wait_s=wait_s) if wait_s else None

    def _slow(self, network: bytes, examined: CheckedCode) -> Claim:
        wait_s = examined.wait.total_seconds()
        self._slowed.tell(network, wait_s)
        return Claim(Outcome.SLOWED, wait_s=wait_s)
