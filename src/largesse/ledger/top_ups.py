"""Top-ups: customers request and cancel them, operators confirm them when the money has come.

A top-up waits until it is confirmed or cancelled. After its time it counts as expired; money that comes late can still be confirmed.

Its bank transfer names it by a structured creditor reference (ISO 11649), which banks check before a transfer leaves: `RF`, two check digits
(ISO 7064, MOD 97-10) and twelve random digits, in groups of four: `RF18 5390 0754 7034`. Without letters the check finds every wrong digit,
and any two digits that are swapped, also if they are not adjacent. It has 16 characters; banks leave at least 18 for a reference.
"""

import re
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from string import digits

import msgspec

from largesse.base.errors import InvalidRequest, OperatorError, existing
from largesse.base.money import label
from largesse.customers.actor import Actor, Transaction
from largesse.customers.roles import Right
from largesse.customers.staff_roles import StaffRight
from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Connection, Row
from largesse.db.scope import Place
from largesse.jobs.outbox import mail_users
from largesse.ledger import posting
from largesse.ledger.low_balance_store import list_watching
from largesse.ledger.posting import Credit
from largesse.ledger.store import lock_account, no_such_account

_DIGITS = 12
_LENGTH = len("RF00") + _DIGITS
_LONGEST_TYPED = 64
_RF = "2715"  # the letters as MOD 97-10 counts them
_BETWEEN = r"[\s\-./:]*"  # what people and banks may write between the characters
_SOMEWHERE = re.compile(rf"R{_BETWEEN}F" + rf"{_BETWEEN}([0-9OIL])" * (_LENGTH - 2), re.IGNORECASE)
# A reference with a wrong digit, or with one too many or too few. Letters or digits directly before it make it part of something else.
_NEARLY = re.compile(
    rf"(?<![A-Z0-9])R{_BETWEEN}F((?:{_BETWEEN}[0-9OIL]){{{_LENGTH - 3},{_LENGTH - 1}}})(?![A-Z0-9])", re.IGNORECASE
)
_LOOKS_LIKE = str.maketrans("OIL", "011")


class TransferReferenceError(ValueError):
    """The text is not a transfer reference: its length, a character, or the check digits are wrong."""


def new_transfer_reference() -> str:
    """Returns a new reference, as it is stored: without blanks."""
    number = f"{secrets.randbelow(10**_DIGITS):0{_DIGITS}}"
    return f"RF{98 - int(f'{number}{_RF}00') % 97:02}{number}"


def spelled_reference(reference: str) -> str:
    """Returns a reference in groups of four, as people read and type it."""
    return " ".join(reference[at : at + 4] for at in range(0, len(reference), 4))


def parse_transfer_reference(text: str) -> str:
    """Returns the reference that a person typed, in any case, with blanks or hyphens anywhere. Raises TransferReferenceError."""
    found = _SOMEWHERE.fullmatch(text.strip()) if len(text) <= _LONGEST_TYPED else None
    if found is None:
        raise TransferReferenceError("a reference is RF and 14 digits")
    reference = _joined(found)
    if not _checks(reference):
        raise TransferReferenceError("its check digits are wrong: something is mistyped")
    return reference


def transfer_references_in(text: str) -> list[str]:
    """Returns each reference in a bank's text about a transfer once, without mistyped ones."""
    found = dict.fromkeys(_joined(match) for match in _SOMEWHERE.finditer(text))
    return [reference for reference in found if _checks(reference)]


def mistyped_references_in(text: str) -> list[str]:
    """Returns each text that was meant as a reference, with a wrong, missing or additional digit, once."""
    found = dict.fromkeys(_plain(match[1]) for match in _NEARLY.finditer(text))
    return [one for one in found if not _is_reference(one)]


def meant_references(mistyped: str) -> set[str]:
    """Returns the references that differ from a mistyped one in one digit, or in the order of two adjacent digits; none for a right one."""
    typed = mistyped.removeprefix("RF")
    if _is_reference(mistyped):
        return set()
    parts = [(typed[:at], typed[at:]) for at in range(len(typed) + 1)]
    edited = {f"{a}{b[1:]}" for a, b in parts if b}
    edited |= {f"{a}{b[1]}{b[0]}{b[2:]}" for a, b in parts if len(b) > 1}
    edited |= {f"{a}{digit}{b[1:]}" for a, b in parts if b for digit in digits}
    edited |= {f"{a}{digit}{b}" for a, b in parts for digit in digits}
    return {reference for one in edited if _is_reference(reference := f"RF{one}")}


def _is_reference(text: str) -> bool:
    return len(text) == _LENGTH and _checks(text)


def _plain(typed: str) -> str:
    return "RF" + re.sub(_BETWEEN, "", typed).upper().translate(_LOOKS_LIKE)


def _joined(match: re.Match[str]) -> str:
    return _plain("".join(match.groups()))


def _checks(reference: str) -> bool:
    return int(f"{reference[4:]}{_RF}{reference[2:4]}") % 97 == 1


WAITS_FOR = timedelta(days=30)
MAX_WAITING = 20  # top-ups of a customer in an environment that may wait
_TRIES = 5
# The reference of a top-up is RF and 14 digits, which name it in the address of a page.
_PREFIX = "RF"
_MAX_LISTED = 1_000

_OF_ROWS = """
    SELECT t.reference, c.key AS customer, c.name AS customer_name, t.customer_id, t.environment, t.account_id, a.name AS account, a.currency,
           t.amount_minor, t.credited_minor,
           CASE WHEN t.state = 'waiting' AND t.expires_at <= clock_now() THEN 'expired' ELSE t.state END AS state,
           t.requested_at, u.name AS requested_by, t.expires_at, t.ended_at, t.bank_line
    FROM {rows} t
    JOIN customers c ON c.id = t.customer_id
    JOIN accounts a ON a.customer_id = t.customer_id AND a.id = t.account_id
    LEFT JOIN users u ON u.id = t.requested_by
"""
_SELECT = compose(_OF_ROWS, rows=Fragment("top_ups"))
_BY_REFERENCE = _SELECT + "WHERE t.customer_id = $1 AND t.environment = $2 AND t.reference = $3"
_BY_REFERENCES = _SELECT + "WHERE t.reference = ANY($1::text[])"
_OF_CUSTOMER = (
    _SELECT
    + """
    WHERE t.customer_id = $1 AND t.environment = $2 AND (NOT $3 OR (t.state = 'waiting' AND t.expires_at > clock_now()))
    ORDER BY t.requested_at DESC, t.reference LIMIT $4
"""
)
_OF_ALL = (
    _SELECT
    + """
    WHERE ($1::text IS NULL OR c.key = $1) AND ($2 OR t.state = 'waiting')
    ORDER BY t.requested_at, t.reference
"""
)
# The customers are found first, and the rest of a top-up is read for those of the page alone: there may be many of both.
_WAITING = compose(
    """
    WITH named AS MATERIALIZED (
        SELECT id FROM customers WHERE $1 <> '' AND (key = $1 OR position(lower($1) IN lower(name)) > 0)
    ), page AS MATERIALIZED (
        SELECT * FROM top_ups
        WHERE state = 'waiting' AND ($1 = '' OR customer_id IN (SELECT id FROM named) OR reference = $2)
          AND ($3::text IS NULL OR (requested_at, reference) > (SELECT requested_at, reference FROM top_ups WHERE reference = $3))
        ORDER BY requested_at, reference LIMIT $4)
    {select} ORDER BY t.requested_at, t.reference
""",
    select=compose(_OF_ROWS, rows=Fragment("page")),
)
_COUNT_WAITING = """
    SELECT count(*) FROM top_ups
    WHERE customer_id = $1 AND environment = $2 AND state = 'waiting' AND expires_at > clock_now()
"""
_INSERT = """
    INSERT INTO top_ups (customer_id, environment, account_id, reference, amount_minor, requested_by, requested_at, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, clock_now(), clock_now() + $7)
    ON CONFLICT DO NOTHING RETURNING reference
"""
_CANCEL = """
    UPDATE top_ups SET state = 'cancelled', ended_at = clock_now()
    WHERE customer_id = $1 AND environment = $2 AND reference = $3 AND state = 'waiting'
    RETURNING true
"""
_LOCK = "SELECT customer_id, environment, bank_line, requested_by FROM top_ups WHERE reference = $1 FOR UPDATE"
_CONFIRM = """
    UPDATE top_ups SET state = 'confirmed', credited_minor = $3, ended_at = clock_now(), bank_line = $4
    WHERE customer_id = $1 AND reference = $2
"""


class TopUp(msgspec.Struct, frozen=True):
    """A top-up; amounts in minor units of its account's currency."""

    reference: str
    customer: str  # its key
    customer_name: str
    customer_id: int
    environment: str
    account_id: int
    account: str
    currency: str
    amount_minor: int  # the requested amount
    credited_minor: int | None  # the received amount, once it is confirmed
    state: str  # waiting, expired, confirmed or cancelled
    requested_at: datetime
    requested_by: str | None  # the name of the person
    expires_at: datetime
    ended_at: datetime | None  # when it was confirmed or cancelled


async def find_top_up(connection: Connection, place: Place, reference: str) -> TopUp:
    """Returns a customer's top-up. Raises NotFound."""
    return _top_up(existing(await connection.fetchrow(_BY_REFERENCE, *place, reference), "There is no such top-up."))


async def list_top_ups(connection: Connection, place: Place, *, waiting: bool = False) -> list[TopUp]:
    """Returns a customer's latest top-ups, newest first, at most 1,000; with `waiting` only those that may still be paid."""
    rows = await connection.fetch(_OF_CUSTOMER, *place, waiting, _MAX_LISTED)
    return [_top_up(row) for row in rows]


async def list_all_top_ups(connection: Connection, *, customer: str | None = None, ended: bool = False) -> list[TopUp]:
    """Returns top-ups of every customer, or of one, oldest first: those that wait or have expired, and with `ended` all."""
    return [_top_up(row) for row in await connection.fetch(_OF_ALL, customer, ended)]


async def list_waiting_top_ups(connection: Connection, words: str, after: int | None, most: int) -> list[TopUp]:
    """Returns top-ups that wait or have expired, oldest first, after the one whose reference has those digits.

    `words` are a reference or a customer's key or a part of its name.
    """
    reference = "".join(filter(str.isalnum, words)).upper()
    before = None if after is None else f"{_PREFIX}{after:014d}"
    return [_top_up(row) for row in await connection.fetch(_WAITING, words.strip(), reference, before, most)]


async def find_by_references(
    connection: Connection, references: Sequence[str]
) -> dict[str, tuple[TopUp, bytes | None]]:
    """Returns top-ups by reference, each with the line of a bank's file that confirmed it."""
    rows = await connection.fetch(_BY_REFERENCES, references)
    return {row["reference"]: (_top_up(row), row["bank_line"]) for row in rows}


def _top_up(row: Row) -> TopUp:
    return TopUp(*row[:-1])


async def request_top_up(actor: Actor, account_id: int, amount_minor: int) -> TopUp:
    """Requests a top-up of a funding account.

    Raises NotFound for an account that is closed or not the customer's in this environment, and InvalidRequest for an amount that is not
    positive and when too many top-ups wait.
    """
    if amount_minor <= 0:
        raise InvalidRequest("`amount` must be greater than zero.")
    own = actor.place
    async with actor.transaction(Right.MOVE_FUNDS) as transaction:
        connection = transaction.connection
        # Locked, so that nobody closes the account meanwhile, and one request of a customer runs at a time.
        if (await lock_account(connection, actor.place, account_id))["closed_at"] is not None:
            raise no_such_account()
        if await connection.fetchval(_COUNT_WAITING, *own) >= MAX_WAITING:
            raise InvalidRequest(f"{MAX_WAITING} top-ups wait already: cancel one that will not be paid.")
        for _ in range(_TRIES):
            new = (account_id, new_transfer_reference(), amount_minor, actor.user_id, WAITS_FOR)
            if reference := await connection.fetchval(_INSERT, *own, *new):
                return await _record(transaction, "top_up.requested", reference)
    raise RuntimeError("every new reference was taken")


async def cancel_top_up(actor: Actor, reference: str) -> TopUp:
    """Cancels a waiting top-up; a cancelled one stays as it is. Raises NotFound, and InvalidRequest for a confirmed one."""
    async with actor.transaction(Right.MOVE_FUNDS) as transaction:
        connection = transaction.connection
        if await connection.fetchval(_CANCEL, *actor.place, reference):
            return await _record(transaction, "top_up.cancelled", reference)
        top_up = await _find(transaction, reference)
    if top_up.state == "confirmed":
        raise InvalidRequest("The money has arrived: this top-up is confirmed and cannot be cancelled.")
    return top_up


async def confirm_top_up(
    actor: Actor, reference: str, amount_minor: int | None = None, *, bank_line: bytes | None = None
) -> TopUp:
    """Credits the account of a top-up once, with the amount received if it differs from the requested one. For operators.

    Repeating it with the same amount changes nothing. `bank_line` identifies the line of a bank's file that confirms it. Raises
    OperatorError for an unknown top-up, a cancelled one, and one that was confirmed with another amount, or not by this line.
    """
    async with actor.transaction(StaffRight.MONEY) as begun:
        connection = begun.connection
        row = await connection.fetchrow(_LOCK, reference)
        if row is None:
            raise OperatorError(f"there is no top-up {spelled_reference(reference)}")
        transaction = begun.on_behalf_of(row["customer_id"], row["environment"])
        top_up = await _find(transaction, reference)
        amount_minor = _amount_to_credit(top_up, amount_minor)
        if top_up.state == "confirmed":
            if bank_line not in {None, row["bank_line"]}:
                named = spelled_reference(reference)
                raise OperatorError(f"top-up {named} is confirmed already: it may have been paid twice")
            return top_up
        credit = await posting.top_up(connection, transaction.entries, top_up.account_id, amount_minor, reference)
        if credit.is_new:
            await _mail(connection, (top_up.customer_id, top_up.account_id), amount_minor, row["requested_by"])
        await connection.execute(_CONFIRM, top_up.customer_id, reference, amount_minor, bank_line)
        return await _record(transaction, "top_up.confirmed", reference)


async def credit_account(actor: Actor, account: Row, amount_minor: int, reference: str | None) -> Credit:
    """Credits an account that `find_funding_account` returned with money that came without a request. For operators.

    Raises OperatorError as `posting.top_up` does.
    """
    async with actor.on_behalf_of(account["customer_id"], account["environment"]).transaction(
        StaffRight.MONEY
    ) as transaction:
        credit = await posting.top_up(
            transaction.connection, transaction.entries, account["id"], amount_minor, reference
        )
        if credit.is_new:
            after = {"amount_minor": amount_minor, "reference": reference, "balance_minor": credit.balance_minor}
            await transaction.record("account.topped_up", f"account {account['id']}", after=after)
            await _mail(transaction.connection, (account["customer_id"], account["id"]), amount_minor, None)
    return credit


async def _mail(connection: Connection, account: tuple[int, int], amount_minor: int, requested_by: int | None) -> None:
    """Mails those who watch the credited account, and the user who requested the top-up, each once."""
    user_ids = {*await list_watching(connection, *account), *([] if requested_by is None else [requested_by])}
    await mail_users(connection, "credited", sorted(user_ids), account_id=account[1], credited_minor=amount_minor)


async def _find(transaction: Transaction, reference: str) -> TopUp:
    return await find_top_up(transaction.connection, transaction.actor.place, reference)


async def _record(transaction: Transaction, act: str, reference: str) -> TopUp:
    """Records an act in the audit log, and returns the top-up as it is after it."""
    top_up = await _find(transaction, reference)
    after = {
        "account_id": top_up.account_id,
        "amount_minor": top_up.amount_minor,
        "credited_minor": top_up.credited_minor,
        "currency": top_up.currency,
    }
    await transaction.record(act, f"top-up {reference}", after=after)
    return top_up


def _amount_to_credit(top_up: TopUp, amount_minor: int | None) -> int:
    """Returns the amount to credit. Raises OperatorError if none may be credited."""
    named = spelled_reference(top_up.reference)
    if top_up.state == "cancelled":
        raise OperatorError(f"top-up {named} was cancelled: if the money came anyway, credit it with `largesse top-up`")
    if amount_minor is None:
        return top_up.amount_minor
    if top_up.credited_minor not in {None, amount_minor}:
        credited = label(top_up.credited_minor, top_up.currency)
        raise OperatorError(f"top-up {named} was confirmed with {credited} already")
    return amount_minor
