"""Bank files that members of staff import on a page. The outcome of each line is read from the database each time.

A line is stored with its amount, its currency and the references in it, which find its top-up; not with who paid.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from enum import StrEnum

import msgspec

from largesse.base.errors import FileRefused, StateConflict, existing
from largesse.customers.actor import Actor, Transaction
from largesse.customers.staff_roles import StaffRight
from largesse.db.pool import Connection, Row
from largesse.ledger.bank_file import NO_PAYMENT, NOT_COME, BankLine, Columns, read_bank_file
from largesse.ledger.payments import Match, match_payments
from largesse.ledger.top_ups import TopUp, confirm_top_up

MOST_LINES = 500
MOST_BYTES = 1024 * 1024
_LONGEST_NAME = 200
# Reasons that need no decision, and reasons for which a top-up may still be credited with the amount that was paid.
_IGNORED = frozenset({"no_reference", "no_payment"})
_CREDITABLE = frozenset({"other_amount", "expired", "mistyped", "reversed"})

_INSERT_FILE = """
    INSERT INTO bank_files (digest, name, decimals, read_by, read_at) VALUES ($1, $2, $3, $4, clock_now())
    ON CONFLICT (digest) DO NOTHING RETURNING id
"""
_INSERT_LINE = "INSERT INTO bank_lines (file_id, line, mark, amount, currency, named) VALUES ($1, $2, $3, $4, $5, $6)"
_ID_OF = "SELECT id FROM bank_files WHERE digest = $1"
_SELECT_FILE = "SELECT id, name, decimals, read_at FROM bank_files WHERE id = $1"
_NEWEST = (
    "SELECT id, name, decimals, read_at FROM bank_files WHERE ($1::int IS NULL OR id < $1) ORDER BY id DESC LIMIT $2"
)
_LINES = """
    SELECT line, amount, currency, named, mark, EXISTS (
        SELECT FROM bank_lines o WHERE o.mark = bank_lines.mark AND o.dismissed_at IS NOT NULL) AS is_dismissed
    FROM bank_lines WHERE file_id = $1 ORDER BY line
"""
# Lines of the newest $1 files that name a reference, credited nothing, were not dismissed, and are payments (not $3), or take a credited one
# back (not $4). Counts up to $2.
_COUNT_WAITING = """
    SELECT count(*) FROM (
        SELECT DISTINCT l.mark FROM (SELECT id FROM bank_files ORDER BY id DESC LIMIT $1) AS f JOIN bank_lines l ON l.file_id = f.id
        WHERE cardinality(l.named) > 0 AND (l.amount !~ $3 OR (l.amount !~ $4 AND cardinality(l.named) = 1 AND EXISTS (
              SELECT FROM top_ups t WHERE t.reference = l.named[1] AND t.state = 'confirmed')))
          AND NOT EXISTS (SELECT FROM bank_lines o WHERE o.mark = l.mark AND o.dismissed_at IS NOT NULL)
          AND NOT EXISTS (SELECT FROM top_ups t WHERE t.bank_line = l.mark)
        LIMIT $2) AS waiting
"""
# Whoever decides about a line locks the top-up that it names, if there is one. Returns whether the line confirmed it meanwhile.
_LOCK_TOP_UP = "SELECT bank_line IS NOT DISTINCT FROM $2 FROM top_ups WHERE reference = $1 FOR UPDATE"
_IS_DISMISSED = "SELECT EXISTS (SELECT FROM bank_lines WHERE mark = $1 AND dismissed_at IS NOT NULL)"
_DISMISSED = """
    UPDATE bank_lines SET dismissed_at = clock_now(), dismissed_by = $3
    WHERE file_id = $1 AND line = $2 AND dismissed_at IS NULL
"""


class LineState(StrEnum):
    """The state of a line, which says what somebody must do about it."""

    DECIDE = "decide"
    MATCHED = "matched"  # it matches a top-up, which somebody must still confirm
    DONE = "done"  # it confirmed a top-up
    DISMISSED = "dismissed"
    IGNORED = "ignored"


class NothingToDecide(StateConflict, rule="There is nothing to decide about this line."):
    """The line was decided meanwhile, or cannot be decided like this."""


class BankFile(msgspec.Struct, frozen=True):
    """A file that was read."""

    id: int
    name: str
    decimals: str | None
    read_at: datetime


class ReviewedLine(msgspec.Struct, frozen=True):
    """A line with its current outcome."""

    state: LineState
    match: Match

    @property
    def is_creditable(self) -> bool:
        """Whether its top-up can be confirmed with the amount that was paid."""
        why = self.match.why
        return self.state is LineState.DECIDE and why is not None and why.code in _CREDITABLE


class Confirmed(msgspec.Struct, frozen=True):
    """How many top-ups the lines of a file confirmed, and how many lines failed to confirm theirs."""

    confirmed: int
    refused: int


async def read_file(
    actor: Actor, name: str, content: bytes, columns: Columns, decimals: str | None
) -> tuple[int, bool]:
    """Imports a bank's file. Returns its id, and whether it is new. Does nothing if it was imported before. Raises FileRefused,
    also for a file without transfers.

    Confirms no top-up.
    """
    lines = await asyncio.to_thread(read_bank_file, name[:_LONGEST_NAME], content, columns, most=MOST_LINES)
    if not lines:
        raise FileRefused("no_transfers", f"{name[:_LONGEST_NAME]} has no transfers")
    options = repr((columns.amount, columns.currency, columns.all_in, decimals)).encode()
    digest = hashlib.sha256(hashlib.sha256(content).digest() + options).digest()
    async with actor.transaction(StaffRight.MONEY) as transaction:
        connection = transaction.connection
        by = None if actor.staff is None else actor.staff.person_id
        file_id: int | None = await connection.fetchval(_INSERT_FILE, digest, name[:_LONGEST_NAME], decimals, by)
        if file_id is None:
            known: int = await connection.fetchval(_ID_OF, digest)
            return known, False
        rows = [(file_id, one.line, one.mark, one.amount, one.currency, list(one.named)) for one in lines]
        await connection.executemany(_INSERT_LINE, rows)
        await transaction.record("bank_file.read", f"bank file {file_id}", after={"lines": len(lines)})
    return file_id, True


async def list_files(connection: Connection, before: int | None, most: int) -> list[BankFile]:
    """Returns the files that were imported last, with ids below `before`."""
    return [BankFile(**row) for row in await connection.fetch(_NEWEST, before, most)]


async def count_waiting_lines(connection: Connection, files: int, most: int) -> int:
    """Returns how many lines of the newest files wait to be credited or decided. Counts up to `most`."""
    return int(await connection.fetchval(_COUNT_WAITING, files, most, NO_PAYMENT, NOT_COME))


async def find_file(connection: Connection, file_id: int) -> BankFile:
    """Returns a file. Raises NotFound."""
    row = existing(await connection.fetchrow(_SELECT_FILE, file_id), "There is no bank file with that number.")
    return BankFile(**row)


async def review_file(actor: Actor, file_id: int) -> tuple[BankFile, list[ReviewedLine]]:
    """Returns a file with each line and its outcome. Writes nothing. Raises NotFound."""
    async with actor.transaction(StaffRight.SEE_MONEY) as transaction:
        file, rows = await _read(transaction.connection, file_id)
    reviewed = []
    async for matches in match_payments(actor, _lines(rows), decimal=file.decimals, dry_run=True):
        reviewed += matches
    return file, [ReviewedLine(_state(row, match), match) for row, match in zip(rows, reviewed, strict=True)]


async def confirm_file(actor: Actor, file_id: int) -> Confirmed:
    """Confirms the top-ups that the lines of a file match. Repeating it changes nothing. Raises NotFound."""
    _, reviewed = await review_file(actor, file_id)
    wanted = {one.match.line for one in reviewed if one.state is LineState.MATCHED}
    async with actor.transaction(StaffRight.MONEY) as transaction:
        file, rows = await _read(transaction.connection, file_id)
    lines = [line for line in _lines(rows) if line.line in wanted]
    confirmed = 0
    async for matches in match_payments(actor, lines, decimal=file.decimals):
        confirmed += sum(match.outcome == "confirmed" for match in matches)
    return Confirmed(confirmed, len(lines) - confirmed)


async def credit_line(actor: Actor, file_id: int, line: int) -> TopUp:
    """Confirms the top-up of a line with the amount that was paid: another amount, or after it expired. Raises NotFound and NothingToDecide."""
    async with _deciding(actor, file_id, line) as (transaction, one, mark):
        if not one.is_creditable or one.match.reference is None or one.match.amount_minor is None:
            raise NothingToDecide
        return await confirm_top_up(
            actor.within(transaction), one.match.reference, one.match.amount_minor, bank_line=mark
        )


async def dismiss_line(actor: Actor, file_id: int, line: int) -> None:
    """Decides that a line confirms nothing, in this and in later files. Raises NotFound and NothingToDecide."""
    async with _deciding(actor, file_id, line) as (transaction, _, _):
        by = None if actor.staff is None else actor.staff.person_id
        if await transaction.connection.execute(_DISMISSED, file_id, line, by) != "UPDATE 1":
            raise NothingToDecide
        await transaction.record("bank_line.dismissed", f"bank file {file_id}, line {line}")


@asynccontextmanager
async def _deciding(actor: Actor, file_id: int, line: int) -> AsyncIterator[tuple[Transaction, ReviewedLine, bytes]]:
    """Yields a line to decide, with its mark. Of two decisions at once, the second raises NothingToDecide. Raises NotFound."""
    one, mark = await _to_decide(actor, file_id, line)
    async with actor.transaction(StaffRight.MONEY) as transaction:
        connection = transaction.connection
        is_credited = await connection.fetchval(_LOCK_TOP_UP, one.match.reference, mark)
        if is_credited or await connection.fetchval(_IS_DISMISSED, mark):
            raise NothingToDecide
        yield transaction, one, mark


async def _to_decide(actor: Actor, file_id: int, line: int) -> tuple[ReviewedLine, bytes]:
    _, reviewed = await review_file(actor, file_id)
    found = existing(next((one for one in reviewed if one.match.line == line), None), "The file has no such line.")
    if found.state is not LineState.DECIDE:
        raise NothingToDecide
    async with actor.transaction(StaffRight.SEE_MONEY) as transaction:
        _, rows = await _read(transaction.connection, file_id)
    return found, next(row["mark"] for row in rows if row["line"] == line)


async def _read(connection: Connection, file_id: int) -> tuple[BankFile, Sequence[Row]]:
    return await find_file(connection, file_id), await connection.fetch(_LINES, file_id)


def _lines(rows: Sequence[Row]) -> list[BankLine]:
    return [BankLine(row["line"], row["amount"], row["currency"], tuple(row["named"]), row["mark"]) for row in rows]


def _state(row: Row, match: Match) -> LineState:
    if match.outcome == "known":
        return LineState.DONE
    if row["is_dismissed"]:
        return LineState.DISMISSED
    if match.outcome == "confirmed":
        return LineState.MATCHED
    return LineState.IGNORED if match.why is not None and match.why.code in _IGNORED else LineState.DECIDE
