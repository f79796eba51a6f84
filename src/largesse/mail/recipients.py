"""Searches, filters and lists the recipients of an order, with the progress of their gifts; and the state of the mail of an order."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum

import msgspec

from largesse.base.email import email_key, is_erased
from largesse.base.text import has_words, search_words
from largesse.customers.principal import Principal
from largesse.db.pool import Connection, Row
from largesse.lines.states import State
from largesse.lines.store import LineRecord, read_line_records
from largesse.mail import resending_store, store
from largesse.orders.lookup import find_order


class RecipientState(StrEnum):
    """The state of a recipient's gift. If several states apply, it is the first of them."""

    CANCELLED = "cancelled"
    EXPIRED = "expired"
    """Every code that was not cancelled was claimed, and then expired."""
    CLAIMED = "claimed"
    """Every code that was not cancelled was claimed."""
    BOUNCED = "bounced"
    FAILED = "failed"
    """The mail was given up."""
    HELD = "held"
    SCHEDULED = "scheduled"
    SENDING = "sending"
    PARTLY = "partly"
    """Some codes were claimed."""
    OPENED = "opened"
    MAILED = "mailed"
    ISSUED = "issued"
    """A code that was handed over, which nobody has opened."""


# The filters of recipients, and the states that pass each.
FILTERS = {
    "unclaimed": frozenset(set(RecipientState) - {"cancelled", "expired", "claimed"}),
    "problems": frozenset({RecipientState.BOUNCED, RecipientState.FAILED, RecipientState.HELD}),
    "opened": frozenset({RecipientState.OPENED}),
    "claimed": frozenset({RecipientState.CLAIMED, RecipientState.PARTLY, RecipientState.EXPIRED}),
    "cancelled": frozenset({RecipientState.CANCELLED}),
}
_OF_MAIL = {
    "bounced": RecipientState.BOUNCED,
    "exhausted": RecipientState.FAILED,
    "held": RecipientState.HELD,
    "scheduled": RecipientState.SCHEDULED,
    "pending": RecipientState.SENDING,
}


class Recipient(msgspec.Struct):
    """A recipient of an order, or a code of a batch. Forms name it by `number`, the number of its first line."""

    number: int
    email: str | None  # None in a code batch
    name: str | None
    numbers: list[int] = []
    mail: str | None = None  # the state of the latest mail, as `messages` has it, or scheduled; None in a code batch
    reason: str | None = None  # the mail server's answer if it did not take the mail
    fault: str | None = None  # why it was not taken, as `Fault` of `outcomes.py` has it
    sent_at: datetime | None = None
    first_sent_at: datetime | None = None  # when the first mail left, which may be another than the latest
    resends: int = 0
    opened: int = 0  # the number of opened codes; the next fields count codes too
    claimed: int = 0
    fulfilled: int = 0
    expired: int = 0
    cancelled: int = 0
    times: dict[str, datetime] = {}  # the time of each event, for the last code that had it; empty until `add_times`

    @property
    def state(self) -> RecipientState:
        """The state of the gift."""
        codes = len(self.numbers)
        if self.cancelled == codes:
            return RecipientState.CANCELLED
        if self.claimed + self.cancelled == codes:
            return RecipientState.EXPIRED if self.expired == self.claimed else RecipientState.CLAIMED
        if self.mail in _OF_MAIL and not (self.claimed and self.mail == "pending"):
            return _OF_MAIL[self.mail]
        if self.claimed:
            return RecipientState.PARTLY
        if self.opened:
            return RecipientState.OPENED
        return RecipientState.ISSUED if self.mail is None else RecipientState.MAILED

    @property
    def last_at(self) -> datetime | None:
        """When the gift last changed; None if that is not known."""
        return max([*self.times.values(), *([self.sent_at] if self.sent_at else [])], default=None)

    @property
    def open_codes(self) -> int:
        """How many codes nobody has claimed or cancelled."""
        return len(self.numbers) - self.claimed - self.cancelled

    @property
    def is_erased(self) -> bool:
        """Whether their name and address were erased."""
        return self.email is not None and is_erased(self.email)

    @property
    def has_left(self) -> bool:
        """Whether the latest mail has left, or was refused."""
        return self.mail in {"sent", "captured", "bounced", "exhausted"}


class Listed(msgspec.Struct, frozen=True):
    """A page of recipients. `counts` has the number for each filter, and `found` the number of recipients that pass the filter and the search."""

    recipients: list[Recipient]
    counts: dict[str, int]
    found: int
    page: int
    pages: int


def choose(recipients: Sequence[Recipient], *, words: str, state: str, page: int, at_once: int) -> Listed:
    """Returns a page of the recipients that pass a filter and whose name or address contains each word of a search."""
    counts = {"": len(recipients), **dict.fromkeys(FILTERS, 0)}
    states = [one.state for one in recipients]
    for name, among in FILTERS.items():
        counts[name] = sum(one in among for one in states)
    if state in FILTERS:
        recipients = [one for one, stands in zip(recipients, states, strict=True) if stands in FILTERS[state]]
    wanted = search_words(words)
    if wanted:
        recipients = [one for one in recipients if _has(one, wanted)]
    pages = max(-(-len(recipients) // at_once), 1)
    page = min(max(page, 1), pages)
    return Listed(list(recipients[(page - 1) * at_once : page * at_once]), counts, len(recipients), page, pages)


def _has(recipient: Recipient, words: Iterable[str]) -> bool:
    return has_words(f"{recipient.name or ''} {recipient.email or recipient.number}", words)


async def read_recipients(connection: Connection, order: Row) -> list[Recipient]:
    """Returns the recipients of an order in the given order, or the codes of a code batch."""
    key = (order["customer_id"], order["id"])
    recipients: dict[str | int, Recipient] = {}
    for number, email, name, state, opened in await connection.fetch(_LINES, *key):
        at = number if email is None else email_key(email)
        one = recipients.get(at) or recipients.setdefault(at, Recipient(number, email, name))
        one.numbers.append(number)
        one.opened += opened
        one.cancelled += state == State.CANCELLED
        one.claimed += state in _CLAIMED
        one.fulfilled += state == State.FULFILLED
        one.expired += state == State.EXPIRED
    is_batch = order["delivery_mode"] != "send"
    if not is_batch or any(one.email for one in recipients.values()):  # the visitors of a campaign have mail, too
        await _add_mail(connection, key, recipients, is_batch=is_batch)
    return list(recipients.values())


_CLAIMED = {State.CLAIMED, State.CHOSEN, State.FULFILLED, State.EXPIRED}
# Joins nothing: the planner expects few lines of an order, and would compare each line with all states.
_LINES = """
    SELECT l.number, l.recipient_email, l.recipient_name,
           (SELECT s.state FROM line_states AS s WHERE s.customer_id = $1 AND s.order_id = $2 AND s.number = l.number) AS state,
           l.number IN (SELECT number FROM line_events WHERE customer_id = $1 AND order_id = $2 AND event = 'opened') AS opened
    FROM lines AS l WHERE l.customer_id = $1 AND l.order_id = $2 ORDER BY l.number
"""


async def _add_mail(
    connection: Connection, order: tuple[int, int], recipients: dict[str | int, Recipient], *, is_batch: bool
) -> None:
    """Adds the latest mail of each recipient, or that the order's mail still waits."""
    rows = await connection.fetch(_MAIL, *order)
    for email, state, reason, fault, sent_at, resends, first_sent_at in rows:
        one = recipients.get(email_key(email))
        if one is not None:
            one.mail, one.reason, one.fault = state, reason, fault
            one.sent_at, one.resends, one.first_sent_at = sent_at, resends, first_sent_at
    if not rows and not is_batch:
        is_scheduled = await connection.fetchval(resending_store.IS_SCHEDULED_JOB, *order)
        for one in recipients.values():
            one.mail = "scheduled" if is_scheduled else "pending"


_MAIL = """
    SELECT DISTINCT ON (email) email, state, reason, fault,
           CASE WHEN state IN ('sent', 'captured') THEN finished_at END AS sent_at, edition AS resends,
           min(finished_at) FILTER (WHERE state IN ('sent', 'captured')) OVER (PARTITION BY email) AS first_sent_at
    FROM messages WHERE customer_id = $1 AND order_id = $2 AND kind = 'gift' ORDER BY email, edition DESC
"""


async def add_times(connection: Connection, order: Row, recipients: Sequence[Recipient]) -> None:
    """Adds the time of each event to the recipients. With several codes, it is the time of the last one."""
    numbers = {number: one for one in recipients for number in one.numbers}
    rows = await connection.fetch(resending_store.TIMES_OF_LINES, order["customer_id"], order["id"], list(numbers))
    for number, event, at in rows:
        times = numbers[number].times
        times[event] = max(at, times.get(event, at))


_REFUSED = {"bounced", "exhausted"}


class Progress(msgspec.Struct, frozen=True):
    """The progress of an order's gifts: recipients whose mail has left or was refused, and codes that were opened, claimed and fulfilled."""

    mailed: int  # also if a later mail waits
    refused: int
    opened: int
    claimed: int
    fulfilled: int
    last_mail_at: datetime | None  # of the first mails, without those that were sent again


def progress_of(recipients: Sequence[Recipient]) -> Progress:
    """Returns the progress of all recipients of an order."""
    return Progress(
        mailed=sum(one.first_sent_at is not None and one.mail not in _REFUSED for one in recipients),
        refused=sum(one.mail in _REFUSED for one in recipients),
        opened=sum(one.opened for one in recipients),
        claimed=sum(one.claimed for one in recipients),
        fulfilled=sum(one.fulfilled for one in recipients),
        last_mail_at=max((one.first_sent_at for one in recipients if one.first_sent_at is not None), default=None),
    )


class RecipientDelivery(msgspec.Struct, kw_only=True):
    """The state of the mail to one recipient of an order."""

    email: str | None  # None in a code batch
    name: str | None
    code_count: int = 0
    state: str
    reason: str | None = None  # the mail server's answer if it did not take the mail, or why the mail is held
    fault: str | None = None  # why it was not taken, as `Fault` of `outcomes.py` has it
    due_at: datetime
    sent_at: datetime | None = None
    attempts: int = 0
    resends: int = 0  # if there are any, the other fields are about the last one
    lines: list[LineRecord] = []


async def list_order_deliveries(
    connection: Connection, principal: Principal, reference: str, *, offset: int = 0, limit: int = 100
) -> list[RecipientDelivery]:
    """Returns the recipients of an order in the order they were given, each with the state of its mail.

    An order that is not due yet has no messages: its recipients come from its lines. A code batch has an entry for
    each code. Raises NotFound for an order of another customer or environment.
    """
    found = await find_order(connection, principal, reference)
    order = (found["customer_id"], found["id"])
    rows = await connection.fetch(store.LATEST_OF_ORDER, *order, offset, limit)
    lines = await read_line_records(connection, *order)
    if rows:
        return _with_lines([RecipientDelivery(**row) for row in rows], lines)
    job = await connection.fetchrow(store.JOB_OF_ORDER, *order)
    if job is None:
        at = found["created_at"]
        return [  # the codes of a batch, which were returned to the caller and not mailed
            RecipientDelivery(email=None, name=None, code_count=1, state="manual", due_at=at, lines=[line])
            for _, _, line in lines[offset : offset + limit]
        ]
    waiting = _not_fanned_out(lines, job["due_at"], "scheduled" if job["scheduled"] else "pending")
    return _with_lines(waiting[offset : offset + limit], lines)


async def count_by_state(connection: Connection, customer_id: int, order_id: int) -> dict[str, int]:
    """Returns how many messages of an order are in each state. Each resend counts as a message."""
    rows = await connection.fetch(store.COUNT_BY_STATE, customer_id, order_id)
    return {row["state"]: row["count"] for row in rows}


_Lines = Sequence[tuple[str | None, str | None, LineRecord]]


def _not_fanned_out(lines: _Lines, due_at: datetime, state: str) -> list[RecipientDelivery]:
    """Returns the recipients of an order whose mail job still waits, grouped as the fan-out will group them."""
    recipients: dict[str, RecipientDelivery] = {}
    for email, name, line in lines:
        if email is None:
            continue
        new = RecipientDelivery(email=email, name=name, state="cancelled", due_at=due_at)
        recipient = recipients.setdefault(email_key(email), new)
        recipient.code_count += 1
        if line.cancelled_at is None:
            recipient.state = state
    return list(recipients.values())


def _with_lines(recipients: list[RecipientDelivery], lines: _Lines) -> list[RecipientDelivery]:
    """Returns the recipients, each with the state of their codes."""
    by_recipient: dict[str, list[LineRecord]] = defaultdict(list)
    for email, _, line in lines:
        by_recipient[email_key(email or "")].append(line)
    for recipient in recipients:
        recipient.lines = by_recipient[email_key(recipient.email or "")]
    return recipients
