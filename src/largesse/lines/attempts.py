"""Attempts to claim: look up the code, applying the limits and comparing the PIN.

Five wrong PINs in a row pause a code, each time twice as long. A network address has an allowance of wrong answers that refills with
time, which limits what it can try over many codes.

A mailed code pauses for the network that typed five wrong ones in a row, because anybody who knows the address can type some. Twenty from
all networks together pause it for everybody.

An unknown code, a paused code and a wrong PIN run the same statements and the same cryptography, so that neither the answer nor its time
tells them apart.
"""

from __future__ import annotations

import hmac
import os
import unicodedata
from datetime import UTC, datetime, timedelta

import msgspec

from largesse.base.confidential import Confidential
from largesse.base.text import plain_digits
from largesse.base.throttle import Rate, network_of
from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Connection, Row, act_for, scope_of
from largesse.db.scope import LOOKUP, for_customer
from largesse.encryption.vault import DecryptionFailed, Vault
from largesse.lines.codes import CODE_BYTES, CodeError, DrawnCode, SealedCodes, open_code, parse_code
from largesse.lines.states import Progress
from largesse.lines.store import NO_LINE, Line, find_line, progress_from_row

FAILURES_TO_PAUSE = 5
# For a mailed code, of all networks together. That is at most 140 guesses at six digits on the first day, and 20 on each later one.
FAILURES_TO_PAUSE_ALL = 20
FIRST_PAUSE = timedelta(minutes=15)
LONGEST_PAUSE = timedelta(days=1)
_DOUBLINGS = 7  # 15 minutes doubled seven times is more than a day

# Enough for the typing errors of an office with one address, and far too few to guess a PIN.
ADDRESS_ALLOWANCE = 100.0
ADDRESS_REFILL = timedelta(minutes=15)  # the time until an empty allowance is full again
_ADDRESS_RATE = Rate(ADDRESS_ALLOWANCE, ADDRESS_REFILL.total_seconds())

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
_EXAMINE = """
    WITH progress AS MATERIALIZED (
        SELECT state, claimed_at, expires_at, product_id FROM line_states
        WHERE customer_id = $1 AND order_id = $2 AND number = $3)
    SELECT clock_now() AS now, s.state, s.claimed_at, s.expires_at, s.product_id,
           f.failures, f.pauses, f.paused_until, a.allowance, a.last_at
    FROM (VALUES (1)) AS one
    LEFT JOIN progress s ON true
    LEFT JOIN pin_failures f ON f.decoy = $4 AND f.key = $5
    LEFT JOIN claim_addresses a ON a.address = $6
"""
_COUNT_FAILURE = Fragment(
    """
    INSERT INTO pin_failures (decoy, key, failures, pauses, paused_until, last_at)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (decoy, key) DO UPDATE SET
        (failures, pauses, paused_until, last_at)
        = (excluded.failures, excluded.pauses, excluded.paused_until, excluded.last_at)
    """
)
_RECORD_FAILURE = compose(
    """
    WITH hurried AS (SELECT set_config('synchronous_commit', 'off', true)), counted AS (
        {count_failure})
    INSERT INTO claim_addresses AS known (address, allowance, last_at) SELECT $7, $8 - 1, $6 FROM hurried
    ON CONFLICT (address) DO UPDATE SET
        allowance = greatest(0, least($8, known.allowance
            + $9 * greatest(0, extract(epoch FROM $6 - known.last_at))) - 1),
        last_at = greatest(known.last_at, $6)
""",
    count_failure=_COUNT_FAILURE,
)
_FORGET_FAILURES = "DELETE FROM pin_failures WHERE (decoy, key) = ($1, $2)"
# Removes old addresses, and all but the $2 latest.
_PRUNE_ADDRESSES = """
    DELETE FROM claim_addresses WHERE last_at < (SELECT clock_now()) - $1::interval
       OR last_at < (SELECT last_at FROM claim_addresses ORDER BY last_at DESC OFFSET $2 LIMIT 1)
"""
_PRUNE_FAILURES = "DELETE FROM pin_failures WHERE last_at < (SELECT clock_now()) - interval '30 days'"


class Failures(msgspec.Struct, frozen=True):
    """Wrong PINs of a code since the last right one: how many in a row, how many pauses, and until when it is paused."""

    in_a_row: int = 0
    pauses: int = 0
    paused_until: datetime = LONG_AGO

    def is_paused(self, now: datetime) -> bool:
        """Returns whether no PIN is checked now, right or wrong."""
        return now < self.paused_until

    def with_one_more(self, now: datetime, to_pause: int = FAILURES_TO_PAUSE) -> Failures:
        """Returns these after another wrong PIN, which may pause the code."""
        if self.in_a_row + 1 < to_pause:
            return Failures(self.in_a_row + 1, self.pauses, self.paused_until)
        pause = min(FIRST_PAUSE * 2 ** min(self.pauses, _DOUBLINGS), LONGEST_PAUSE)
        return Failures(0, min(self.pauses + 1, _DOUBLINGS), now + pause)


class Allowance(msgspec.Struct, frozen=True):
    """How many wrong answers an address had left at an instant."""

    left: float = ADDRESS_ALLOWANCE
    at: datetime = LONG_AGO

    def now_left(self, now: datetime) -> float:
        """Returns how many wrong answers are left at `now`, with the refill since."""
        return _ADDRESS_RATE.left_after(self.left, (now - self.at).total_seconds())

    def wait(self, now: datetime) -> timedelta:
        """Returns the time until the next attempt is allowed; zero when it is allowed now."""
        return timedelta(seconds=_ADDRESS_RATE.wait_s(self.now_left(now)))


# Unknown codes share this many rows in `pin_failures`.
_DECOYS = 1 << 16
_DECOY_REFERENCE = "decoy"
_MAX_ADDRESSES = 100_000


class Attempt(Confidential, frozen=True):
    """A typed code (None when it cannot be a code) and PIN, from a network address. `customer_id` is the code's customer if a link named it."""

    code: bytes | None
    pin: str
    host: str
    customer_id: int | None = None


class Guesses(Confidential, frozen=True):
    """The wrong answers so far to a secret, such as a PIN or a mailed code, and those of a network address."""

    now: datetime
    failures: Failures
    allowance: Allowance
    key: tuple[bool, int]  # the key of its row in `pin_failures`
    address: int

    @property
    def wait(self) -> timedelta:
        """How long this address has to wait before its next attempt; zero if it need not wait."""
        return self.allowance.wait(self.now)

    @property
    def is_paused(self) -> bool:
        """Whether no answer is checked now, right or wrong."""
        return self.failures.is_paused(self.now)


class CheckedCode(Guesses, frozen=True):
    """The result of checking an attempt. `line` is None for an unknown code."""

    line: Line | None
    progress: Progress
    pin_is_right: bool

    @property
    def is_right(self) -> bool:
        """Whether the code exists, the PIN is right, and the code is not paused."""
        return self.line is not None and self.pin_is_right and not self.is_paused


class CodeChecker:
    """Examines attempts in one environment."""

    def __init__(self, vault: Vault, environment: str) -> None:
        self._vault = vault
        self._environment = environment
        (decoy,) = SealedCodes(vault, [DrawnCode(os.urandom(CODE_BYTES), 0)], _DECOY_REFERENCE)
        self._decoy = decoy.sealed

    async def examine(self, connection: Connection, attempt: Attempt) -> CheckedCode:
        """Reads and locks the rows that decide the attempt. Call it in a transaction that may look up lines.

        The transaction then acts for the line's customer. Without a line, it acts for the customer that the link named, or for none.
        """
        code = os.urandom(CODE_BYTES) if attempt.code is None else attempt.code
        line = await find_line(connection, self._vault, code, self._environment, attempt.customer_id, lock=True)
        if line is not None:
            await act_for(connection, line.scope)
        elif scope_of(connection) == LOOKUP:
            await act_for(connection, for_customer(NO_LINE.customer_id, self._environment))
        decoy = (True, self._vault.codes.lookup(code) % _DECOYS)
        key = decoy if line is None else (False, line.code_lookup)
        address = self._vault.networks.lookup(b"address/" + network_of(attempt.host))
        row = await connection.fetchrow(_EXAMINE, *(NO_LINE if line is None else line.key), *key, address)
        assert row is not None, "an outer join on one row has a row"
        right = self._compare(line, attempt.pin)
        if line is not None and not line.is_sent(row["now"]):
            line, key = None, decoy
        return CheckedCode(*_counted(row), key, address, line, progress_from_row(row), right)

    def _compare(self, line: Line | None, typed: str) -> bool:
        """Returns whether `typed` is the line's PIN. Without a line it decrypts a decoy and returns False."""
        try:
            code = (
                open_code(self._vault, self._decoy, _DECOY_REFERENCE, 1)
                if line is None
                else open_code(self._vault, line.sealed, line.reference, line.number)
            )
        except DecryptionFailed:  # `largesse verify` reports such a line
            return False
        return hmac.compare_digest(code.pin_text.encode(), typed.encode()) and line is not None


class MailedCodeGuesses(Guesses, frozen=True):
    """The wrong answers of a network to a mailed code, and those of all networks."""

    failures_of_all: Failures
    key_of_all: tuple[bool, int]

    @property
    def is_paused(self) -> bool:
        """Whether no answer of this network is checked now, right or wrong."""
        return self.failures.is_paused(self.now) or self.failures_of_all.is_paused(self.now)


_GUESSES = """
    SELECT clock_now() AS now, f.failures, f.pauses, f.paused_until, a.allowance, a.last_at,
           w.failures AS failures_of_all, w.pauses AS pauses_of_all, w.paused_until AS paused_of_all
    FROM (VALUES (1)) AS one
    LEFT JOIN pin_failures f ON f.decoy = $1 AND f.key = $2
    LEFT JOIN pin_failures w ON w.decoy = $3 AND w.key = $4
    LEFT JOIN claim_addresses a ON a.address = $5
"""


async def read_guesses(connection: Connection, vault: Vault, secret: bytes, host: str) -> MailedCodeGuesses:
    """Returns the wrong guesses at a mailed code: from the network of `host`, and from all networks."""
    network, named = network_of(host), b"guessed/" + secret
    key_of_all = (False, vault.networks.lookup(named))
    key = (False, vault.networks.lookup(b"%b/from/%b" % (named, network)))
    address = vault.networks.lookup(b"address/" + network)
    row = await connection.fetchrow(_GUESSES, *key, *key_of_all, address)
    assert row is not None, "an outer join on one row has a row"
    of_all = _failures(row["failures_of_all"], row["pauses_of_all"], row["paused_of_all"])
    return MailedCodeGuesses(*_counted(row), key, address, of_all, key_of_all)


def _failures(in_a_row: int | None, pauses: int, paused_until: datetime) -> Failures:
    return Failures() if in_a_row is None else Failures(in_a_row, pauses, paused_until)


def _counted(row: Row) -> tuple[datetime, Failures, Allowance]:
    failures, allowance = _failures(row["failures"], row["pauses"], row["paused_until"]), Allowance()
    if row["allowance"] is not None:
        allowance = Allowance(row["allowance"], row["last_at"])
    return row["now"], failures, allowance


# Mails that an office with one address may ask for at once. It refills like the allowance of wrong answers.
ASKS_ALLOWANCE = 300.0
_ASKS_RATE = Rate(ASKS_ALLOWANCE, ADDRESS_REFILL.total_seconds())
_ASKS = "SELECT allowance, extract(epoch FROM clock_now() - last_at)::float8 AS passed_s FROM claim_addresses WHERE address = $1 FOR UPDATE"
_COUNT_ASK = """
    INSERT INTO claim_addresses (address, allowance, last_at) VALUES ($1, $2, clock_now())
    ON CONFLICT (address) DO UPDATE SET allowance = excluded.allowance, last_at = excluded.last_at
"""


async def count_ask(connection: Connection, vault: Vault, host: str) -> float:
    """Counts a mail that a network address asks for, and returns 0. If it may not ask for more, returns how many seconds it must wait."""
    address = vault.networks.lookup(b"asks/" + network_of(host))
    row = await connection.fetchrow(_ASKS, address)
    left = ASKS_ALLOWANCE if row is None else _ASKS_RATE.left_after(row["allowance"], row["passed_s"])
    if left < 1:
        return _ASKS_RATE.wait_s(left)
    await connection.execute(_COUNT_ASK, address, left - 1)
    return 0.0


async def record_failure(connection: Connection, examined: Guesses) -> None:
    """Counts a wrong answer against the code, unless it is paused, and against the address."""
    failures = examined.failures if examined.is_paused else examined.failures.with_one_more(examined.now)
    # The commit does not wait for the disk, so guesses slow nobody down. A count that a crash loses helps nobody.
    await connection.execute(
        _RECORD_FAILURE,
        *_as_row(examined.key, failures, examined.now),
        examined.address,
        ADDRESS_ALLOWANCE,
        ADDRESS_ALLOWANCE / ADDRESS_REFILL.total_seconds(),
    )


async def record_wrong_code(connection: Connection, guesses: MailedCodeGuesses) -> None:
    """Counts a wrong mailed code as `record_failure` does, and against all networks together."""
    await record_failure(connection, guesses)
    if not guesses.is_paused:
        of_all = guesses.failures_of_all.with_one_more(guesses.now, FAILURES_TO_PAUSE_ALL)
        await connection.execute(_COUNT_FAILURE, *_as_row(guesses.key_of_all, of_all, guesses.now))


def _as_row(key: tuple[bool, int], failures: Failures, now: datetime) -> tuple[object, ...]:
    return *key, failures.in_a_row, failures.pauses, failures.paused_until, now


async def forget_failures(connection: Connection, examined: Guesses) -> None:
    """Deletes the code's wrong PINs after a right one."""
    if examined.failures != Failures():
        await connection.execute(_FORGET_FAILURES, *examined.key)


async def forget_wrong_codes(connection: Connection, guesses: MailedCodeGuesses) -> None:
    """Deletes the wrong answers of the network and of all after a right mailed code. Another network that is paused stays paused."""
    await forget_failures(connection, guesses)
    if guesses.failures_of_all != Failures():
        await connection.execute(_FORGET_FAILURES, *guesses.key_of_all)


def read_typed_code(text: str) -> bytes | None:
    """Returns the code in a text that a person typed or a program wrote, with any dashes; None if it cannot be a code."""
    try:
        return parse_code("".join(filter(str.isalnum, unicodedata.normalize("NFKC", text[:200]))))
    except CodeError:
        return None


def read_typed_pin(text: str) -> str:
    """Returns the PIN that a person typed, without blanks and signs, and with digits of any script as 0 to 9."""
    folded = unicodedata.normalize("NFKC", text[:64])
    return plain_digits("".join(filter(str.isalnum, folded)))


async def prune_guesses(connection: Connection) -> None:
    """Deletes addresses whose allowance is full again, and wrong PINs of codes without an attempt for a month.

    Both tables stay small. Of the addresses, only the newest are stored.
    """
    await connection.execute(_PRUNE_ADDRESSES, ADDRESS_REFILL, _MAX_ADDRESSES)
    await connection.execute(_PRUNE_FAILURES)
