"""What a recipient can do with a gift: claim it, choose, give an address. Each is one transaction with the line locked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto

from largesse.base.throttle import Pacer, network_of
from largesse.base.vault import SealBroken, Vault
from largesse.catalogue.products import Product
from largesse.database import Connection, Database
from largesse.fulfilment import (
    Handed,
    Issuer,
    Shipped,
    read_address,
    read_handed,
    read_shipment,
    request_shipment,
    seal_email,
    serve_waiting,
    settle_product,
)
from largesse.fulfilment.choices import read_choices, read_product
from largesse.lines.attempts import Attempt, Examined, Examiner, forget_failures, record_failure
from largesse.lines.lines import Line, find_line, read_line, read_progress
from largesse.lines.states import (
    LineKey,
    Progress,
    State,
    expiry,
    record_claim,
    record_language,
    record_move,
    record_opened,
)

# Claims and looks under way in one process. The pool is shared with the API: a flood of them must not use it up.
_AT_ONCE = 4
_LOOKS_AT_ONCE = 3
_REMEMBERED_ADDRESSES = 10_000
# Refusals a process gives a second: an evaluated guess costs about ten times what a slowed one does.
_REFUSED_PER_S = 200.0
_SLOWED_PER_S = 500.0


class Outcome(Enum):
    """What came of an attempt to claim."""

    CLAIMED = auto()
    """The gift is this recipient's now."""
    CLAIMED_BEFORE = auto()
    """Right code and PIN, of a gift claimed earlier."""
    WITHDRAWN = auto()
    """Right code and PIN, but the customer cancelled the line."""
    REFUSED = auto()
    """An unknown code, a wrong PIN, or a paused code: nobody learns which."""
    SLOWED = auto()
    """Too many wrong answers to this network address."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of an attempt.

    `line` and `at`, the instant, are set where code and PIN were right; `wait_s` where the address must wait.
    """

    outcome: Outcome
    line: LineKey | None = None
    at: datetime | None = None
    wait_s: float = 0.0


class Step(Enum):
    """What a claimed gift's page shows."""

    CHOOSE = auto()
    ADDRESS = auto()
    WAIT = auto()  # for a voucher number
    VOUCHER = auto()
    PARCEL = auto()
    EXPIRED = auto()


@dataclass(frozen=True, slots=True, repr=False)
class Gift:
    """A claimed gift with everything its page shows. It has no repr: it holds a voucher and an address."""

    line: Line
    step: Step
    progress: Progress
    product: Product | None
    choices: list[Product]
    voucher: Handed | None
    shipped: Shipped | None
    address: Mapping[str, str] | None
    has_email: bool


class NotPossible(Exception):
    """The gift is not in a state to do that any more: its page tells how it stands."""


class Claims:
    """The recipient's side of one environment."""

    def __init__(
        self, database: Database, vault: Vault, environment: str, issuer: Issuer, default_expiry_days: int
    ) -> None:
        self._database = database
        self._vault = vault
        self._environment = environment
        self._issuer = issuer
        self._default_expiry_days = default_expiry_days
        self._examiner = Examiner(vault, environment)
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._looks = asyncio.Semaphore(_LOOKS_AT_ONCE)
        self._pacers = {Outcome.REFUSED: Pacer(_REFUSED_PER_S), Outcome.SLOWED: Pacer(_SLOWED_PER_S)}
        self._slowed: dict[bytes, float] = {}  # network address to when it may try again

    async def find(self, token: str) -> tuple[Line, Progress] | None:
        """The line a claim link leads to, and how far it has come; None for a link that leads nowhere. Changes nothing."""
        try:
            code = self._vault.code_of_token(token)
        except SealBroken:
            return None
        async with self._looks, self._database.connection() as connection:
            line = await find_line(connection, self._vault.lookups(code), self._environment)
            if line is None or not line.is_sent(await _now(connection)):
                return None
            return line, await read_progress(connection, line.key)

    async def open(self, token: str) -> None:
        """Records that a person did something on the page of a claim link."""
        found = await self.find(token)
        if found is not None:
            async with self._looks, self._database.connection() as connection:
                await record_opened(connection, found[0].key)

    async def claim(self, attempt: Attempt, language: str | None) -> Answer:
        """Claims the gift of a code and PIN, once. Refusals are paced."""
        answer = await self._claim(attempt, language)
        if answer.outcome in self._pacers:
            await self._pacers[answer.outcome].turn()
        return answer

    async def _claim(self, attempt: Attempt, language: str | None) -> Answer:
        network = network_of(attempt.host)
        if (slowed := self._slowed_for(network)) is not None:
            return slowed
        async with self._turns:
            if (slowed := self._slowed_for(network)) is not None:
                return slowed
            async with self._database.transaction() as connection:
                examined = await self._examiner.examine(connection, attempt)
                if examined.wait:
                    return self._slow(network, examined)
                if examined.line is None or not examined.is_right:
                    await record_failure(connection, examined)
                    return Answer(Outcome.REFUSED)
                await forget_failures(connection, examined)
                outcome, waits_for = await self._take(connection, examined.line, examined, language)
        if waits_for is not None:
            await serve_waiting(self._database, self._vault, waits_for, examined.line.value_minor)
        return Answer(outcome, examined.line.key, examined.now)

    async def read(self, key: LineKey) -> Gift | None:
        """The claimed gift of a line; None when there is none in this environment."""
        async with self._looks, self._database.connection() as connection:
            line = await read_line(connection, key, self._environment)
            if line is None:
                return None
            return await self._read(connection, line)

    async def choose(self, key: LineKey, product_id: int, language: str | None) -> None:
        """Settles which product of the collection it is, once. Raises NotPossible."""
        async with self._changing(key, Step.CHOOSE, language) as (connection, gift, at):
            product = next((product for product in gift.choices if product.id == product_id), None)
            if product is None:
                raise NotPossible
            has_voucher = await settle_product(
                connection, self._issuer, gift.line, product.id, at, is_digital=product.is_digital
            )
        if not has_voucher:
            await serve_waiting(self._database, self._vault, product_id, gift.line.value_minor)

    async def deliver_to(
        self, key: LineKey, address: Mapping[str, str], email: str | None, language: str | None
    ) -> None:
        """Has the parcel sent to `address`, once; `email` is told when it leaves. Raises NotPossible."""
        async with self._changing(key, Step.ADDRESS, language) as (connection, gift, at):
            assert gift.product is not None, "an address is asked for once the product is settled"
            await request_shipment(connection, self._vault, gift.line, gift.product.id, address, at)
            if email is not None:
                await self._write_email(connection, key, email)

    async def tell(self, key: LineKey, email: str, language: str | None) -> None:
        """Has `email` told when the voucher is there. Raises NotPossible."""
        async with self._changing(key, Step.WAIT, language) as (connection, _, _):
            await self._write_email(connection, key, email)

    async def now(self) -> datetime:
        """The instant the database goes by."""
        async with self._looks, self._database.connection() as connection:
            return await _now(connection)

    async def _take(
        self, connection: Connection, line: Line, examined: Examined, language: str | None
    ) -> tuple[Outcome, int | None]:
        """Claims the locked line for whoever has its PIN; also the product it has to wait for, if any."""
        if examined.progress.state is State.CANCELLED:
            return Outcome.WITHDRAWN, None
        if examined.progress.state is not State.ISSUED:
            return Outcome.CLAIMED_BEFORE, None
        expires_at = expiry(examined.now, line.expiry_after_days, self._default_expiry_days)
        await record_claim(connection, line.key, examined.now, expires_at, language)
        if line.product_id is None:
            return Outcome.CLAIMED, None
        product = await read_product(connection, line.product_id)
        served = await settle_product(
            connection, self._issuer, line, product.id, examined.now, is_digital=product.is_digital
        )
        return Outcome.CLAIMED, None if served else product.id

    @asynccontextmanager
    async def _changing(
        self, key: LineKey, step: Step, language: str | None
    ) -> AsyncIterator[tuple[Connection, Gift, datetime]]:
        """A transaction with the line locked and its gift at `step`; NotPossible when it is elsewhere.

        The recipient is written to in `language` from then on, if they chose one.
        """
        async with self._turns, self._database.transaction() as connection:
            line = await read_line(connection, key, self._environment, lock=True)
            if line is None:
                raise NotPossible
            gift = await self._read(connection, line)
            if gift is None:
                raise NotPossible
            at = await _now(connection)
            if gift.step is Step.EXPIRED and gift.progress.state is not State.EXPIRED:
                await record_move(connection, key, State.EXPIRED, at)
            if gift.step is step:
                if language is not None:
                    await record_language(connection, key, language)
                yield connection, gift, at
        if gift.step is not step:
            raise NotPossible

    async def _read(self, connection: Connection, line: Line) -> Gift | None:
        progress = await read_progress(connection, line.key)
        if progress.state in {State.ISSUED, State.CANCELLED}:
            return None
        product = await read_product(connection, progress.product_id) if progress.product_id else None
        voucher = await read_handed(connection, self._vault, line.key)
        shipped = await read_shipment(connection, line.key)
        step = step_of(progress, product, await _now(connection), has_parcel=shipped is not None)
        return Gift(
            line=line,
            step=step,
            progress=progress,
            product=product,
            choices=await read_choices(connection, line) if step is Step.CHOOSE else [],
            voucher=voucher,
            shipped=shipped,
            address=await read_address(connection, self._vault, line.key) if shipped else None,
            has_email=line.recipient_email is not None or await _left_email(connection, line.key),
        )

    async def _write_email(self, connection: Connection, key: LineKey, email: str) -> None:
        await connection.execute(
            "UPDATE line_states SET sealed_email = $3 WHERE order_id = $1 AND number = $2",
            *key,
            seal_email(self._vault, email, key),
        )

    def _slowed_for(self, network: bytes) -> Answer | None:
        """The answer to an address known to have to wait, at no cost; the database decides again after that."""
        until = self._slowed.get(network)
        if until is None:
            return None
        wait_s = until - time.monotonic()
        if wait_s > 0:
            return Answer(Outcome.SLOWED, wait_s=wait_s)
        del self._slowed[network]
        return None

    def _slow(self, network: bytes, examined: Examined) -> Answer:
        wait_s = examined.wait.total_seconds()
        if len(self._slowed) >= _REMEMBERED_ADDRESSES:
            self._slowed.clear()
        self._slowed[network] = time.monotonic() + wait_s
        return Answer(Outcome.SLOWED, wait_s=wait_s)


def step_of(progress: Progress, product: Product | None, now: datetime, *, has_parcel: bool) -> Step:
    """Where a claimed gift stands. Only a recipient who still has something to do can be late."""
    if progress.state is State.FULFILLED and product is not None:
        return Step.VOUCHER if product.is_digital else Step.PARCEL
    if progress.state is State.CHOSEN and product is not None and (product.is_digital or has_parcel):
        return Step.WAIT if product.is_digital else Step.PARCEL
    is_late = progress.expires_at is not None and progress.expires_at <= now
    if progress.state is State.EXPIRED or is_late:
        return Step.EXPIRED
    return Step.ADDRESS if progress.state is State.CHOSEN else Step.CHOOSE


async def _now(connection: Connection) -> datetime:
    now: datetime = await connection.fetchval("SELECT clock_now()")
    return now


async def _left_email(connection: Connection, key: LineKey) -> bool:
    left: bool | None = await connection.fetchval(
        "SELECT sealed_email IS NOT NULL FROM line_states WHERE order_id = $1 AND number = $2", *key
    )
    return bool(left)
