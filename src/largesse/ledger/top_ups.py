"""The reference of a bank transfer: a structured creditor reference (ISO 11649), which banks check before a transfer leaves.

`RF`, two check digits (ISO 7064, MOD 97-10) and twelve random digits, in groups of four: `RF18 5390 0754 7034`. With digits alone the
check notices every wrong digit, and every two that are swapped, wherever they stand. It has 16 characters; what banks
leave for a reference is 18 at the least.

Top-ups that customers ask for: requested with a reference for the transfer, and credited when the money has come.

A top-up waits until it is confirmed or cancelled. One whose time is over is told as expired; money that came late may be
confirmed all the same, since it is there.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from largesse.audit.service import Acting
from largesse.base.errors import InvalidRequest, NotFound, OperatorError
from largesse.base.money import label
from largesse.db.pool import Connection, Row
from largesse.ledger.posting import top_up

_DIGITS = 12
_LENGTH = len("RF00") + _DIGITS
_LONGEST_TYPED = 64
_RF = "2715"  # the letters as MOD 97-10 counts them
_BETWEEN = r"[\s\-./:]*"  # what people and banks put between the characters
_SOMEWHERE = re.compile(rf"R{_BETWEEN}F" + rf"{_BETWEEN}([0-9OIL])" * (_LENGTH - 2), re.IGNORECASE)
_LOOKS_LIKE = str.maketrans("OIL", "011")


class TransferReferenceError(ValueError):
    """A text that is no reference of a transfer: a wrong length, a character that is no digit, or a wrong check."""


def new_transfer_reference() -> str:
    """A new reference, as it is kept: without blanks."""
    number = f"{secrets.randbelow(10**_DIGITS):0{_DIGITS}}"
    return f"RF{98 - int(f'{number}{_RF}00') % 97:02}{number}"


def spelled_reference(reference: str) -> str:
    """A reference in groups of four, as people read and type it."""
    return " ".join(reference[at : at + 4] for at in range(0, len(reference), 4))


def parse_transfer_reference(text: str) -> str:
    """The reference that a person has typed, in any case, with blanks or hyphens anywhere. Raises TransferReferenceError."""
    found = _SOMEWHERE.fullmatch(text.strip()) if len(text) <= _LONGEST_TYPED else None
    if found is None:
        raise TransferReferenceError("a reference is RF and 14 digits")
    reference = _joined(found)
    if not _checks(reference):
        raise TransferReferenceError("its check digits do not fit: something is mistyped")
    return reference


def transfer_references_in(text: str) -> list[str]:
    """Every reference in what a bank tells of a transfer, each once, mistyped ones left out."""
    found = dict.fromkeys(_joined(match) for match in _SOMEWHERE.finditer(text))
    return [reference for reference in found if _checks(reference)]


def _joined(match: re.Match[str]) -> str:
    return "RF" + "".join(match.groups()).upper().translate(_LOOKS_LIKE)


def _checks(reference: str) -> bool:
    return int(f"{reference[4:]}{_RF}{reference[2:4]}") % 97 == 1


WAITS_FOR = timedelta(days=30)
MAX_WAITING = 20  # of a customer in an environment
_MAX_LISTED = 1_000
_LOCK = 0x746F7075  # "topu": one request of a customer at a time
_TRIES = 5

_SELECT = """
    SELECT t.reference, c.key AS customer, t.customer_id, t.environment, t.account_id, a.name AS account, a.currency,
           t.amount_minor, t.credited_minor,
           CASE WHEN t.state = 'waiting' AND t.expires_at <= clock_now() THEN 'expired' ELSE t.state END AS state,
           t.requested_at, u.name AS requested_by, t.expires_at, t.ended_at
    FROM top_ups t
    JOIN customers c ON c.id = t.customer_id
    JOIN accounts a ON a.customer_id = t.customer_id AND a.id = t.account_id
    LEFT JOIN users u ON u.id = t.requested_by
"""


@dataclass(frozen=True, slots=True)
class TopUp:
    """A top-up; amounts in minor units of its account's currency."""

    reference: str
    customer: str
    customer_id: int
    environment: str
    account_id: int
    account: str
    currency: str
    amount_minor: int  # as it was asked for
    credited_minor: int | None  # as it came, once it is confirmed
    state: str  # waiting, expired, confirmed or cancelled
    requested_at: datetime
    requested_by: str | None  # the name of the person
    expires_at: datetime
    ended_at: datetime | None  # when it was confirmed or cancelled


async def request_top_up(
    connection: Connection,
    acting: Acting,
    *,
    customer_id: int,
    environment: str,
    account_id: int,
    amount_minor: int,
    requested_by: int | None,
) -> TopUp:
    """Asks for a top-up of a funding account, by that person; call it inside a transaction.

    Raises NotFound for an account that is not the customer's in this environment or is closed, and InvalidRequest for an amount that is not
    positive or when too many wait already.
    """
    if amount_minor <= 0:
        raise InvalidRequest("`amount` must be greater than zero.")
    await connection.execute("SELECT pg_advisory_xact_lock($1, $2)", _LOCK, customer_id)
    await _require_own(connection, customer_id, environment, account_id)
    waiting = await connection.fetchval(
        """
        SELECT count(*) FROM top_ups
        WHERE customer_id = $1 AND environment = $2 AND state = 'waiting' AND expires_at > clock_now()
        """,
        customer_id,
        environment,
    )
    if waiting >= MAX_WAITING:
        raise InvalidRequest(f"{MAX_WAITING} top-ups wait already, and no more may: cancel one that will not be paid.")
    for _ in range(_TRIES):
        reference = await connection.fetchval(
            """
            INSERT INTO top_ups (customer_id, environment, account_id, reference, amount_minor, requested_by, requested_at, expires_at)
            VALUES ($1, $2, $3, $4, $5, $6, clock_now(), clock_now() + $7)
            ON CONFLICT DO NOTHING RETURNING reference
            """,
            customer_id,
            environment,
            account_id,
            new_transfer_reference(),
            amount_minor,
            requested_by,
            WAITS_FOR,
        )
        if reference is not None:
            made = await find_top_up(connection, customer_id, environment, reference)
            await _record(connection, acting, "top_up.requested", made)
            return made
    raise RuntimeError("every new reference was taken")


async def _require_own(connection: Connection, customer_id: int, environment: str, account_id: int) -> None:
    """Raises NotFound where no open funding account is the customer's. A statement by itself: accounts may lie on a node, where no top-ups are."""
    is_own = await connection.fetchval(
        """
        SELECT EXISTS (SELECT FROM accounts
                       WHERE customer_id = $1 AND environment = $2 AND id = $3 AND kind = 'funding' AND closed_at IS NULL)
        """,
        customer_id,
        environment,
        account_id,
    )
    if not is_own:
        raise NotFound("There is no such funding account.")


async def find_top_up(connection: Connection, customer_id: int, environment: str, reference: str) -> TopUp:
    """A customer's top-up. Raises NotFound."""
    row = await connection.fetchrow(
        f"{_SELECT} WHERE t.customer_id = $1 AND t.environment = $2 AND t.reference = $3",
        customer_id,
        environment,
        reference,
    )
    if row is None:
        raise NotFound("There is no such top-up.")
    return TopUp(**row)


async def list_top_ups(
    connection: Connection, customer_id: int, environment: str, *, waiting: bool = False
) -> list[TopUp]:
    """A customer's latest top-ups, the newest first, at most 1,000; with `waiting` those alone that may still be paid."""
    rows = await connection.fetch(
        f"""
        {_SELECT}
        WHERE t.customer_id = $1 AND t.environment = $2 AND (NOT $3 OR (t.state = 'waiting' AND t.expires_at > clock_now()))
        ORDER BY t.requested_at DESC, t.reference LIMIT {_MAX_LISTED}
        """,
        customer_id,
        environment,
        waiting,
    )
    return [TopUp(**row) for row in rows]


async def list_all_top_ups(connection: Connection, *, customer: str | None = None, ended: bool = False) -> list[TopUp]:
    """Top-ups of every customer, or of one, the oldest first: those that wait or have expired, and with `ended` all."""
    rows = await connection.fetch(
        f"""
        {_SELECT} WHERE ($1::text IS NULL OR c.key = $1) AND ($2 OR t.state = 'waiting')
        ORDER BY t.requested_at, t.reference
        """,
        customer,
        ended,
    )
    return [TopUp(**row) for row in rows]


async def cancel_top_up(
    connection: Connection, acting: Acting, customer_id: int, environment: str, reference: str
) -> TopUp:
    """Cancels a top-up that waits; one that is cancelled already stays as it is. Call it inside a transaction.

    Raises NotFound, and InvalidRequest for one that is confirmed.
    """
    is_new = await connection.fetchval(
        """
        UPDATE top_ups SET state = 'cancelled', ended_at = clock_now()
        WHERE customer_id = $1 AND environment = $2 AND reference = $3 AND state = 'waiting'
        RETURNING true
        """,
        customer_id,
        environment,
        reference,
    )
    found = await find_top_up(connection, customer_id, environment, reference)
    if found.state == "confirmed":
        raise InvalidRequest("The money has come: this top-up is confirmed and cannot be cancelled.")
    if is_new:
        await _record(connection, acting, "top_up.cancelled", found)
    return found


async def confirm_top_up(
    connection: Connection,
    acting: Acting,
    reference: str,
    amount_minor: int | None = None,
    *,
    bank_line: bytes | None = None,
) -> TopUp:
    """Credits the account of a top-up, with another amount than was asked for where `amount_minor` says so.

    Once: repeating it with the same amount changes nothing. `bank_line` tells the line of a bank's file by which it was
    confirmed. Raises OperatorError for an unknown one, a cancelled one, and one confirmed with another amount. Call it inside a
    transaction.
    """
    row = await connection.fetchrow(
        "SELECT customer_id, environment, account_id, state, amount_minor, credited_minor FROM top_ups WHERE reference = $1 FOR UPDATE",
        reference,
    )
    if row is None:
        raise OperatorError(f"there is no top-up {spelled_reference(reference)}")
    found = await find_top_up(connection, row["customer_id"], row["environment"], reference)
    amount_minor = _amount_of(found, amount_minor)
    if found.state == "confirmed":
        return found
    await top_up(connection, acting.chains.entries, found.account_id, amount_minor, reference)
    await connection.execute(
        """
        UPDATE top_ups SET state = 'confirmed', credited_minor = $3, ended_at = clock_now(), bank_line = $4
        WHERE customer_id = $1 AND reference = $2
        """,
        found.customer_id,
        reference,
        amount_minor,
        bank_line,
    )
    done = await find_top_up(connection, found.customer_id, found.environment, reference)
    await _record(connection, acting, "top_up.confirmed", done)
    return done


async def _record(connection: Connection, acting: Acting, act: str, top_up: TopUp) -> None:
    """Keeps in the audit log what was done to a top-up."""
    after = {
        "account_id": top_up.account_id,
        "amount_minor": top_up.amount_minor,
        "credited_minor": top_up.credited_minor,
        "currency": top_up.currency,
    }
    await acting.record(
        connection,
        act,
        f"top-up {top_up.reference}",
        customer_id=top_up.customer_id,
        environment=top_up.environment,
        after=after,
    )


def _amount_of(found: TopUp, amount_minor: int | None) -> int:
    """What is to be credited. Raises OperatorError where nothing may be."""
    named = spelled_reference(found.reference)
    if found.state == "cancelled":
        raise OperatorError(
            f"top-up {named} was cancelled: where the money came all the same, credit it with `largesse top-up`"
        )
    wanted = found.amount_minor if amount_minor is None else amount_minor
    if found.credited_minor is not None and wanted != found.credited_minor and amount_minor is not None:
        raise OperatorError(f"top-up {named} was confirmed with {label(found.credited_minor, found.currency)} already")
    return wanted


async def top_ups_of_references(
    connection: Connection, references: Sequence[str]
) -> dict[str, tuple[TopUp, bytes | None]]:
    """Top-ups by reference, each with the line of a bank's file by which it was confirmed."""
    rows: list[Row] = await connection.fetch(
        _SELECT.replace("t.ended_at", "t.ended_at, t.bank_line", 1) + " WHERE t.reference = ANY($1::text[])", references
    )
    found = {}
    for row in rows:
        values = dict(row)
        bank_line = values.pop("bank_line")
        found[values["reference"]] = (TopUp(**values), bank_line)
    return found
